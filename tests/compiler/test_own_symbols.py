from __future__ import annotations

import random
from typing import Any

import pytest

from tests.compiler.checking import check_graph
from tilework.candidates.own_symbols import OwnSymbols, own_symbols
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Dim, Symbol, dim, maximum, minimum, symbol_bounds
from tilework.dtypes import float32
from tilework.ops.builder import GraphBuilder
from tilework.plan.verify import verify

H, W, N = Symbol("h", 1), Symbol("w", 1, 4096), Symbol("n", 0)
SYMBOLS = (H, W, N, Symbol("m", 32, None, 32))


def halved(size: Dim, times: int) -> Dim:
    for _ in range(times):
        size = (size - 1) // 2 + 1
    return size


def check(found: OwnSymbols, sizes: list[Dim], seed: int = 0) -> None:
    """Every size has the value that it had, and every symbol lies in its bounds."""
    generator = random.Random(seed)
    for _ in range(50):
        values = {s.name: s.multiple * -(-generator.randrange(s.lower, 300) // s.multiple) for s in SYMBOLS}
        own = {s.name: int(v.evaluate(values)) for s, v in zip(found.symbols, found.values, strict=True)}
        for size in sizes:
            assert found.sizes[size].evaluate(own) == size.evaluate(values), size
        if any(size.evaluate(values) < 0 for size in sizes):
            continue
        for symbol in found.symbols:
            low, high = symbol.bounds
            assert low <= own[symbol.name] <= high, symbol
            assert own[symbol.name] % symbol.multiple == 0, symbol


def test_extents_behind_strided_layers_are_names() -> None:
    h, w = halved(dim("h"), 4), halved(dim("w"), 4)
    found = own_symbols([dim("n"), h, w], [halved(h, 1), w + 2, h * w * 8], SYMBOLS)
    assert [str(found.sizes[size]) for size in (dim("n"), h, w)] == ["d0", "d1", "d2"]
    assert found.values == (dim("n"), h, w)
    assert str(found.sizes[halved(h, 1)]) == "(d1 + 1) // 2"
    assert str(found.sizes[h * w * 8]) == "8*d1*d2"
    assert [str(symbol) for symbol in found.symbols] == ["d0 in 0..", "d1 in 1..", "d2 in 1..256"]


def test_depth_and_names_do_not_show() -> None:
    """Regions that differ in what their extents are made of alone get the same symbols."""
    shapes = [[dim("n"), halved(dim("h"), k), halved(dim("h"), k)] for k in range(5)]
    found = [own_symbols(shape, [halved(shape[1], 1)], SYMBOLS) for shape in shapes]
    assert len({str([one.symbols, list(map(str, one.sizes.values()))]) for one in found}) == 1
    assert len(found[0].symbols) == 2  # equal extents are one


def test_what_follows_from_another_size_is_no_name() -> None:
    h = halved(dim("h"), 3)
    found = own_symbols([h, halved(h, 1)], [], SYMBOLS)
    assert [str(size) for size in found.sizes.values()] == ["d0", "(d0 + 1) // 2"]
    result = own_symbols([halved(dim("h"), 3)], [dim("h")], SYMBOLS)
    check(result, [halved(dim("h"), 3), dim("h")])


def test_products_that_stand_together_are_one_name() -> None:
    a, b = halved(dim("h"), 3) // 2, halved(dim("w"), 2) // 3
    together = own_symbols([dim("n"), a * b, dim(120)], [dim("n") * a * b * 120], SYMBOLS)
    assert [str(size) for size in together.sizes.values()] == ["d0", "d1", "120", "120*d0*d1"]
    apart = own_symbols([dim("n"), a * b], [a, b], SYMBOLS)
    assert sorted(map(str, apart.sizes.values())) == ["d0", "d1", "d1*d2", "d2"]
    square = own_symbols([a * a], [], SYMBOLS)
    assert [str(size) for size in square.sizes.values()] == ["d0*d0"]


def test_bounds_and_divisors_are_kept() -> None:
    found = own_symbols([dim("m"), dim("w") - 2], [], SYMBOLS)
    assert [str(symbol) for symbol in found.symbols] == ["d0 in 32.. step 32", "d1 in 0..4094"]


@pytest.mark.parametrize("seed", range(40))
def test_random_sizes_keep_their_values(seed: int) -> None:
    generator = random.Random(seed)

    def size(depth: int) -> Dim:
        if depth == 0:
            return dim(generator.choice(["h", "w", "n", "m"]))
        a, b, k = size(depth - 1), size(generator.randrange(depth)), generator.randrange(1, 5)
        pick = generator.randrange(8)
        return [
            (a + k) // (k + 1), a // k + b, a * b, maximum(a, b - k), minimum(a, b, k + 3), a % (k + 1), a + k,
            a * k + b,
        ][pick]  # fmt: skip

    given = [size(generator.randrange(4)) for _ in range(generator.randrange(4))]
    derived = [size(generator.randrange(5)) for _ in range(generator.randrange(1, 4))]
    found = own_symbols(given, derived, SYMBOLS)
    check(found, [*given, *derived], seed)
    bounds = symbol_bounds(SYMBOLS)
    assert all(value.names() <= bounds.keys() for value in found.values)
    assert all(size.names() <= {symbol.name for symbol in found.symbols} for size in found.sizes.values())


def pools(b: GraphBuilder) -> list[Any]:
    """Windows with strides behind each other, and at the end what joins the last two."""
    x = before = b.input("x", float32, 2, "N")
    for _ in range(3):
        before = x
        x = b.apply_one(
            "reduce_window", x, window_dimensions=(1, 3), window_strides=(1, 2), padding=((0, 0), (1, 1)),
            window_dilations=(1, 1), reducer="maximum",
        )  # fmt: skip
    wide = b.apply_one("reduce", before, dimensions=(1,), reducer="sum")
    return [x, b.apply_one("add", wide, b.apply_one("reduce", x, dimensions=(1,), reducer="sum"))]


def test_layers_that_differ_in_depth_alone_share_a_kernel() -> None:
    b = GraphBuilder("pools", [Symbol("N", 1)])
    graph = b.build(pools(b))
    done = lower_graph(graph, CompileOptions())
    verify(done.plan)
    windows = [k for k in done.kernels if "reduce_window" in k.region.operators]
    assert len(windows) == 3
    assert len({k.kernel.name for k in windows}) == 1
    check_graph(graph, sizes=({"N": 70}, {"N": 1}, {"N": 64}))
