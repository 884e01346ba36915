"""The named reducers as type rules and as numpy has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType
from tilework.graph.types import TensorType
from tilework.ops.operator import Array
from tilework.ops.rules import LOGICAL, REAL, Rule
from tilework.ops.values import narrow

REDUCERS = ("sum", "product", "maximum", "minimum", "and", "or")

_NUMPY: dict[str, np.ufunc] = {
    "sum": np.add, "product": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip


def check_reducer(rule: Rule, operand: TensorType, reducer: str) -> None:
    """A fault unless the reducer combines elements of the operand's type."""
    kinds = LOGICAL if reducer in ("and", "or") else REAL
    if reducer in ("maximum", "minimum"):
        kinds = ("boolean", *REAL)
    rule.kind(operand, kinds, f"operand of {reducer}")


def wide_numpy(dtype: DType) -> np.dtype[np.generic]:
    """The numpy type to combine in, more exact than the result's: float64, 64-bit integers, bool."""
    if dtype.is_floating:
        return np.dtype(np.float64)
    if dtype.kind == "boolean":
        return np.dtype(np.bool_)
    return np.dtype(np.uint64 if dtype.kind == "unsigned" else np.int64)


def numpy_identity(reducer: str, dtype: DType) -> Any:
    """The value that changes nothing, in the type of `wide_numpy`."""
    wide = wide_numpy(dtype).type
    if reducer in ("sum", "or"):
        return wide(0)
    if reducer == "product":
        return wide(1)
    if reducer == "and":
        return wide(dtypes.integer_range(dtype)[1] if dtype.kind in ("unsigned", "boolean") else -1)
    if dtype.is_floating:
        return wide(-np.inf if reducer == "maximum" else np.inf)
    low, high = dtypes.integer_range(dtype)
    return wide(low if reducer == "maximum" else high)


def numpy_reduce(array: Array, axis: tuple[int, ...], reducer: str, dtype: DType) -> Array:
    """All elements along some axes combined; the identity where there are none."""
    with np.errstate(all="ignore"):
        wide = array.astype(wide_numpy(dtype))
        combined = np.asarray(_NUMPY[reducer].reduce(wide, axis=axis, initial=numpy_identity(reducer, dtype)))
        if _tells_zeros_apart(reducer, dtype):
            combined = _signed(combined, np.any(_preferred_zero(wide, reducer), axis=axis), reducer)
    return narrow(combined, dtype)


def numpy_accumulate(array: Array, axis: int, reducer: str, dtype: DType) -> Array:
    """Running results along an axis, in the type of `wide_numpy`."""
    with np.errstate(all="ignore"):
        wide = array.astype(wide_numpy(dtype))
        running = np.asarray(_NUMPY[reducer].accumulate(wide, axis=axis))
        if _tells_zeros_apart(reducer, dtype):
            met = np.logical_or.accumulate(_preferred_zero(wide, reducer), axis=axis)
            running = _signed(running, met, reducer)
    return running


# numpy's maximum of -0.0 and 0.0 is whichever comes first; ours is 0.0, and the minimum -0.0, in any order.
def _tells_zeros_apart(reducer: str, dtype: DType) -> bool:
    return dtype.is_floating and reducer in ("maximum", "minimum")


def _preferred_zero(array: Array, reducer: str) -> Array:
    return np.asarray((array == 0) & (np.signbit(array) == (reducer == "minimum")))


def _signed(found: Array, met: Array, reducer: str) -> Array:
    """Zeros among the results with their sign: whether the zero that wins was met."""
    zero = np.where(met == (reducer == "maximum"), 0.0, -0.0)
    return np.asarray(np.where(found == 0, zero, found))
