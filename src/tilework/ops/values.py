"""Numbers as the reference implementations hold them: wide while computing, narrowed once at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType, dtype_of, integer_range
from tilework.errors import GraphError
from tilework.graph.graph import Array
from tilework.loops.scalar_values import round_float


def widen(array: Array) -> Array:
    """Narrow floating types as float64 and integers of less than 8 bits as int64; other arrays as they are."""
    dtype = dtype_of(array)
    if dtype.is_floating and dtype.bits < 64:
        return array.astype(np.float64)
    return array.astype(np.int64) if dtype.is_small_integer else array


def narrow(array: Any, dtype: DType) -> Array:
    """Back to the element type, rounded once; integers wrap."""
    found: Array = np.asarray(array)
    with np.errstate(all="ignore"):
        if dtype.is_integer:
            return wrap(found, dtype)
        if dtype.is_floating and found.dtype == np.float64:
            return np.asarray(round_float(found, dtype))
        return found.astype(dtype.numpy, copy=False)


def wrap(array: Array, dtype: DType) -> Array:
    """Integers modulo 2^bits, in the range of the type."""
    if not dtype.is_small_integer:
        return array.astype(dtype.numpy, copy=False)
    low, high = integer_range(dtype)
    return (((array.astype(np.int64) - low) & (high - low)) + low).astype(dtype.numpy)


def larger(x: Array, y: Array) -> Array:
    """Element by element; NaN where either is, and 0.0 is above -0.0 (numpy takes whichever comes first)."""
    found = np.maximum(x, y)
    return np.where((x == 0) & (y == 0), x + y, found) if found.dtype.kind == "f" else found


def smaller(x: Array, y: Array) -> Array:
    """Element by element; NaN where either is, and -0.0 is below 0.0."""
    found = np.minimum(x, y)
    return np.where((x == 0) & (y == 0), -(-x - y), found) if found.dtype.kind == "f" else found


def convert(array: Array, dtype: DType) -> Array:
    """The scalar function `cast`: integers wrap; floating to integer truncates, NaN gives 0, the rest saturates."""
    source = dtype_of(array)
    with np.errstate(all="ignore"):
        if dtype.kind == "boolean":
            return np.asarray(widen(array) != 0)
        if source.kind == "complex" and dtype.kind != "complex":
            return convert(np.real(array), dtype)
        if dtype.kind == "complex" or (source.is_integer and dtype.bits >= 32 and not dtype.is_integer):
            return np.asarray(widen(array)).astype(dtype.numpy)
        if dtype.is_floating:
            return narrow(widen(array).astype(np.float64), dtype)
        if not source.is_floating:
            return wrap(np.asarray(widen(array)), dtype)
        low, high = integer_range(dtype)
        wide = np.trunc(widen(array))
        # as a float, `high` may round up to 2^bits, which is out of range itself: hence the test with >=
        inside = (wide > float(low)) & (wide < float(high))
        middle = np.where(inside, wide, 0.0).astype(np.uint64 if dtype == dtypes.uint64 else np.int64)
        ends = np.where(wide >= float(high), high, np.where(wide <= float(low), low, 0))
        return np.where(inside, middle, ends.astype(middle.dtype)).astype(dtype.numpy)


def dtype_attribute(attributes: Mapping[str, Any]) -> DType:
    """The attribute `dtype` of an application that has been checked."""
    found = attributes["dtype"]
    if not isinstance(found, DType):
        raise GraphError(1224, f"attribute 'dtype' must be an element type, it is {found!r}")
    return found
