"""`resample` against numpy: every rounding, clamped at both ends, extents 0, 1 and symbols; its type rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.checking import check, faults, interpreted
from tilework import dtypes
from tilework.dims import Symbol, dim
from tilework.errors import RunError
from tilework.graph.types import TensorType, tensor
from tilework.loops.expressions import loads
from tilework.loops.program import Buffer
from tilework.ops.operator import Array
from tilework.ops.registry import operator

F32 = dtypes.float32


def picked(x: Array, shape: tuple[int, ...], starts: list[int], steps: list[int], divisors: list[int]) -> Array:
    for axis, count in enumerate(shape):
        places = [(i * steps[axis] + starts[axis]) // divisors[axis] for i in range(count)]
        x = np.take(x, np.clip(places, 0, x.shape[axis] - 1).astype(np.int64) if count else [], axis)
    return x


@given(st.lists(st.tuples(*(st.integers(a, b) for a, b in ((1, 5), (0, 9), (-7, 9), (0, 5), (1, 4)))), max_size=3))
def test_resample(axes: list[tuple[int, int, int, int, int]]) -> None:
    own, shape, starts, steps, divisors = ([axis[k] for axis in axes] for k in range(5))
    x = np.arange(np.prod(own, dtype=np.int64)).reshape(own).astype(np.float32)
    found = check(
        "resample", [x], [[f"n{k}" for k in range(len(own))]], shape=tuple(shape), starts=tuple(starts),
        steps=tuple(steps), divisors=tuple(divisors),
    )  # fmt: skip
    np.testing.assert_array_equal(found, picked(x, tuple(shape), starts, steps, divisors))


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 7])
def test_resample_to_a_symbolic_shape(extent: int) -> None:
    x = np.arange(extent * 2).reshape(extent, 2).astype(np.float32)
    wide = (dim("n") * 2, dim(2))
    found = interpreted("resample", [x], [("n", 2)], shape=wide, starts=(0, 0), divisors=(2, 1))
    np.testing.assert_array_equal(found, np.repeat(x, 2, 0))
    found = interpreted("resample", [x], [("n", 2)], shape=wide, starts=(dim("n") - 1, 0), divisors=(2, 1))
    wanted = picked(x, (2 * extent, 2), [extent - 1, 0], [1, 1], [2, 1])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("start", [-1, 0, 1])
def test_positions_are_clamped_where_they_may_be_outside_only(start: int) -> None:
    operands, results = [Buffer("x", (dim("N"),), F32)], [Buffer("y", (dim("N") * 2,), F32)]
    attributes = {"shape": (dim("N") * 2,), "starts": (dim(start),), "divisors": (2,)}
    (stage,) = operator("resample").define(operands, results, attributes, [Symbol("N", 1)]).stages
    (index,) = next(iter(loads(stage.values[0]))).index
    assert ("max" in str(index), "min" in str(index)) == (start < 0, start > 0)


def test_type_rule() -> None:
    def found(x: TensorType, **attributes: object) -> list[int]:
        return faults("resample", [x], **attributes)

    x = tensor(F32, 3, "n")
    assert operator("resample").infer([x], {"shape": (dim("n"), 5), "starts": (0, 0)}) == (tensor(F32, "n", 5),)
    assert found(x, shape=(5,), starts=(0, 0)) == [1225]
    assert found(x, shape=(5, 5), starts=(0,)) == [1225]
    assert found(x, shape=(5, 5), starts=(0, 0), steps=(-1, 0), divisors=(0, 1)) == [1225, 1225]
    assert found(tensor(F32, 0), shape=(2,), starts=(0,)) == [1225]
    assert found(tensor(F32, 0), shape=(0,), starts=(0,)) == []


def test_what_is_known_only_when_it_runs() -> None:
    found = operator("resample")
    attributes = {"shape": (dim("m"),), "starts": (dim(0),)}
    (needed,) = found.requirements([tensor(F32, "n")], attributes)
    assert [int(needed.evaluate({"n": n, "m": m})) >= 0 for n, m in ((0, 0), (0, 2), (1, 0), (1, 3))] == [1, 0, 1, 1]
    with pytest.raises(RunError):
        found.reference([np.zeros(0, np.float32)], {"shape": (2,), "starts": (0,)}, [tensor(F32, 2)])
