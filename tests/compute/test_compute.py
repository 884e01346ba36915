"""Index notation as a person writes it, its plain nests against numpy, and every fault of a computation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tilework import dtypes
from tilework.compute import builder as te
from tilework.compute.nest import loop_program
from tilework.compute.notation import Axis, Computation, Stage
from tilework.compute.text import computation_text
from tilework.compute.verify import faults_of, injective, verify
from tilework.dims import Dim, Symbol, dim, maximum, minimum
from tilework.errors import LoopProgramError, RunError, VerificationError
from tilework.loops.equal import difference
from tilework.loops.expressions import Load, constant
from tilework.loops.interpret import interpret
from tilework.loops.parse import parse_program
from tilework.loops.program import Buffer, buffer
from tilework.loops.reducers import reducer
from tilework.loops.text import program_text
from tilework.loops.verify import faults_of as program_faults

F, INT = dtypes.float32, dtypes.int32
Array = np.ndarray


def run(computation: Computation, **inputs: Array) -> list[Array]:
    """The outputs, with the whole way checked: verify, text, parse, run."""
    verify(computation)
    program = loop_program(computation)
    assert program_faults(program) == []
    back = parse_program(program_text(program))
    assert difference(program, back) is None
    sizes: dict[str, int] = {}
    for found in computation.inputs:
        for extent, size in zip(found.shape, inputs[found.name].shape, strict=True):
            if len(extent.names()) == 1 and extent == dim(next(iter(extent.names()))):
                sizes[str(extent)] = size
    outputs = [np.zeros([int(e.evaluate(sizes)) for e in out.shape], out.dtype.numpy) for out in computation.outputs]
    arrays = dict(inputs) | {out.name: array for out, array in zip(computation.outputs, outputs, strict=True)}
    interpret(back, arrays, sizes)
    assert computation_text(computation).startswith("computation")
    return outputs


def small(random: np.random.Generator, *shape: int, dtype: dtypes.DType = F) -> Array:
    return random.integers(-4, 5, shape).astype(dtype.numpy)


RANDOM = np.random.default_rng(11)


def test_the_module_s_own_example() -> None:
    a, b = te.placeholder("a", F, "M", "K"), te.placeholder("b", F, "K", "N")
    k = te.reduce_axis("K", "k")
    c = te.compute("c", ("M", "N"), lambda i, j: te.sum(a[i, k] * b[k, j], k))
    found = te.computation("matmul", [a, b], [c])
    for m, n, depth in ((2, 3, 4), (1, 1, 1), (5, 1, 2)):
        x, y = small(RANDOM, m, depth), small(RANDOM, depth, n)
        np.testing.assert_array_equal(run(found, a=x, b=y)[0], x @ y)
    empty = te.computation("matmul", [a, b], [c], [Symbol(name) for name in "MNK"])
    for m, n, depth in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        x, y = small(RANDOM, m, depth), small(RANDOM, depth, n)
        np.testing.assert_array_equal(run(empty, a=x, b=y)[0], x @ y)
    assert computation_text(found) == (
        "computation matmul: a: float32[M, K], b: float32[K, N] -> c: float32[M, N]\n"
        "  symbol M in 1..\n  symbol K in 1..\n  symbol N in 1..\n"
        "  c[i, j] = sum over k < K of a[i, k] * b[k, j]  from 0.0  for i < M, j < N\n"
    )


def test_a_chain_renames_its_axes_and_keeps_temporaries() -> None:
    x = te.placeholder("x", F, "M", "N")
    k = te.reduce_axis("N")
    top = te.compute("top", ("M",), lambda i: te.max(x[i, k], k))
    shifted = te.compute("shifted", ("M", "N"), lambda i, j: te.call("exp", x[i, j] - top[i]))
    total = te.compute("total", ("M",), lambda i: te.sum(shifted[i, k], k))
    out = te.compute("out", ("M", "N"), lambda i, j: shifted[i, j] / total[i])
    found = te.computation("softmax", [x], [out])
    assert [b.name for b in found.temporaries] == ["top", "shifted", "total"]
    assert len({axis.name for stage in found.stages for axis in stage.axes}) == 8
    data = small(RANDOM, 4, 7)
    exact = np.exp(data - data.max(1, keepdims=True))
    np.testing.assert_allclose(run(found, x=data)[0], exact / exact.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_reductions_over_nothing_give_their_identity(taken: int) -> None:
    x = te.placeholder("x", F, 3, "N")
    k = te.reduce_axis("N")
    for name, reference in (("sum", np.sum), ("product", np.prod)):
        y = te.compute("y", (3,), lambda i: te.reduction(name, x[i, k], k))  # noqa: B023 - called at once
        found = te.computation("r", [x], [y], [Symbol("N")])
        data = small(RANDOM, 3, taken)
        np.testing.assert_array_equal(run(found, x=data)[0], reference(data, axis=1))
    largest = te.compute("y", (3,), lambda i: te.max(x[i, k], k))
    data = small(RANDOM, 3, taken)
    expected = data.max(1) if taken else np.full(3, -math.inf)
    np.testing.assert_array_equal(run(te.computation("r", [x], [largest], [Symbol("N")]), x=data)[0], expected)
    # an extent that is zero for good
    none = te.placeholder("x", F, 3, 0)
    nothing = te.reduce_axis(0)
    y = te.compute("y", (3,), lambda i: te.sum(none[i, nothing], nothing))
    np.testing.assert_array_equal(run(te.computation("r", [none], [y]), x=np.zeros((3, 0), np.float32))[0], [0, 0, 0])


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("extent", [0, 1, 6])
def test_scans(exclusive: bool, extent: int) -> None:
    x = te.placeholder("x", INT, "N", 3)
    s = te.scan_axis("N")
    y = te.compute("y", (s, 3), lambda n, j: te.scan(te.sum(x[n, j], s), exclusive=exclusive))
    data = small(RANDOM, extent, 3, dtype=INT)
    expected = np.cumsum(data, 0, dtype=np.int32) - (data if exclusive else 0)
    np.testing.assert_array_equal(run(te.computation("cumsum", [x], [y], [Symbol("N")]), x=data)[0], expected)


def test_scans_of_several_components_and_wider_sums() -> None:
    x = te.placeholder("x", F, 2, 9)
    s = te.scan_axis(9)
    best = te.arg_reducer("argmax", F, INT)
    v, p = te.compute_several(("v", "p"), (2, s), lambda i, n: te.reduction(best, (x[i, n], te.index(n, INT)), s))
    data = small(RANDOM, 2, 9)
    value, place = run(te.computation("running", [x], [v, p]), x=data)
    np.testing.assert_array_equal(value, np.maximum.accumulate(data, 1))
    np.testing.assert_array_equal(place, [[row[: n + 1].argmax() for n in range(9)] for row in data])
    half = te.placeholder("h", dtypes.bfloat16, 600)
    s = te.scan_axis(600)
    y = te.compute("y", (s,), lambda n: te.sum(half[n], s, accumulate=F))
    ones = np.ones(600, dtypes.bfloat16.numpy)
    (found,) = run(te.computation("long", [half], [y]), h=ones)
    np.testing.assert_array_equal(found, (np.arange(600, dtype=np.float32) + 1).astype(found.dtype))


def test_sums_in_a_wider_type() -> None:
    half = dtypes.bfloat16
    x = te.placeholder("x", half, 2, 700)
    k = te.reduce_axis(700)
    y = te.compute("y", (2,), lambda i: te.sum(x[i, k], k, accumulate=F))
    assert y.dtype == half
    (found,) = run(te.computation("s", [x], [y]), x=np.ones((2, 700), half.numpy))
    assert [float(v) for v in found] == [700.0, 700.0]  # in bfloat16 alone the sum stops at 256


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_positions_of_extremes(kind: str) -> None:
    x = te.placeholder("x", F, "M", 7)
    k = te.reduce_axis(7)
    v, p = te.compute_several(
        ("v", "p"), ("M",), lambda i: te.reduction(te.arg_reducer(kind, F), (x[i, k], te.index(k.name)), k)
    )
    data = small(RANDOM, 40, 7)
    data[3, 2] = data[3, 5] = math.nan
    data[4] = math.inf if kind == "argmin" else -math.inf
    data[5] = 1
    value, place = run(te.computation(kind, [x], [v, p]), x=data)
    np.testing.assert_array_equal(place, getattr(data, kind)(1))
    np.testing.assert_array_equal(value, (data.max if kind == "argmax" else data.min)(1))


def test_arg_reducers_may_be_regrouped() -> None:
    """Combining halves, in either order, gives what one pass gives: the reducer is associative and commutative."""
    from tilework.loops.expressions import Constant, Expression, Parameter, rewrite
    from tilework.loops.scalar_values import scalar_value

    found = te.arg_reducer("argmax", F)

    def combine(a: tuple[float, int], b: tuple[float, int]) -> tuple[float, int]:
        given = {p.name: v for p, v in zip((*found.left, *found.right), (*a, *b), strict=True)}

        def leaf(e: Expression) -> Expression:
            return Constant(given[e.name], e.dtype) if isinstance(e, Parameter) else e

        def value(e: Expression) -> float:
            if isinstance(e, Constant):
                return e.value
            parts = [value(c) for c in e.arguments]  # type: ignore[attr-defined]
            return scalar_value(e.function, e.arguments[-1].dtype, *parts)  # type: ignore[attr-defined]

        first, second = (value(rewrite(c, leaf)) for c in found.combine)
        return float(first), int(second)

    identity = (float(found.identity[0].value), int(found.identity[1].value))
    row = [1.0, math.nan, 3.0, 3.0, -math.inf, math.nan]
    pairs: list[tuple[float, int]] = [(v, n) for n, v in enumerate(row)] + [identity]
    random = np.random.default_rng(0)
    for _ in range(60):
        order = [int(n) for n in random.permutation(len(pairs))[: int(random.integers(1, len(pairs) + 1))]]
        chosen = [pairs[n] for n in order]
        while len(chosen) > 1:
            n = int(random.integers(len(chosen) - 1))
            chosen[n : n + 2] = [combine(chosen[n], chosen[n + 1])]
        real = [pairs[n] for n in order if pairs[n][1] >= 0]
        nans = [p for p in real if math.isnan(p[0])]
        expected = (
            min(nans, key=lambda p: p[1]) if nans else max(real, key=lambda p: (p[0], -p[1])) if real else identity
        )
        assert repr(chosen[0]) == repr((float(expected[0]), expected[1]))


def test_scatter_makes_a_changed_copy() -> None:
    place, updates = te.placeholder("place", INT, "L"), te.placeholder("updates", F, "L")
    old = te.placeholder("old", F, "M")
    entry = te.reduce_axis("L", "entry")
    new = te.scatter("new", old, [entry], [place.at(entry)], updates[entry], "sum")
    twice = te.compute("twice", ("M",), lambda i: new[i] + old[i])
    found = te.computation("scatter", [place, updates, old], [new, twice])
    where, what, base = RANDOM.integers(0, 4, 9).astype(np.int32), small(RANDOM, 9), small(RANDOM, 4)
    expected = base.copy()
    np.add.at(expected, where, what)
    result, doubled = run(found, place=where, updates=what, old=base)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(doubled, expected + base)
    where[3] = -1
    with pytest.raises(RunError) as caught:
        run(found, place=where, updates=what, old=base)
    assert caught.value.code == 1801
    last = te.scatter("last", old, [entry], [place.at(entry)], updates[entry], "replace")
    where[3] = 0
    base2 = base.copy()
    for at, value in zip(where, what, strict=True):
        base2[at] = value
    found = te.computation("scatter", [place, updates, old], [last])
    np.testing.assert_array_equal(run(found, place=where, updates=what, old=base)[0], base2)


def test_gathers_clamps_and_conditions() -> None:
    rows, x = te.placeholder("rows", dtypes.int64, 5), te.placeholder("x", F, "M", 3)
    picked = te.compute("picked", (5, 3), lambda i, j: x[rows.at(i), j])
    clamped = te.compute("clamped", (5, 3), lambda i, j: picked[minimum(maximum(i - 1, 0), 3), j])
    signed = te.compute(
        "signed", (5, 3),
        lambda i, j: te.select(te.less(clamped[i, j], 0.0), -1.0, te.cast(te.greater(clamped[i, j], 0.0), F)),
    )  # fmt: skip
    found = te.computation("gather", [rows, x], [picked, signed])
    data, at = small(RANDOM, 4, 3), np.array([3, 0, 0, 2, 1])
    first, second = run(found, rows=at, x=data)
    np.testing.assert_array_equal(first, data[at])
    np.testing.assert_array_equal(second, np.sign(data[at][[0, 0, 1, 2, 3]]))


def test_guarded_stages_fill_the_rest_from_another() -> None:
    x = te.placeholder("x", F, "N")
    s = dim("N")
    window = te.reduce_axis(3, "w")
    y = te.compute("y", ("N",), lambda i: te.reduction("sum", x[i + "w" - 1], window, where=(i + "w" - 1, s - i - "w")))
    data = small(RANDOM, 6)
    (found,) = run(te.computation("blur", [x], [y]), x=data)
    np.testing.assert_array_equal(found, np.convolve(data, [1, 1, 1], "same"))
    part = te.compute("part", (6,), lambda i: te.where(te.constant(1, F) * x[i], i - 2))
    outputs = np.full(6, 9, np.float32)
    interpret(loop_program(te.computation("part", [x], [part])), {"x": data, "part": outputs})
    np.testing.assert_array_equal(outputs, [9, 9, *data[2:]])


def test_recurrences_read_what_they_wrote() -> None:
    i = dim("i")
    x, y = buffer("x", F, 8), buffer("y", F, 9)
    start = Stage("first", (y,), (), (constant(1, F),), (dim(0),))
    step = Stage("step", (y,), (Axis("i", dim(8), "scan"),), (Load("y", (i,), F) * 2 + Load("x", (i,), F),), (i + 1,))
    found = Computation("recurrence", (x,), (y,), (start, step))
    data = small(RANDOM, 8)
    expected = [1.0]
    for value in data:
        expected.append(expected[-1] * 2 + float(value))
    np.testing.assert_array_equal(run(found, x=data)[0], expected)


def test_builder_misuse() -> None:
    x = te.placeholder("x", F, 3, 4)
    k = te.reduce_axis(4)
    wrong = [
        lambda: x[0],
        lambda: te.compute("y", (3, 4), lambda i: x[i, 0]),
        lambda: te.compute("y", (3,), lambda i: (x[i, 0], x[i, 1])),
        lambda: te.reduction("sum", (x[0, k], x[1, k]), k),
        lambda: te.scan(te.sum(x[0, k], k)),
        lambda: te.compute("y", (3,), lambda i: te.sum(x[i, "s"], te.scan_axis(4))),
        lambda: te.arg_reducer("argmid", F),
        lambda: te.computation("c", [], [te.compute("y", (3,), lambda i: x[i, 0])]),
    ]
    for attempt in wrong:
        with pytest.raises(LoopProgramError) as caught:
            attempt()
        assert caught.value.code == 1352


# -- faults ------------------------------------------------------------------------------------------------------------
ROW, J = dim("i"), dim("j")
X, Y, T = buffer("x", F, 4, 6), buffer("y", F, 4, 6), buffer("t", F, 4, 6)
ROWS, COLUMNS = Axis("i", dim(4)), Axis("j", dim(6))
LOAD = Load("x", (ROW, J), F)
SUM = reducer("sum", F)
ZERO = (constant(0, F),)


def stage(**rest: object) -> Stage:
    return replace(Stage("s", (Y,), (ROWS, COLUMNS), (LOAD,)), **rest)  # type: ignore[arg-type]


def computation(*stages: Stage, outputs: Sequence[Buffer] = (Y,), symbols: Sequence[Symbol] = ()) -> Computation:
    return Computation("c", (X,), tuple(outputs), stages, tuple(symbols))


SCAN = Axis("j", dim(6), "scan")
OVER = Axis("k", dim(3), "reduction")
BAD: dict[str, tuple[int, Computation]] = {
    "an axis twice": (1350, computation(stage(axes=(ROWS, ROWS)))),
    "an axis in two stages": (1350, computation(stage(), stage(name="z", targets=(T,)))),
    "an axis called like a symbol": (1350, computation(stage(), symbols=(Symbol("i"),))),
    "two stages of one name": (
        1350, computation(stage(), te.rename_axes(stage(targets=(T,)), {"i": "i2", "j": "j2"})),
    ),
    "two buffers of one name": (1350, computation(stage(), outputs=(Y, buffer("x", F, 1)))),
    "an output twice": (1350, computation(stage(), outputs=(Y, Y))),
    "no target": (1350, computation(stage(), stage(name="z", targets=(), axes=()))),
    "values without targets": (1350, computation(stage(values=(LOAD, LOAD)))),
    "an unknown buffer": (1350, computation(stage(values=(Load("q", (ROW, J), F),)))),
    "a scan without init": (1351, computation(stage(axes=(ROWS, SCAN), reducer=SUM))),
    "a scan that reduces": (
        1351, computation(stage(axes=(ROWS, SCAN, OVER), reducer=SUM, init=ZERO)),
    ),
    "two scan axes": (
        1351, computation(stage(axes=(replace(ROWS, kind="scan"), SCAN), reducer=SUM, init=ZERO)),
    ),
    "a scan that reads its target": (
        1351, computation(stage(axes=(ROWS, SCAN), values=(Load("y", (ROW, J), F),), reducer=SUM, init=ZERO)),
    ),
    "exclusive without a scan": (1351, computation(stage(reducer=SUM, init=ZERO, exclusive=True))),
    "an init without a reducer": (1351, computation(stage(init=ZERO))),
    "writes that meet": (1353, computation(stage(index=(ROW, ROW % 6)))),
    "writes that may meet": (1353, computation(stage(index=(ROW, J // 2)))),
    "reduction axes without a reducer": (1353, computation(stage(axes=(ROWS, COLUMNS, OVER)))),
    "an init at reduced elements": (
        1353,
        computation(stage(axes=(ROWS, replace(COLUMNS, kind="reduction")), index=(ROW, J), reducer=SUM, init=ZERO)),
    ),
    "reading before writing": (
        1354, computation(te.rename_axes(stage(name="z", values=(Load("t", (ROW, J), F),)), {"i": "a", "j": "b"}),
                          stage(targets=(T,))),
    ),
    "an output nobody writes": (1354, computation(stage(), outputs=(Y, T))),
    "adding to nothing": (
        1354, computation(stage(), te.rename_axes(stage(name="z", targets=(T,), reducer=SUM), {"i": "a", "j": "b"})),
    ),
    "types": (1323, computation(stage(values=(te.index(ROW),)))),
    "bounds": (1325, computation(stage(values=(Load("x", (ROW + 1, J), F),)))),
    "unknown names": (1320, computation(stage(values=(Load("x", (dim("q"), J), F),)))),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_each_fault(what: str) -> None:
    code, found = BAD[what]
    with pytest.raises(VerificationError) as caught:
        verify(found)
    assert code in {fault.code for fault in caught.value.faults}, str(caught.value)


def test_all_faults_at_once() -> None:
    found = computation(stage(index=(ROW, ROW % 6), values=(LOAD, LOAD)), outputs=(Y, T))
    assert {fault.code for fault in faults_of(found)} == {1350, 1353, 1354}


def axes(**extents: int | str) -> list[Axis]:
    return [Axis(name, dim(extent)) for name, extent in extents.items()]


def test_which_indices_tell_points_apart() -> None:
    bounds = {"N": (1.0, math.inf), "M": (1.0, math.inf)}
    i, j, n = dim("i"), dim("j"), dim("N")
    yes: list[tuple[tuple[Dim, ...], list[Axis]]] = [
        ((i, j), axes(i=4, j=6)),
        ((j, i + 3), axes(i=4, j=6)),
        ((i * 6 + j,), axes(i=4, j=6)),
        ((i + j * 4,), axes(i=4, j=6)),
        ((j * 5 + i,), axes(i=4, j=6)),
        ((i * n + j,), axes(i="M", j="N")),
        ((i // 3, i % 3), axes(i=10)),
        (((i * 6 + j) // 4, (i * 6 + j) % 4), axes(i=4, j=6)),
        (((i * n + j) // 4, (i * n + j) % 4), axes(i="M", j="N")),
        ((dim(5) - i, j * 2), axes(i=4, j=6)),
        ((dim(0),), axes(i=1)),
        ((), []),
        ((i, i + j), axes(i=4, j=6)),
    ]
    for index, over in yes:
        assert injective(index, over, bounds), index
    no: list[tuple[tuple[Dim, ...], list[Axis]]] = [
        ((i,), axes(i=4, j=6)),
        ((i + j,), axes(i=4, j=6)),
        ((i * 5 + j,), axes(i=4, j=6)),
        ((i // 2,), axes(i=4)),
        ((i // 3, i % 2), axes(i=10)),
        ((i * n + j,), axes(i="M", j="M")),
        ((minimum(i, 2),), axes(i=4)),
        ((i * j,), axes(i=4, j=6)),
    ]
    for index, over in no:
        assert not injective(index, over, bounds), index


def test_injective_agrees_with_counting() -> None:
    random = np.random.default_rng(7)
    proved = 0
    for _ in range(400):
        sizes = {name: int(random.integers(1, 5)) for name in ("i", "j", "k")}
        entries: list[Dim] = []
        for _ in range(int(random.integers(1, 4))):
            entry = dim(int(random.integers(-2, 3)))
            for name in sizes:
                entry = entry + dim(name) * int(random.integers(-3, 8)) * int(random.integers(0, 2))
            if random.integers(3) == 0:
                entry = entry % 4 if random.integers(2) else entry // 3
            entries.append(entry)
        points = [dict(zip(sizes, p, strict=True)) for p in np.ndindex(*sizes.values())]
        images = {tuple(int(e.evaluate(p)) for e in entries) for p in points}
        if injective(tuple(entries), axes(**sizes), {}):
            proved += 1
            assert len(images) == len(points)
    assert proved > 20
