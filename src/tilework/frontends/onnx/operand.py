"""An ONNX value while it is imported: a graph value, a constant, or a small tensor of symbolic integers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tilework.dims import Dim, dim
from tilework.dtypes import DType, dtype_of, integer_range
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Value
from tilework.graph.types import OpaqueType

DimArray: TypeAlias = "np.ndarray[Any, np.dtype[np.object_]]"
"""An object array whose elements are all `Dim` (booleans are 0 and 1)."""

STRINGS = "tensor(string)"
"""How ONNX spells the type of a tensor of strings."""

LARGEST_KNOWN = 4096
"""Elements up to which a tensor of integers is followed symbolically."""


@dataclass(frozen=True)
class Quotients:
    """Floating numbers, each a symbolic integer divided by another that is not negative (see `shape_quotients`)."""

    numerators: DimArray
    denominators: DimArray


class Operand:
    """One ONNX value. At least one of `value`, `array`, `dims`, `quotients` is set; the emitter makes a value of the
    others.

    `words` makes it a tensor of strings: the elements are positions (int64) in that list. Strings that come from
    outside have a `value` of an opaque type and an empty list; maps have such a value and no list.
    """

    __slots__ = ("array", "dims", "dtype", "name", "quotients", "shape", "value", "words")

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: tuple[Dim, ...],
        *,
        value: Value | None = None,
        array: Array | None = None,
        dims: DimArray | None = None,
        quotients: Quotients | None = None,
        words: tuple[str, ...] | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.value = value
        self.array = array
        self.dims = dims
        self.quotients = quotients
        self.words = words

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def opaque(self) -> str:
        """The ONNX type of a value that is no tensor of numbers; empty for one that is."""
        if self.value is not None and isinstance(self.value.type, OpaqueType):
            return self.value.type.kind
        return "" if self.words is None else STRINGS

    def known(self) -> DimArray | None:
        """Its elements as dims, where it is a small tensor of integers or booleans that are known before it runs."""
        if self.words is not None:
            return None
        if self.dims is None and self.array is not None and self.array.size <= LARGEST_KNOWN:
            if not (self.dtype.is_integer or self.dtype.kind == "boolean"):
                return None
            self.dims = dim_array([dim(int(entry)) for entry in self.array.reshape(-1)], self.array.shape)
        return self.dims

    def __str__(self) -> str:
        if self.opaque and self.words is None:
            return self.opaque
        return f"{'string' if self.words is not None else self.dtype}[{', '.join(map(str, self.shape))}]"


def from_value(name: str, value: Value) -> Operand:
    """The operand of a graph value."""
    return Operand(name, value.tensor.dtype, value.tensor.shape, value=value)


def from_array(name: str, array: Array) -> Operand:
    """The operand of a constant."""
    return Operand(name, dtype_of(array), tuple(dim(extent) for extent in array.shape), array=array)


def from_dims(name: str, dims: DimArray, dtype: DType) -> Operand:
    """The operand of a tensor of symbolic integers; a constant where none is symbolic, wrapped as its type wraps."""
    shape = tuple(dim(extent) for extent in dims.shape)
    entries: list[Dim] = list(dims.reshape(-1))
    if any(not entry.is_constant for entry in entries):
        return Operand(name, dtype, shape, dims=dims)
    low, high = integer_range(dtype)
    span = high - low + 1
    array = np.array([(entry.constant - low) % span + low for entry in entries], dtype.numpy).reshape(dims.shape)
    return Operand(name, dtype, shape, array=array)


def dim_array(entries: list[Dim], shape: tuple[int, ...]) -> DimArray:
    """An object array of dims (numpy would make a number of a lone one)."""
    found = np.empty(len(entries), dtype=object)
    for position, entry in enumerate(entries):
        found[position] = entry
    return found.reshape(shape)
