"""Register storage: values carried round loops, not memory; and the same values where it cannot be so."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim
from tilework.loops.expressions import Load, constant
from tilework.loops.program import (
    Access,
    Argument,
    Buffer,
    Compute,
    Loop,
    LoopKind,
    LoopProgram,
    Node,
    Storage,
    buffer,
    sequence,
)
from tilework.loops.reducers import reducer

F = dtypes.float32


def tile(rows: int, lanes: int, vectors: int, *, symbolic: bool = True, scope: str = "register") -> LoopProgram:
    """c = a b with a tile of accumulators kept while the reduction runs."""
    names = ("M", "N", "K") if symbolic else (4 * rows, 2 * lanes * vectors, 7)
    m, n, k = (dim(x) for x in names)
    a, b, c = buffer("a", F, m, k), buffer("b", F, k, n), buffer("c", F, m, n)
    held = Buffer("held", (dim(rows), dim(lanes * vectors)), F, "register" if scope == "register" else "global")

    def place(tag: str) -> tuple[Dim, Dim]:
        return dim(f"i1{tag}"), dim(f"j1{tag}") * lanes + dim(f"j2{tag}")

    def at(tag: str) -> tuple[Dim, Dim]:
        i, j = place(tag)
        return dim("i0") * rows + i, dim("j0") * (lanes * vectors) + j

    def nest(tag: str, node: Node) -> Node:
        inner = Loop(f"j1{tag}", dim(vectors), "unrolled", Loop(f"j2{tag}", dim(lanes), "vectorized", node))
        return Loop(f"i1{tag}", dim(rows), "unrolled", inner)

    def edge(tag: str) -> tuple[Dim, ...]:
        i, j = at(tag)
        return m - 1 - i, n - 1 - j

    start = nest(".s", Compute("start", (Access("held", place(".s")),), (constant(0, F),)))
    i, j = at("")
    product = Load("a", (i, dim("k")), F) * Load("b", (dim("k"), j), F)
    update = Compute("update", (Access("held", place("")),), (product,), reducer("sum", F), guards=edge(""))
    end = nest(".e", Compute("end", (Access("c", at(".e")),), (Load("held", place(".e"), F),), guards=edge(".e")))
    body = Storage(held, sequence(start, Loop("k", k, "serial", nest("", update)), end))
    tiles = Loop("i0", m.ceildiv(rows), "serial", Loop("j0", n.ceildiv(lanes * vectors), "serial", body))
    symbols = tuple(Symbol(x) for x in names if isinstance(x, str))
    return LoopProgram("tile", (Argument(a, "read"), Argument(b, "read"), Argument(c, "write")), tiles, symbols)


@pytest.mark.parametrize(("rows", "lanes", "vectors"), [(1, 4, 1), (4, 8, 2), (3, 5, 3), (8, 16, 3)])
@pytest.mark.parametrize("scope", ["register", "global"])
def test_tiles(rows: int, lanes: int, vectors: int, scope: str) -> None:
    rng = np.random.default_rng(rows)
    native = Native(tile(rows, lanes, vectors, scope=scope))
    for m, n, k in (
        (1, 1, 1),
        (rows, lanes * vectors, 3),
        (2 * rows + 1, lanes * vectors + 2, 4),
        (0, 3, 2),
        (2, 3, 0),
    ):
        a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
        arrays = {"a": a.astype(np.float32), "b": b.astype(np.float32), "c": np.zeros((m, n), np.float32)}
        assert_same(native.program, arrays, {"M": m, "N": n, "K": k}, native=native)


def bodies(text: str, vectors: int) -> list[str]:
    """The bodies of loops that carry so many vectors."""
    parts = [part.split("\nend")[0] for part in re.split(r"\n(?=loop\d+:)", text)]
    return [part for part in parts if part.count("phi <16 x float>") == vectors]


def test_accumulators_are_values() -> None:
    text = Native(tile(4, 16, 2, symbolic=False)).text.ir
    inner, *_ = bodies(text, 8)
    assert inner.count("@llvm.fma.v16f32") == 8
    assert "store" not in inner
    assert "alloca" not in text


def test_whole_tiles_have_no_masks() -> None:
    text = Native(tile(4, 16, 2)).text.ir
    whole, *_ = bodies(text, 8)
    assert "masked" not in whole
    assert "select" not in whole
    assert text.count("br i1", text.index("loop")) > 4
    assert "masked.store" in text


def test_other_orders_of_index_stay_in_memory() -> None:
    """A register buffer indexed by a serial loop cannot be values; it works all the same."""
    held = Buffer("held", (dim(6),), F, "register")
    x, y = buffer("x", F, "N", 6), buffer("y", F, "N", 6)
    i = dim("i")
    write = Compute("w", (Access("held", (5 - dim("a"),)),), (Load("x", (i, dim("a")), F),))
    read = Compute("r", (Access("y", (i, dim("b"))),), (Load("held", (dim("b"),), F),))
    body = Storage(held, sequence(Loop("a", dim(6), "serial", write), Loop("b", dim(6), "serial", read)))
    for kind in ("serial", "parallel"):
        p = LoopProgram(
            "p",
            (Argument(x, "read"), Argument(y, "write")),
            Loop("i", dim("N"), kind, body),
            (Symbol("N"),),  # type: ignore[arg-type]
        )
        assert_same(p, {"x": np.arange(18, dtype=np.float32).reshape(3, 6), "y": np.zeros((3, 6), np.float32)})


@pytest.mark.parametrize("scope", ["register", "global"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_every_lane_has_its_own(scope: str, shape: tuple[int, ...]) -> None:
    """Storage inside a vectorised loop belongs to one lane; a serial loop inside reduces into it."""
    held = Buffer("held", tuple(map(dim, shape)), F, "register" if scope == "register" else "global")
    x, y = buffer("x", F, "N", 16), buffer("y", F, 16)
    place = tuple(dim(1) for _ in shape)
    access = (Access("held", place),)
    start = Compute("s", access, (constant(1, F),))
    update = Compute("u", access, (Load("x", (dim("k"), dim("l")), F),), reducer("sum", F))
    end = Compute("e", (Access("y", (dim("l"),)),), (Load("held", place, F),))
    body = Storage(held, sequence(start, Loop("k", dim("N"), "serial", update), end))
    p = LoopProgram(
        "p", (Argument(x, "read"), Argument(y, "write")), Loop("l", dim(16), "vectorized", body), (Symbol("N"),)
    )
    native = Native(p)
    for n in (0, 1, 5):
        data = np.arange(n * 16, dtype=np.float32).reshape(n, 16)
        assert_same(p, {"x": data, "y": np.zeros(16, np.float32)}, native=native)


def test_one_element_of_a_vector() -> None:
    """Written as a vector, read and changed by constant index."""
    held = Buffer("held", (dim(8),), F, "register")
    x, y = buffer("x", F, 8), buffer("y", F, 8)
    load = Compute("l", (Access("held", (dim("a"),)),), (Load("x", (dim("a"),), F),))
    change = Compute("c", (Access("held", (dim(3),)),), (Load("held", (dim(5),), F) + Load("held", (dim("u"),), F),))
    store = Compute("s", (Access("y", (dim("b"),)),), (Load("held", (dim("b"),), F),))
    nodes: tuple[tuple[str, int, LoopKind, Node], ...] = (
        ("a", 8, "vectorized", load), ("u", 2, "unrolled", change), ("b", 8, "vectorized", store),
    )  # fmt: skip
    body = sequence(*(Loop(v, dim(n), kind, node) for v, n, kind, node in nodes))
    p = LoopProgram("p", (Argument(x, "read"), Argument(y, "write")), Storage(held, body))
    assert_same(p, {"x": np.arange(8, dtype=np.float32), "y": np.zeros(8, np.float32)})


@pytest.mark.parametrize("lanes", [0, 8])
def test_plain_reductions_get_accumulators(lanes: int) -> None:
    """The plain nest of a product keeps its sums out of memory, too."""
    a, b, c = buffer("a", F, "M", "K"), buffer("b", F, "K", "N"), buffer("c", F, "M", "N")
    j = dim("j") * lanes + dim("l") if lanes else dim("j")
    product = Load("a", (dim("i"), dim("k")), F) * Load("b", (dim("k"), j), F)
    node: Node = Compute(
        "c", (Access("c", (dim("i"), j)),), (product,), reducer("sum", F), (constant(0, F),), ("k",),
        (dim("N") - 1 - j,) if lanes else (),
    )  # fmt: skip
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    nest = Loop("j", dim("N").ceildiv(lanes) if lanes else dim("N"), "serial", Loop("k", dim("K"), "serial", node))
    p = LoopProgram(
        "p", (Argument(a, "read"), Argument(b, "read"), Argument(c, "write")), Loop("i", dim("M"), "serial", nest),
        (Symbol("M"), Symbol("N"), Symbol("K", 1)),
    )  # fmt: skip
    text = Native(p).text.ir
    kind = "<8 x float>" if lanes else "float"
    assert f"phi {kind}" in text
