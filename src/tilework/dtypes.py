"""Element types: the words for what one number of a tensor is."""

from __future__ import annotations

import difflib
from functools import cached_property
from typing import Literal

import numpy as np

from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass

Kind = Literal["boolean", "signed", "unsigned", "floating", "complex"]

_ML_DTYPES = frozenset((
    "bfloat16", "int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
    "float8_e5m2fnuz", "float8_e8m0fnu",
))  # fmt: skip


@dataclass(frozen=True)
class DType:
    """An element type. `bits` is its width; elements narrower than a byte take one, unless a layout packs them."""

    name: str
    kind: Kind
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes in memory (unpacked)."""
        return max(1, self.bits // 8)

    @property
    def is_integer(self) -> bool:
        return self.kind in ("signed", "unsigned")

    @property
    def is_floating(self) -> bool:
        return self.kind == "floating"

    @property
    def is_small_float(self) -> bool:
        """Whether it is a floating type narrower than float32: kept in float32 while it is computed with."""
        return self.kind == "floating" and self.bits < 32

    @property
    def is_small_integer(self) -> bool:
        """Whether it is an integer type of less than 8 bits."""
        return self.bits < 8 and self.is_integer

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type with the same values (from ml_dtypes where numpy has none)."""
        if self.name in _ML_DTYPES:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.name))
        return np.dtype("bool" if self.kind == "boolean" else self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


boolean = DType("bool", "boolean", 8)
int2 = DType("int2", "signed", 2)
int4 = DType("int4", "signed", 4)
int8 = DType("int8", "signed", 8)
int16 = DType("int16", "signed", 16)
int32 = DType("int32", "signed", 32)
int64 = DType("int64", "signed", 64)
uint2 = DType("uint2", "unsigned", 2)
uint4 = DType("uint4", "unsigned", 4)
uint8 = DType("uint8", "unsigned", 8)
uint16 = DType("uint16", "unsigned", 16)
uint32 = DType("uint32", "unsigned", 32)
uint64 = DType("uint64", "unsigned", 64)
float16 = DType("float16", "floating", 16)
bfloat16 = DType("bfloat16", "floating", 16)
float32 = DType("float32", "floating", 32)
float64 = DType("float64", "floating", 64)
float4_e2m1fn = DType("float4_e2m1fn", "floating", 4)
float8_e4m3fn = DType("float8_e4m3fn", "floating", 8)
float8_e5m2 = DType("float8_e5m2", "floating", 8)
float8_e4m3fnuz = DType("float8_e4m3fnuz", "floating", 8)
float8_e5m2fnuz = DType("float8_e5m2fnuz", "floating", 8)
float8_e8m0fnu = DType("float8_e8m0fnu", "floating", 8)
complex64 = DType("complex64", "complex", 64)
complex128 = DType("complex128", "complex", 128)

ALL = (
    boolean, int2, int4, int8, int16, int32, int64, uint2, uint4, uint8, uint16, uint32, uint64, float16, bfloat16,
    float32, float64, float4_e2m1fn, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu,
    complex64, complex128,
)  # fmt: skip
_BY_NAME = {dtype.name: dtype for dtype in ALL}


def dtype_named(name: str) -> DType:
    """The type called `name`; raises `UsageError` 1003 with the nearest names."""
    found = _BY_NAME.get(name)
    if found is None:
        near = difflib.get_close_matches(name, _BY_NAME, 3)
        raise UsageError(
            1003, f"no data type is called {name!r}", hint=f"nearest: {', '.join(near) or ', '.join(_BY_NAME)}"
        )
    return found


def dtype_of(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | np.generic) -> DType:
    """The type of a numpy array's elements in native byte order; raises `UsageError` 1003 for any other."""
    return dtype_named(array.dtype.name)


def integer_range(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer (or boolean: 0 and 1) type."""
    if dtype.kind == "boolean":
        return 0, 1
    if dtype.kind == "unsigned":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


_FRACTION = {"float8_e4m3fn": (4, 3), "float8_e5m2": (5, 2), "bfloat16": (8, 7), "float16": (5, 10), "float32": (8, 23),
             "float64": (11, 52)}  # fmt: skip
"""Bits of exponent and fraction."""


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of one real type is a value of another (floating types: of those with IEEE 754's formats)."""
    if wide == narrow:
        return True
    if wide.is_integer and narrow.is_integer:
        low, high = integer_range(narrow)
        least, most = integer_range(wide)
        return least <= low and high <= most
    if wide.name not in _FRACTION:
        return False
    exponent, fraction = _FRACTION[wide.name]
    if narrow.is_integer:
        return narrow.bits <= fraction + 1
    if narrow.name not in _FRACTION:
        return False
    return _FRACTION[narrow.name][0] <= exponent and _FRACTION[narrow.name][1] <= fraction
