"""Statements: the start of a reduction, reducers of several components, scans, scatters, guards, accumulation types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same
from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.compute.builder import arg_reducer
from tilework.compute.nest import loop_program
from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Symbol, dim, loaded
from tilework.dtypes import DType
from tilework.errors import CodegenError
from tilework.loops.expressions import Load, Parameter, call, cast, constant
from tilework.loops.parse import parse_program
from tilework.loops.program import (
    Access,
    Argument,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Buffer,
    Compute,
    Intrinsic,
    Loop,
    LoopKind,
    LoopProgram,
    Node,
    Prefetch,
    Reducer,
    Storage,
    buffer,
    sequence,
)
from tilework.loops.reducers import reducer
from tilework.machine.finder import machine
from tilework.numerics import numerics

F = dtypes.float32


def whole(rng: np.random.Generator, *shape: int, dtype: DType = F, low: int = -4, high: int = 5) -> Any:
    return rng.integers(low, high, shape).astype(dtype.numpy)


def program(node: Node, *arguments: Argument) -> LoopProgram:
    names = sorted({n for a in arguments for d in a.buffer.shape for n in d.names()})
    return LoopProgram("p", arguments, node, tuple(Symbol(n) for n in names))


def row_reduction(
    kind: str, lanes: int, dtype: DType = F, accumulate: DType | None = None, *, init: bool = True
) -> LoopProgram:
    """y[i] = reduction of x[i, :], `lanes` columns at a time."""
    x, y = buffer("x", dtype, "M", "N"), buffer("y", dtype, "M")
    n = dim("N")
    column = dim("k") * lanes + dim("l") if lanes else dim("k")
    found = reducer(kind, accumulate or dtype)
    value = cast(Load("x", (dim("i"), column), dtype), accumulate or dtype)
    reduction = ("k", "l") if lanes else ("k",)
    start = found.identity if init else None
    node: Node = Compute(
        "y", (Access("y", (dim("i"),)),), (value,), found, start, reduction if init else (),
        (n - 1 - column,) if lanes else (), accumulate,
    )  # fmt: skip
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    node = Loop("i", dim("M"), "serial", Loop("k", n.ceildiv(lanes) if lanes else n, "serial", node))
    return program(node, Argument(x, "read"), Argument(y, "write" if init else "accumulate"))


@pytest.mark.parametrize("kind", ["sum", "product", "maximum", "minimum"])
@pytest.mark.parametrize("lanes", [0, 3, 8, 16])
@pytest.mark.parametrize("level", ["default", "strict"])
def test_reductions_over_lanes(kind: str, lanes: int, level: str) -> None:
    rng = np.random.default_rng(lanes)
    native = Native(row_reduction(kind, lanes), level)
    for shape in ((1, 1), (3, 7), (2, 16), (5, 33), (0, 4)):
        x = whole(rng, *shape, low=1, high=3)
        assert_same(native.program, {"x": x, "y": np.full(shape[0], 9, np.float32)}, native=native, level=level)


@pytest.mark.parametrize("kind", ["and", "or", "xor", "maximum"])
def test_reductions_of_booleans(kind: str) -> None:
    rng = np.random.default_rng(5)
    p = row_reduction(kind, 8, dtypes.boolean)
    x = rng.integers(0, 2, (4, 19)).astype(bool)
    assert_same(p, {"x": x, "y": np.zeros(4, bool)})


def test_old_contents_matter_without_a_start() -> None:
    rng = np.random.default_rng(6)
    for lanes in (0, 8):
        x = whole(rng, 3, 21)
        assert_same(row_reduction("sum", lanes, init=False), {"x": x, "y": whole(rng, 3)})


def test_nan_reaches_the_result() -> None:
    x = np.ones((2, 19), np.float32)
    x[1, 11] = np.nan
    for kind in ("maximum", "minimum", "sum"):
        for lanes in (0, 8):
            have = Native(row_reduction(kind, lanes)).run({"x": x, "y": np.zeros(2, np.float32)}).arrays["y"]
            assert not np.isnan(have[0])
            assert np.isnan(have[1])


def test_partial_results_in_another_type() -> None:
    # 4096 ones: float16 stops at 2048.
    x = np.ones((2, 4096), np.float16)
    for lanes in (0, 16):
        p = row_reduction("sum", lanes, dtypes.float16, dtypes.float32)
        have = Native(p).run({"x": x, "y": np.zeros(2, np.float16)}).arrays["y"]
        np.testing.assert_array_equal(have, [4096, 4096])


@pytest.mark.parametrize("lanes", [0, 4])
def test_start_ignores_guards_that_name_the_reduction(lanes: int) -> None:
    """y[i, j] = sum over k of x[i + k - 1, j] where that row exists: a column of zero padding."""
    rng = np.random.default_rng(8)
    n, m = dim("N"), dim("M")
    x, y = buffer("x", F, "N", "M"), buffer("y", F, "N", "M")
    j = dim("j") * lanes + dim("l") if lanes else dim("j")
    row = dim("i") + dim("k") - 1
    guards = (row, n - 1 - row, *((m - 1 - j,) if lanes else ()))
    node: Node = Compute(
        "y",
        (Access("y", (dim("i"), j)),),
        (Load("x", (row, j), F),),
        reducer("sum", F),
        (constant(0, F),),
        ("k",),
        guards,
    )
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    for order in ("kj", "jk"):
        body: Node = node
        for name in reversed(order):
            extent = dim(3) if name == "k" else m.ceildiv(lanes) if lanes else m
            body = Loop(name, extent, "serial", body)
        p = program(Loop("i", n, "serial", body), Argument(x, "read"), Argument(y, "write"))
        native = Native(p)
        for shape in ((1, 1), (2, 3), (5, 9)):
            assert_same(p, {"x": whole(rng, *shape), "y": np.full(shape, 7, np.float32)}, native=native)


def test_split_reduction_starts_once() -> None:
    """The reduction's loops are split and apart: only the very first iteration starts."""
    rng = np.random.default_rng(9)
    x, y = buffer("x", F, "M", "N"), buffer("y", F, "M")
    k = dim("ko") * 5 + dim("ki")
    node = Compute(
        "y", (Access("y", (dim("i"),)),), (Load("x", (dim("i"), k), F),), reducer("sum", F), (constant(3, F),),
        ("ko", "ki"), (dim("N") - 1 - k,),
    )  # fmt: skip
    nest = Loop("ko", dim("N").ceildiv(5), "serial", Loop("i", dim("M"), "serial", Loop("ki", dim(5), "serial", node)))
    p = program(nest, Argument(x, "read"), Argument(y, "write"))
    native = Native(p)
    for shape in ((1, 1), (3, 5), (4, 23)):
        assert_same(p, {"x": whole(rng, *shape), "y": np.zeros(shape[0], np.float32)}, native=native)


