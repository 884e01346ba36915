"""Reductions, windows, softmax and running results against numpy: odd shapes, empty shapes, NaN and infinities."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.checking import check, counted, faults, interpreted, reference, same, whole
from tilework import dtypes
from tilework.dims import dim
from tilework.errors import RunError
from tilework.graph.types import tensor
from tilework.loops.expressions import Call
from tilework.loops.program import Reducer
from tilework.ops.operator import Array
from tilework.ops.reduction import arg_reduce
from tilework.ops.registry import operator

F32 = dtypes.float32
NUMPY = {"sum": np.sum, "product": np.prod, "maximum": np.max, "minimum": np.min}
REDUCERS = tuple(NUMPY)


def special(generator: np.random.Generator, *shape: int) -> Array:
    """Numbers among which NaN, infinities and signed zeros occur."""
    return generator.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0], np.float32), shape)


# -- reduce ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dimensions", [(), (0,), (1,), (2, 0), (0, 1, 2)])
def test_reduce(reducer: str, keep: bool, dimensions: tuple[int, ...]) -> None:
    g = np.random.default_rng(len(dimensions))
    x = whole(g, 3, 1, 5)
    found = check("reduce", [x], [("a", 1, "b")], dimensions=dimensions, reducer=reducer, keep_dimensions=keep)
    same(found, np.asarray(NUMPY[reducer](x, axis=dimensions, keepdims=keep)).astype(np.float32))


@pytest.mark.parametrize(
    ("reducer", "dtype", "identity"),
    [("sum", np.float32, 0), ("product", np.int32, 1), ("maximum", np.float32, -np.inf),
     ("minimum", np.float16, np.inf), ("maximum", np.int8, -128), ("minimum", np.uint8, 255),
     ("and", np.int16, -1), ("and", np.uint8, 255),
     ("or", np.int64, 0), ("and", np.bool_, True), ("or", np.bool_, False), ("maximum", np.bool_, False)],
)  # fmt: skip
def test_nothing_reduces_to_the_identity(reducer: str, dtype: Any, identity: Any) -> None:
    found = check("reduce", [np.zeros((2, 0), dtype)], [("n", "m")], dimensions=(1,), reducer=reducer)
    np.testing.assert_array_equal(found, np.full(2, identity, dtype))
    assert check("reduce", [np.zeros((0, 3), dtype)], [("n", 3)], dimensions=(1,), reducer=reducer).shape == (0,)


@pytest.mark.parametrize("reducer", REDUCERS)
def test_reduce_of_special_values(reducer: str) -> None:
    x = special(np.random.default_rng(7), 40, 3)
    with np.errstate(all="ignore"):
        wanted = np.asarray(NUMPY[reducer](x, axis=1)).astype(np.float32)
    found = check("reduce", [x], dimensions=(1,), reducer=reducer)
    same(found, wanted, 1e-30)  # but for the sign of a zero, which numpy leaves to the order of the operands


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.uint8])
@pytest.mark.parametrize("reducer", ["and", "or", "maximum"])
def test_reduce_of_bits(dtype: Any, reducer: str) -> None:
    x = np.random.default_rng(8).integers(0, 2 if dtype is np.bool_ else 100, (4, 3)).astype(dtype)
    function = {"and": np.bitwise_and, "or": np.bitwise_or, "maximum": np.maximum}[reducer]
    same(check("reduce", [x], dimensions=(0,), reducer=reducer), function.reduce(x, axis=0))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_sums_are_kept_in_float32(dtype: Any) -> None:
    found = check("reduce", [np.ones(3000, dtype)], dimensions=(0,), reducer="sum")
    assert float(found) == float(np.asarray(3000).astype(dtype))  # bfloat16 sums would stick at 256


def test_integer_sums_wrap() -> None:
    x = np.full(5, 100, np.int8)
    assert int(check("reduce", [x], dimensions=(0,), reducer="sum")) == 500 - 512
    assert int(check("reduce", [x.astype(ml_dtypes.int4)], dimensions=(0,), reducer="sum")) in range(-8, 8)


def test_counts_and_faults_of_reduce() -> None:
    x = tensor(F32, "n", 4)
    assert counted("reduce", [x], dimensions=(1,), reducer="sum").flops.evaluate({"n": 3}) == 12
    assert faults("reduce", [x], dimensions=(1,), reducer="and") == [1222]
    assert faults("reduce", [tensor(dtypes.complex64, 3)], dimensions=(0,), reducer="sum") == [1222]
    found = faults("reduce", [x], dimensions=(2, 0, 0), reducer="mean", keep_dimensions=1)
    assert sorted(found) == [1224, 1225, 1225, 1225]
    assert faults("reduce", [x, x], dimensions=(0,), reducer="sum") == [1220]


# -- arg_reduce --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("direction", ["maximum", "minimum"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.bool_])
def test_arg_reduce(direction: str, last: bool, keep: bool, dtype: Any) -> None:
    g = np.random.default_rng(1)
    x = special(g, 5, 7, 2) if dtype is np.float32 else g.integers(0, 2, (5, 7, 2)).astype(dtype)
    found = check("arg_reduce", [x], [("a", "b", 2)], dimension=1, direction=direction, last=last, keep_dimensions=keep)
    ordered = np.flip(x, 1) if last else x
    wanted = (np.argmax if direction == "maximum" else np.argmin)(ordered, axis=1, keepdims=keep)
    same(found, (6 - wanted if last else wanted).astype(np.int64))


def test_arg_reduce_of_extremes() -> None:
    low = np.full((1, 3), -np.inf, np.float32)
    assert int(check("arg_reduce", [low], dimension=1, direction="maximum")[0]) == 0
    assert int(check("arg_reduce", [low], dimension=1, direction="maximum", last=True)[0]) == 2
    ends = np.array([[-128, -128]], np.int8)
    assert int(check("arg_reduce", [ends], dimension=1, direction="maximum", last=True)[0]) == 1


@pytest.mark.parametrize("last", [False, True])
def test_arg_reduce_of_nothing_is_refused(last: bool) -> None:
    options: Any = {"dimension": 1, "direction": "maximum", "last": last}
    assert faults("arg_reduce", [tensor(F32, "n", 0)], **options) == [1223]
    assert faults("arg_reduce", [tensor(F32, 0, 3)], **options) == []
    found = operator("arg_reduce")
    assert found.requirements([tensor(F32, "n", "m")], options) == (dim("m") - 1,)
    assert found.requirements([tensor(F32, "n", 3)], options) == ()
    with pytest.raises(RunError):
        found.reference([np.zeros((2, 0), np.float32)], options, [tensor(dtypes.int64, 2)])
    assert check("arg_reduce", [np.zeros((0, 3), np.float32)], [("n", 3)], **options).shape == (0,)


def test_a_planted_bug_in_the_reducer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = arg_reduce.arg_reducer

    def without_ties(direction: str, dtype: dtypes.DType, last: bool) -> Reducer:
        found = sound(direction, dtype, last)
        keep = found.combine[0]
        assert isinstance(keep, Call)
        wins = keep.arguments[0]
        assert isinstance(wins, Call)
        combine = tuple(
            Call("select", (wins.arguments[0], *part.arguments[1:]), part.dtype)
            for part in found.combine
            if isinstance(part, Call)
        )
        return Reducer(found.name, found.left, found.right, combine, found.identity)

    x = np.array([[1, 5, 5]], np.float32)
    wanted = reference("arg_reduce", [x], dimension=1, direction="maximum")
    same(interpreted("arg_reduce", [x], dimension=1, direction="maximum"), wanted)
    monkeypatch.setattr(arg_reduce, "arg_reducer", without_ties)
    with pytest.raises(AssertionError):
        same(interpreted("arg_reduce", [x], dimension=1, direction="maximum"), wanted)


# -- reduce_window -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("reducer", REDUCERS)
def test_reduce_window(seed: int, reducer: str) -> None:
    g = np.random.default_rng(seed)
    x = whole(g, 2, int(g.integers(1, 8)), int(g.integers(1, 6)))
    window = (1, *(int(v) for v in g.integers(1, 4, 2)))
    strides = (1, *(int(v) for v in g.integers(1, 4, 2)))
    base, hole = (1, int(g.integers(1, 3)), 1), (1, 1, int(g.integers(1, 3)))
    pads = ((0, 0), *((int(a), int(b)) for a, b in g.integers(-1, 3, (2, 2))))
    found = check(
        "reduce_window", [x], window_dimensions=window, window_strides=strides, padding=pads, base_dilations=base,
        window_dilations=hole, reducer=reducer,
    )  # fmt: skip
    identity = {"sum": 0, "product": 1, "maximum": -np.inf, "minimum": np.inf}[reducer]
    for place in np.ndindex(*found.shape):
        values = [identity]
        for tap in np.ndindex(*window):
            at = [p * s + t * h - low for p, s, t, h, (low, _) in zip(place, strides, tap, hole, pads, strict=True)]
            inside = all(0 <= a <= (n - 1) * b and a % b == 0 for a, n, b in zip(at, x.shape, base, strict=True))
            if inside:
                values.append(float(x[tuple(a // b for a, b in zip(at, base, strict=True))]))
        assert float(found[place]) == float(NUMPY[reducer](values))


def test_reduce_window_of_symbols_and_nothing() -> None:
    g = np.random.default_rng(1)
    for extent in (2, 3, 8):
        check(
            "reduce_window", [whole(g, 2, extent)], [("n", "w")], window_dimensions=(1, 3), window_strides=(1, 2),
            padding=((0, 0), (1, 1)), reducer="maximum",
        )  # fmt: skip
    assert check("reduce_window", [whole(g, 2)], window_dimensions=(3,), reducer="sum").shape == (0,)
    check("reduce_window", [whole(g, 0, 5)], window_dimensions=(1, 3), reducer="sum")
    check("reduce_window", [whole(g, 3, 5)], window_dimensions=(1, 1), window_strides=(2, 2), reducer="sum")
    for dtype in (np.float16, np.float32):
        # the guards of a base dilation may name no position in the window: every result is written all the same
        check(
            "reduce_window", [np.ones((4, 4), dtype)], window_dimensions=(2, 2), base_dilations=(2, 3),
            window_dilations=(2, 3), reducer="sum",
        )  # fmt: skip


def test_faults_of_reduce_window() -> None:
    x = tensor(F32, 3, 4)
    assert faults("reduce_window", [x], window_dimensions=(1, 2), reducer="sum") == []
    assert faults("reduce_window", [tensor(F32)], window_dimensions=(), reducer="sum") == [1223]
    bad: dict[str, Any] = {"window_dimensions": (0, 2), "window_strides": (1,), "padding": ((0, 0),)}
    found = faults("reduce_window", [x], **bad, reducer="sum")
    assert sorted(found) == [1224, 1225, 1225]


# -- softmax -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dimension", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_softmax(name: str, dimension: int, dtype: Any) -> None:
    g = np.random.default_rng(dimension)
    x = (g.standard_normal((3, 5, 2)) * 20).astype(dtype)
    bits = {2: 2e-2 if dtype is ml_dtypes.bfloat16 else 2e-3, 4: 2e-6, 8: 1e-14}[np.dtype(dtype).itemsize]
    found = check(name, [x], [("a", "b", "c")], tolerance=bits, dimension=dimension)
    wide = x.astype(np.float64)
    exponentials = np.exp(wide - wide.max(axis=dimension, keepdims=True))
    wanted = exponentials / exponentials.sum(axis=dimension, keepdims=True)
    if name == "log_softmax":
        total = exponentials.sum(axis=dimension, keepdims=True)
        wanted = wide - wide.max(axis=dimension, keepdims=True) - np.log(total)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=bits, atol=bits)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_special_values(name: str) -> None:
    rows = [[1e30, 1e30], [np.nan, 0], [np.inf, 0], [-np.inf, 0], [-np.inf, -np.inf], [-1e38, 1e38]]
    found = check(name, [np.array(rows, np.float32)], tolerance=1e-6, dimension=1)
    assert np.isnan(found[[1, 2, 4]]).all()
    assert not np.isnan(found[[0, 3, 5]]).any()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (0, 0)])
def test_softmax_of_nothing(shape: tuple[int, ...]) -> None:
    check("softmax", [np.zeros(shape, np.float32)], [("n", "m")], dimension=1)
    check("log_softmax", [np.zeros(shape, np.float32)], [("n", "m")], dimension=1)


def test_faults_of_softmax() -> None:
    assert faults("softmax", [tensor(dtypes.int32, 3)], dimension=0) == [1222]
    assert faults("log_softmax", [tensor(F32, 3)], dimension=1) == [1225]


# -- cumulative --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_cumulative(exclusive: bool, reverse: bool, reducer: str, dtype: Any) -> None:
    g = np.random.default_rng(3)
    x = g.integers(-2, 3, (2, 6, 3)).astype(dtype)
    found = check(
        "cumulative", [x], [("a", "b", "c")], dimension=1, reducer=reducer, exclusive=exclusive, reverse=reverse
    )
    for i in range(6):
        part = x[:, i + exclusive :] if reverse else x[:, : i + 1 - exclusive]
        if part.shape[1]:
            same(found[:, i], np.asarray(NUMPY[reducer](part, axis=1)).astype(dtype))
    first = found[:, -1 if reverse else 0]
    if exclusive:
        same(first, reference("reduce", [x[:, :0]], dimensions=(1,), reducer=reducer))


def test_cumulative_edges() -> None:
    for shape in ((0, 3), (3, 0), (1,)):
        dimension = len(shape) - 1
        check("cumulative", [np.ones(shape, np.float32)], dimension=dimension, reducer="sum", exclusive=True)
    # each float16 result is rounded by itself: 1 is lost beside 2048 only where it is stored
    x = np.array([2048, 1, 1], np.float16)
    np.testing.assert_array_equal(check("cumulative", [x], dimension=0, reducer="sum"), [2048, 2048, 2050])
    with np.errstate(all="ignore"):
        x = special(np.random.default_rng(2), 30)
        same(check("cumulative", [x], dimension=0, reducer="maximum"), np.maximum.accumulate(x))


def test_faults_of_cumulative() -> None:
    found = faults("cumulative", [tensor(F32, 3)], dimension=1, reducer="mean", exclusive=1)
    assert sorted(found) == [1224, 1225, 1225]
