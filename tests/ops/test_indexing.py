"""Operators that read or write at positions, against numpy: negative and bad positions, tuples of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.checking import check, faults, interpreted, reference, same, whole
from tilework import dtypes
from tilework.dims import dim
from tilework.errors import RunError
from tilework.graph.types import tensor
from tilework.ops.registry import operator

F32, I64 = dtypes.float32, dtypes.int64


@pytest.mark.parametrize("index_type", [np.int64, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (0,), (2, 0)])
@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_take(index_type: Any, shape: tuple[int, ...], dimension: int) -> None:
    g = np.random.default_rng(dimension)
    operand = whole(g, 3, 5, 2)
    extent = operand.shape[dimension]
    low = 0 if index_type is np.uint8 else -extent
    indices = np.asarray(g.integers(low, extent, shape)).astype(index_type)
    found = check("take", [operand, indices], [("a", "b", "c"), ("i", "j")[: len(shape)]], dimension=dimension)
    same(found, np.take(operand, indices, axis=dimension))


@pytest.mark.parametrize("bad", [5, -6, 2**62 + 3, -(2**62) - 9, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("name", ["take", "take_along_axis", "scatter_along_axis"])
def test_positions_outside_are_faults(bad: int, name: str) -> None:
    operands = [np.zeros(5, np.float32), np.array([0, bad])]
    if name == "scatter_along_axis":
        operands.append(np.ones(2, np.float32))
    for run in (reference, interpreted):
        with pytest.raises(RunError) as caught:
            run(name, operands, dimension=0)
        assert caught.value.code == 1801


def test_take_from_nothing() -> None:
    check("take", [np.zeros((0, 3), np.float32), np.zeros(0, np.int64)], [("n", 3), ("i",)], dimension=0)
    check("take", [np.zeros((2, 0), np.float32), np.array([1, 0, 1])], dimension=0)
    with pytest.raises(RunError):
        interpreted("take", [np.zeros(0, np.float32), np.array([0])], dimension=0)


@pytest.mark.parametrize("dtype", [np.bool_, np.complex64, np.uint64, np.float16])
def test_take_of_any_type(dtype: Any) -> None:
    operand = np.arange(6).reshape(2, 3).astype(dtype)
    found = reference("take", [operand, np.array([1, -2, 0])], dimension=1)
    np.testing.assert_array_equal(interpreted("take", [operand, np.array([1, -2, 0])], dimension=1), found)
    np.testing.assert_array_equal(found, operand[:, [1, 1, 0]])


@pytest.mark.parametrize("seed", range(6))
def test_take_along_axis(seed: int) -> None:
    g = np.random.default_rng(seed)
    shape = tuple(int(v) for v in g.integers(1, 6, 3))
    dimension = int(g.integers(0, 3))
    size = tuple(int(g.integers(0, 7)) if d == dimension else int(g.integers(1, n + 1)) for d, n in enumerate(shape))
    operand, indices = whole(g, *shape), g.integers(-shape[dimension], shape[dimension], size)
    found = check("take_along_axis", [operand, indices], dimension=dimension)
    corner = operand[tuple(slice(None) if d == dimension else slice(0, n) for d, n in enumerate(size))]
    same(found, np.take_along_axis(corner, indices, axis=dimension))


def test_take_along_axis_of_symbols() -> None:
    g = np.random.default_rng(9)
    operand, indices = whole(g, 4, 3), g.integers(-3, 3, (4, 5))
    check("take_along_axis", [operand, indices], [("n", "m"), ("n", "k")], dimension=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reducer", ["replace", "sum", "maximum", "minimum", "product"])
def test_scatter_along_axis(seed: int, reducer: str) -> None:
    g = np.random.default_rng(seed)
    shape = tuple(int(v) for v in g.integers(1, 5, 2))
    dimension = int(g.integers(0, 2))
    size = tuple(int(g.integers(0, 6)) if d == dimension else int(g.integers(1, n + 1)) for d, n in enumerate(shape))
    operand, updates = whole(g, *shape), whole(g, *size)
    indices = g.integers(-shape[dimension], shape[dimension], size)
    found = check("scatter_along_axis", [operand, indices, updates], dimension=dimension, reducer=reducer)
    wanted = operand.copy()
    combine = {"sum": float.__add__, "product": float.__mul__, "maximum": max, "minimum": min}.get(reducer)
    for source in np.ndindex(*size):
        target = list(source)
        target[dimension] = int(indices[source])
        old, new = float(wanted[tuple(target)]), float(updates[source])
        wanted[tuple(target)] = new if combine is None else combine(old, new)
    same(found, wanted)


def test_the_last_update_wins() -> None:
    found = check(
        "scatter_along_axis", [np.zeros(3, np.int32), np.array([1, 1, -2]), np.array([5, 6, 7], np.int32)], dimension=0
    )
    np.testing.assert_array_equal(found, [0, 7, 0])


@pytest.mark.parametrize("reducer", ["replace", "sum", "maximum", "minimum", "product"])
def test_scatter_of_special_values(reducer: str) -> None:
    g = np.random.default_rng(11)
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32)
    operands = [g.choice(values, (8, 3)), g.integers(-8, 8, (20, 3)), g.choice(values, (20, 3))]
    check("scatter_along_axis", operands, dimension=0, reducer=reducer)
    narrow = [operands[0].astype(np.float16), operands[1], operands[2].astype(np.float16)]
    check("scatter_along_axis", narrow, dimension=0, reducer=reducer)


def test_scatter_of_symbols() -> None:
    g = np.random.default_rng(9)
    operands = [whole(g, 4, 3), g.integers(-3, 3, (4, 5)), whole(g, 4, 5)]
    check("scatter_along_axis", operands, [("n", "m"), ("n", "k"), ("n", "k")], dimension=1, reducer="sum")


def test_faults_of_indexing() -> None:
    x, i = tensor(F32, "n", 4), tensor(I64, "n", 2)
    assert faults("take", [x, i], dimension=1) == []
    assert faults("take", [x, i], dimension=2) == [1225]
    assert faults("take", [x, x], dimension=0) == [1222]
    assert faults("take", [x, tensor(dtypes.uint64, 2)], dimension=0) == [1222]
    assert faults("take", [x], dimension=0) == [1220]
    assert faults("take_along_axis", [x, i], dimension=1) == []
    assert faults("take_along_axis", [tensor(F32, 3, 4), tensor(I64, 4, 2)], dimension=1) == [1223]
    assert faults("take_along_axis", [x, tensor(I64, 2)], dimension=0) == [1223]
    assert faults("scatter_along_axis", [x, i, tensor(F32, "n", 2)], dimension=1, reducer="sum") == []
    bad = faults("scatter_along_axis", [x, x, tensor(I64, "n", 3)], dimension=5, reducer="mean", mode="clip")
    assert sorted(bad) == [1222, 1222, 1223, 1224, 1225, 1225]


@pytest.mark.parametrize("name", ["take_along_axis", "scatter_along_axis"])
def test_symbolic_indices_must_fit_when_it_runs(name: str) -> None:
    found, x, i = operator(name), tensor(F32, "n", 4), tensor(I64, "m", 9)
    assert found.requirements([x, i], {"dimension": 1}) == (dim("n") - dim("m"),)
    assert found.requirements([x, tensor(I64, "n", 9)], {"dimension": 1}) == ()
    assert found.requirements([tensor(F32, 4, "n"), tensor(I64, 2, "m")], {"dimension": 1}) == ()


def tuples(g: np.random.Generator, extents: tuple[int, ...], *outer: int) -> Any:
    """Random tuples of positions, negative ones too."""
    return np.stack([g.integers(-extent, extent, outer) for extent in extents], -1)


@pytest.mark.parametrize("index_type", [np.int64, np.int32, np.int8])
@pytest.mark.parametrize("outer", [(), (4,), (2, 3), (0,)])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gather_nd(index_type: Any, outer: tuple[int, ...], depth: int) -> None:
    g = np.random.default_rng(depth)
    operand = whole(g, 3, 5, 2)
    indices = tuples(g, operand.shape[:depth], *outer).astype(index_type)
    shapes = [("a", "b", "c"), (*("i", "j")[: len(outer)], depth)]
    found = check("gather_nd", [operand, indices], shapes)
    same(found, np.asarray(operand[tuple(indices[..., place] for place in range(depth))]))


@pytest.mark.parametrize(("batch", "depth"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_gather_nd_with_batches(batch: int, depth: int) -> None:
    g = np.random.default_rng(batch)
    operand = whole(g, 2, 3, 4, 5)
    lead = operand.shape[:batch]
    indices = tuples(g, operand.shape[batch : batch + depth], *lead, 2)
    names = ("a", "b")[:batch]
    found = check(
        "gather_nd",
        [operand, indices],
        [(*names, *operand.shape[batch:]), (*names, "i", depth)],
        batch_dimensions=batch,
    )
    for place in np.ndindex(*lead, 2):
        same(np.asarray(found[place]), np.asarray(operand[(*place[:batch], *indices[place])]))


@pytest.mark.parametrize("reducer", ["replace", "sum", "maximum", "minimum", "product"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_nd(reducer: str, depth: int) -> None:
    g = np.random.default_rng(depth)
    operand = whole(g, 3, 4, 2)
    indices = tuples(g, operand.shape[:depth], 2, 3)
    updates = whole(g, 2, 3, *operand.shape[depth:])
    shapes = [("a", "b", "c"), ("i", "j", depth), ("i", "j", *("a", "b", "c")[depth:])]
    found = check("scatter_nd", [operand, indices, updates], shapes, reducer=reducer)
    wanted = operand.copy()
    combine: Any = {"sum": np.add, "product": np.multiply, "maximum": np.maximum, "minimum": np.minimum}.get(reducer)
    for source in np.ndindex(2, 3):
        target = tuple(indices[source])
        wanted[target] = updates[source] if combine is None else combine(wanted[target], updates[source])
    same(found, wanted)


@pytest.mark.parametrize("bad", [(0, 5), (0, -6), (-5, 0), (1, -8), (4, 0), (0, 2**63 - 1), (-(2**63), 0)])
@pytest.mark.parametrize("name", ["gather_nd", "scatter_nd"])
def test_each_position_of_a_tuple_is_checked(bad: tuple[int, int], name: str) -> None:
    operands = [np.zeros((4, 5), np.float32), np.array([[0, 0], bad])]
    if name == "scatter_nd":
        operands.append(np.ones(2, np.float32))
    for run in (reference, interpreted):
        with pytest.raises(RunError) as caught:
            run(name, operands)
        assert caught.value.code == 1801


def test_faults_of_tuples_of_positions() -> None:
    x, i = tensor(F32, "n", 4, 3), tensor(I64, "n", 5, 2)
    assert faults("gather_nd", [x, i]) == []
    assert faults("gather_nd", [x, i], batch_dimensions=1) == []
    assert faults("gather_nd", [x, tensor(I64, 5, 4)]) == [1223]
    assert faults("gather_nd", [x, tensor(I64, 5, 0)]) == [1223]
    assert faults("gather_nd", [x, tensor(I64, 5, "k")]) == [1223]
    assert faults("gather_nd", [x, tensor(I64, "n", 3)], batch_dimensions=1) == [1223]
    assert faults("gather_nd", [x, tensor(I64, "m", 2)], batch_dimensions=1) == [1223]
    assert faults("gather_nd", [x, i], batch_dimensions=3) == [1225]
    assert faults("gather_nd", [x, tensor(I64)]) == [1225]
    assert sorted(faults("gather_nd", [x, tensor(F32, 5, 2)], mode="clip")) == [1222, 1224]
    assert faults("scatter_nd", [x, i, tensor(F32, "n", 5, 3)]) == []
    assert faults("scatter_nd", [x, i, tensor(F32, "n", 5, 2)]) == [1223]
    assert faults("scatter_nd", [x, i, tensor(F32, "n", 5)]) == [1223]
    assert faults("scatter_nd", [x, tensor(I64), tensor(F32)]) == [1223]
    assert sorted(faults("scatter_nd", [x, i, tensor(I64, "n", 5, 3)], reducer="mean")) == [1222, 1225]