# -- several components ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize("lanes", [0, 8])
def test_pairs(kind: str, lanes: int) -> None:
    rng = np.random.default_rng(10)
    found = arg_reducer(kind, F)
    x = buffer("x", F, "M", "N")
    best, where = buffer("best", F, "M"), buffer("where", dtypes.int64, "M")
    column = dim("k") * lanes + dim("l") if lanes else dim("k")
    from tilework.loops.expressions import index

    node: Node = Compute(
        "pair", (Access("best", (dim("i"),)), Access("where", (dim("i"),))),
        (Load("x", (dim("i"), column), F), index(column)), found, found.identity, ("k", "l") if lanes else ("k",),
        (dim("N") - 1 - column,) if lanes else (),
    )  # fmt: skip
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    extent = dim("N").ceildiv(lanes) if lanes else dim("N")
    p = program(
        Loop("i", dim("M"), "parallel", Loop("k", extent, "serial", node)),
        Argument(x, "read"), Argument(best, "write"), Argument(where, "write"),
    )  # fmt: skip
    native = Native(p)
    for shape in ((1, 1), (4, 8), (6, 37)):
        data = whole(rng, *shape)
        data[0, -1] = np.nan
        arrays = {"x": data, "best": np.zeros(shape[0], np.float32), "where": np.zeros(shape[0], np.int64)}
        assert_same(p, arrays, native=native)


def test_a_reducer_of_the_user() -> None:
    """Mean and variance in one pass (Welford), in double precision, against two passes."""
    d = dtypes.float64
    left = tuple(Parameter(f"l{c}", d) for c in "nms")
    right = tuple(Parameter(f"r{c}", d) for c in "nms")
    (na, ma, sa), (nb, mb, sb) = left, right
    total = na + nb
    delta = mb - ma
    share = call("select", call("equal", total, 0.0), constant(0, d), nb / total)
    combine = (total, ma + delta * share, sa + sb + delta * delta * na * share)
    welford = Reducer("welford", left, right, combine, tuple(constant(0, d) for _ in "nms"))
    x = buffer("x", d, "M", "N")
    outs = [buffer(name, d, "M") for name in ("count", "mean", "square")]
    one = constant(1, d)
    node = Compute(
        "w", tuple(Access(b.name, (dim("i"),)) for b in outs), (one, Load("x", (dim("i"), dim("k")), d), constant(0,
        d)), welford, welford.identity, ("k",),
    )  # fmt: skip
    p = program(
        Loop("i", dim("M"), "serial", Loop("k", dim("N"), "serial", node)),
        Argument(x, "read"), *(Argument(b, "write") for b in outs),
    )  # fmt: skip
    data = np.random.default_rng(0).normal(5, 2, (3, 50))
    have = Native(p).run({"x": data, **{b.name: np.zeros(3) for b in outs}}).arrays
    np.testing.assert_allclose(have["mean"], data.mean(1), rtol=1e-13)
    np.testing.assert_allclose(have["square"] / 50, data.var(1), rtol=1e-12)


# -- order matters -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("exclusive", [False, True])
def test_scans(exclusive: bool) -> None:
    rng = np.random.default_rng(12)
    x, running = buffer("x", F, "M", "N"), buffer("running", F, "M", "N")
    rows, along = Axis("i", dim("M")), Axis("s", dim("N"), "scan")
    total = reducer("sum", F)
    value = Load("x", (dim("i"), dim("s")), F)
    stage = Stage("running", (running,), (rows, along), (value,), None, total, total.identity, exclusive=exclusive)
    p = loop_program(Computation("running", (x,), (running,), (stage,), (Symbol("M"), Symbol("N"))))
    native = Native(p)
    for shape in ((2, 9), (1, 1), (3, 0)):
        assert_same(p, {"x": whole(rng, *shape), "running": np.zeros(shape, np.float32)}, native=native)


def test_a_vector_loop_that_carries_a_value_runs_in_order() -> None:
    """y[l] = y[l - 1] + x[l]: the lanes depend on each other."""
    x, y = buffer("x", F, 8), buffer("y", F, 9)
    place = dim("l")
    node = Compute("y", (Access("y", (place + 1,)),), (Load("y", (place,), F) + Load("x", (place,), F),))
    p = program(Loop("l", dim(8), "vectorized", node), Argument(x, "read"), Argument(y, "accumulate"))
    assert_same(p, {"x": np.arange(8, dtype=np.float32), "y": np.zeros(9, np.float32)})


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("kind", ["sum", "maximum", "replace"])
def test_scatter(lanes: int, kind: str) -> None:
    """y[w[i]] = reducer(y[w[i]], x[i]), with places that meet."""
    rng = np.random.default_rng(13)
    n = dim("N")
    x, w, y = buffer("x", F, "N"), buffer("w", dtypes.int32, "N"), buffer("y", F, "M")
    i = dim("i") * lanes + dim("l") if lanes else dim("i")
    node: Node = Compute(
        "y",
        (Access("y", (loaded("w", (i,)),)),),
        (Load("x", (i,), F),),
        reducer(kind, F),
        guards=(n - 1 - i,) if lanes else (),
    )
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    arguments = (Argument(x, "read"), Argument(w, "read"), Argument(y, "accumulate"))
    p = program(Loop("i", n.ceildiv(lanes) if lanes else n, "serial", node), *arguments)
    native = Native(p)
    for count in (0, 1, 8, 21):
        arrays = {"x": whole(rng, count), "w": rng.integers(0, 5, count).astype(np.int32), "y": whole(rng, 5)}
        assert_same(p, arrays, native=native)
    with pytest.raises(CodegenError) as caught:
        Native(program(Loop("i", n.ceildiv(lanes) if lanes else n, "parallel", node), *arguments))
    assert caught.value.code == 1607


def test_last_writer_wins_across_lanes() -> None:
    x, y = buffer("x", F, 8), buffer("y", F, 1)
    for guard in ((), (dim(5) - dim("l"),)):
        node = Compute("y", (Access("y", (dim(0),)),), (Load("x", (dim("l"),), F),), guards=guard)
        p = program(Loop("l", dim(8), "vectorized", node), Argument(x, "read"), Argument(y, "write"))
        assert_same(p, {"x": np.arange(8, dtype=np.float32), "y": np.zeros(1, np.float32)})


# -- guards ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lanes", [0, 8])
def test_guards_that_depend_on_data(lanes: int) -> None:
    """Elements whose mask is set are copied; the mask is read only where it exists."""
    rng = np.random.default_rng(14)
    n = dim("N")
    x, m, y = buffer("x", F, "N"), buffer("m", dtypes.uint8, "N"), buffer("y", F, "N")
    i = dim("i") * lanes + dim("l") if lanes else dim("i")
    guards = (loaded("m", (i,)) - 1, n - 1 - i)
    node: Node = Compute("y", (Access("y", (i,)),), (Load("x", (i,), F) + 1.0,), guards=guards)
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    p = program(
        Loop("i", n.ceildiv(lanes) if lanes else n, "serial", node),
        Argument(x, "read"), Argument(m, "read"), Argument(y, "accumulate"),
    )  # fmt: skip
    native = Native(p)
    for count in (0, 3, 8, 20):
        arrays = {"x": whole(rng, count), "m": rng.integers(0, 3, count).astype(np.uint8), "y": whole(rng, count)}
        assert_same(p, arrays, native=native)


def test_rows_of_unequal_length() -> None:
    """The extent of a loop is loaded: sums over the rows of a sparse matrix."""
    rng = np.random.default_rng(15)
    x, offsets, y = buffer("x", F, "N"), buffer("o", dtypes.int64, dim("M") + 1), buffer("y", F, "M")
    begin, end = loaded("o", (dim("i"),)), loaded("o", (dim("i") + 1,))
    start = Compute("start", (Access("y", (dim("i"),)),), (constant(0, F),))
    node = Compute(
        "y", (Access("y", (dim("i"),)),), (Load("x", (begin + dim("k"),), F),), reducer("sum", F)
    )  # fmt: skip
    body = sequence(start, Loop("k", end - begin, "serial", node))
    p = LoopProgram(
        "rows", (Argument(x, "read"), Argument(offsets, "read"), Argument(y, "write")),
        Loop("i", dim("M"), "parallel", body), (Symbol("M"), Symbol("N")),
    )  # fmt: skip
    arrays = {"x": whole(rng, 9), "o": np.array([0, 3, 3, 9], np.int64), "y": np.zeros(3, np.float32)}
    assert_same(p, arrays, {"M": 3, "N": 9})


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_triangles(kind: LoopKind) -> None:
    """An extent that depends on a loop around: sums over the lower triangle, the rest untouched."""
    rng = np.random.default_rng(17)
    x, y, z = buffer("x", F, "N", "N"), buffer("y", F, "N"), buffer("z", F, "N", "N")
    i, j, k = dim("i"), dim("j"), dim("k")
    total = Compute("y", (Access("y", (i,)),), (Load("x", (i, j), F),), reducer("sum", F), (constant(0, F),), ("j",))
    copy = Compute("z", (Access("z", (i, k)),), (Load("x", (k, i), F),))
    body = sequence(Loop("j", i + 1, "serial", total), Loop("k", i, "serial", copy))
    p = program(Loop("i", dim("N"), kind, body), Argument(x, "read"), Argument(y, "write"), Argument(z, "accumulate"))
    native = Native(p)
    for n in (0, 1, 2, 9):
        arrays = {"x": whole(rng, n, n), "y": np.zeros(n, np.float32), "z": whole(rng, n, n)}
        assert_same(p, arrays, native=native)


def test_division_by_a_symbol() -> None:
    """A flat index is taken apart by a symbolic width."""
    rng = np.random.default_rng(16)
    x, y = buffer("x", F, "A", "B"), buffer("y", F, dim("A") * dim("B"))
    i = dim("i")
    node = Compute("y", (Access("y", (i,)),), (Load("x", (i // dim("B"), i % dim("B")), F),))
    p = program(Loop("i", dim("A") * dim("B"), "serial", node), Argument(x, "read"), Argument(y, "write"))
    native = Native(p)
    for shape in ((3, 4), (1, 7), (0, 3), (3, 0)):
        assert_same(p, {"x": whole(rng, *shape), "y": np.zeros(shape[0] * shape[1], np.float32)}, native=native)


@pytest.mark.parametrize("lanes", [0, 8])
def test_negative_numerators_round_down(lanes: int) -> None:
    x, y = buffer("x", F, 40), buffer("y", F, 40)
    i = dim("i") * lanes + dim("l") if lanes else dim("i")
    place = (i - 20) // 3 + 7 + (i - 25) % 7
    node: Node = Compute("y", (Access("y", (i,)),), (Load("x", (place,), F),))
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    p = program(Loop("i", dim(40 // (lanes or 1)), "serial", node), Argument(x, "read"), Argument(y, "write"))
    assert_same(p, {"x": np.arange(40, dtype=np.float32), "y": np.zeros(40, np.float32)})


@pytest.mark.parametrize("width", [16, 48, 24, 20])
@pytest.mark.parametrize("symbolic", [False, True])
def test_lanes_stay_together_under_a_division(width: int, symbolic: bool) -> None:
    """A flat loop over rows: where rows are whole vectors, their elements are loaded as vectors."""
    w = dim("W") if symbolic else dim(width)
    b, x, y = buffer("b", F, w), buffer("x", F, dim("N") * w), buffer("y", F, dim("N") * w)
    i = dim("i") * 8 + dim("l")
    node = Compute(
        "y", (Access("y", (i,)),), (Load("x", (i,), F) + Load("b", ((i + 8) % w,), F) + Load("b", (i % w,), F),)
    )
    nest = Loop("i", dim("N") * w // 8, "serial", Loop("l", dim(8), "vectorized", node))
    symbols = (Symbol("N", multiple=2), *((Symbol("W", 1, multiple=4 if width == 20 else 8),) if symbolic else ()))
    p = LoopProgram("p", (Argument(b, "read"), Argument(x, "read"), Argument(y, "write")), nest, symbols)
    native = Native(p)
    assert ("gather" in native.text.ir) == (width == 20)
    rng = np.random.default_rng(width)
    for n in (0, 2, 6):
        arrays = {"b": whole(rng, width), "x": whole(rng, n * width), "y": np.zeros(n * width, np.float32)}
        assert_same(p, arrays, {"N": n, "W": width} if symbolic else {"N": n}, native=native)


# -- other nodes -------------------------------------------------------------------------------------------------------
def test_copies_barriers_prefetches_and_intrinsics_run_as_they_are_meant() -> None:
    x, y = buffer("x", F, "N"), buffer("y", F, "N")
    held = Buffer("held", (dim(4),), F, "shared")
    i = dim("i") * 4
    copy = AsyncCopy(
        "copy", Access("held", (dim("j"),)), Access("x", (i + dim("j"),)), "g", (dim("N") - 1 - i - dim("j"),)
    )
    use = Compute(
        "use",
        (Access("y", (i + dim("k"),)),),
        (Load("held", (dim("k"),), F) * 2.0,),
        guards=(dim("N") - 1 - i - dim("k"),),
    )
    body = sequence(
        Prefetch("ahead", Access("x", (i + 64,)), (dim("N") - 1 - i - 64,)),
        Loop("j", dim(4), "serial", copy),
        AsyncWait("g"),
        Barrier("block"),
        Intrinsic("nothing", Loop("k", dim(4), "serial", use)),
    )
    p = program(
        Storage(held, Loop("i", dim("N").ceildiv(4), "serial", body)), Argument(x, "read"), Argument(y, "write")
    )
    for count in (0, 4, 11, 200):
        assert_same(p, {"x": np.arange(count, dtype=np.float32), "y": np.zeros(count, np.float32)})


def test_lanes_are_fetched_a_cache_line_at_a_time_and_only_past_the_caches() -> None:
    text = """program p
  read x: float32[{n}]
  read z: float32[{n}]
  write y: float32[{n}]

  serial i < {trips}
    vectorized near < 32
      prefetch ahead: x[32*i + near + 1024] once
    vectorized far < 32
      prefetch apart: z[{n} - 1 - 32*i - far] once
    vectorized l < 32
      y: y[32*i + l] = x[32*i + l] + z[32*i + l]
"""
    sizes = {name: 1 << bits for name, bits in (("small", 10), ("large", 26))}
    found: dict[str, list[str]] = {}
    for name, n in sizes.items():
        parsed = parse_program(text.format(n=n, trips=n // 32))
        made = emit_kernel(parsed, machine("x86-64-v3"), numerics("default"), streaming=frozenset({"y"}))
        found[name] = [line for line in made.ir.splitlines() if "call void @llvm.prefetch" in line]
    assert found["small"] == []
    # 128 bytes, read, to be used once; lanes that run backwards are left to the hardware
    assert len(found["large"]) == 2
    assert all(line.endswith("i32 0, i32 0, i32 1)") for line in found["large"])
    parsed = parse_program(text.format(n=1024, trips=32))
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 1024), np.float32)
    assert_same(parsed, {"x": x, "z": z, "y": np.zeros(1024, np.float32)})


def test_refusals() -> None:
    x, y = buffer("x", F, "N"), buffer("y", F, "N")
    arguments = (Argument(x, "read"), Argument(y, "write"))

    def refused(node: Node, *more: Argument) -> int:
        with pytest.raises(CodegenError) as caught:
            Native(program(node, *(more or arguments)))
        assert caught.value.hint
        return caught.value.code

    copy = Compute("y", (Access("y", (dim("i"),)),), (Load("x", (dim("i"),), F),))
    assert refused(Loop("i", dim("N"), "vectorized", copy)) == 1602
    assert refused(Loop("i", dim(65), "vectorized", copy)) == 1602
    assert refused(Loop("i", dim("N"), "thread.x", copy)) == 1604
    assert refused(Loop("i", dim("N"), "parallel", Compute("y", (Access("y", (dim(0),)),), copy.values))) == 1607
    assert refused(Compute("y", (Access("nowhere", (dim("i"),)),), (constant(0, F),))) == 1605
    assert refused(Loop("i", dim("N"), "serial", Compute("y", (Access("y", (dim("z"),)),), copy.values))) == 1605
    small = buffer("x", dtypes.complex64, "N"), buffer("y", dtypes.complex64, "N")
    value = Load("x", (dim("i"),), small[0].dtype)
    moved = Loop("i", dim("N"), "serial", Compute("y", (Access("y", (dim("i"),)),), (value,)))
    assert refused(moved, Argument(small[0], "read"), Argument(small[1], "write")) == 1603
    grows = Buffer("grows", (dim("i") * 1000,), F)
    assert refused(Loop("i", dim("N"), "serial", Storage(grows, copy))) == 1606
