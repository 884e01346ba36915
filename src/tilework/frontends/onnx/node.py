"""One ONNX node as a converter sees it: typed attributes, operands as values, arrays or dims, and the emitter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.external import DataFolder
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.folding import known_array
from tilework.frontends.onnx.operand import DimArray, Operand
from tilework.frontends.onnx.symbols import SymbolTable
from tilework.frontends.onnx.tensors import STRING_ELEMENTS, to_array
from tilework.graph.graph import Array, Value

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto

_T = TypeVar("_T")

Result: TypeAlias = "Value | Operand"
"""What a converter returns for one output."""


class OnnxNode:
    """A node being imported. Readers raise `NodeFault`; the importer adds the node's name and goes on with the rest."""

    def __init__(
        self,
        proto: NodeProto,
        opset: int,
        operands: Sequence[Operand | None],
        emitter: Emitter,
        folder: DataFolder | None,
    ) -> None:
        self.proto = proto
        self.operator = proto.op_type
        self.opset = opset
        self.operands = tuple(operands)
        self.emit = emitter
        self.outputs = tuple(proto.output)
        self._folder = folder
        self._attributes: dict[str, AttributeProto] = {a.name: a for a in proto.attribute}

    def on(self, operands: Sequence[Operand | None]) -> OnnxNode:
        """The same node with other operands."""
        return OnnxNode(self.proto, self.opset, operands, self.emit, self._folder)

    @property
    def symbols(self) -> SymbolTable:
        return self.emit.symbols

    # -- operands ------------------------------------------------------------------------------------------------------
    def has(self, position: int) -> bool:
        """Whether an optional input is given."""
        return position < len(self.operands) and self.operands[position] is not None

    def operand(self, position: int) -> Operand:
        found = self.operands[position] if position < len(self.operands) else None
        if found is None:
            raise NodeFault(1117, f"input {position} is missing")
        return found

    def value(self, position: int) -> Value:
        """An input as a graph value."""
        return self.emit.emit(self.operand(position))

    def optional(self, position: int) -> Value | None:
        return self.value(position) if self.has(position) else None

    def values(self) -> list[Value]:
        """All inputs."""
        return [self.value(position) for position in range(len(self.operands))]

    def wants_output(self, position: int) -> bool:
        return position < len(self.outputs) and bool(self.outputs[position])

    def dims(self, position: int, what: str) -> tuple[Dim, ...]:
        """An input that holds a list of integers (a shape, axes, starts), as dims; `NodeFault` 1116 where unknown."""
        found = self.known(position, what)
        if found.ndim > 1:
            raise NodeFault(1119, f"{what} must be a list, it is {self.operand(position)}")
        return tuple(found.reshape(-1))

    def known(self, position: int, what: str) -> DimArray:
        """An input as an array of dims, any rank; `NodeFault` 1116 where it is known only when the model runs."""
        operand = self.operand(position)
        if operand.known() is None:
            known_array(operand, self.emit)
        found = operand.known()
        if found is None:
            if not (operand.dtype.is_integer or operand.dtype.kind == "boolean"):
                raise NodeFault(1119, f"{what} must hold integers, it is {operand}")
            text = f"{what} ({operand.name!r}) depends on values known only when the model runs"
            raise NodeFault(1116, text, [operand])
        return found

    def one(self, position: int, what: str) -> Dim:
        """An input that holds one integer."""
        found = self.known(position, what)
        if found.size != 1:
            raise NodeFault(1119, f"{what} must be one number, it is {self.operand(position)}")
        only: Dim = found.reshape(-1)[0]
        return only

    def fixed(self, position: int, what: str) -> tuple[int, ...]:
        """An input that must be a list of plain integers."""
        found = self.dims(position, what)
        for entry in found:
            if not entry.is_constant:
                raise NodeFault(1116, f"{what} holds {entry}, it must be constant")
        return tuple(entry.constant for entry in found)

    def array(self, position: int, what: str) -> Array:
        """An input that must be a constant."""
        operand = self.operand(position)
        found = known_array(operand, self.emit)
        if found is None:
            raise NodeFault(1116, f"{what} ({operand.name!r}) must be a constant", [operand])
        return found

    def number_input(self, position: int, what: str) -> float:
        """An input that must be a constant of one number."""
        found = self.array(position, what)
        if found.size != 1:
            raise NodeFault(1119, f"{what} must be one number, it is {self.operand(position)}")
        return float(found.reshape(-1)[0])

    def constant_number(self, position: int) -> float | int | None:
        """The number of an input that is a constant of one element, else None."""
        array = self.operand(position).array if self.has(position) else None
        return None if array is None or array.size != 1 else array.reshape(-1)[0].item()

    # -- attributes ----------------------------------------------------------------------------------------------------
    def given(self, name: str) -> bool:
        return name in self._attributes

    def integer(self, name: str, default: int | None = None) -> int:
        found = self._attributes.get(name)
        return found.i if found is not None else self._default(name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        return self.integer(name, int(default)) != 0

    def number(self, name: str, default: float | None = None) -> float:
        """A float32; so is a default."""
        found = self._attributes.get(name)
        return found.f if found is not None else float(np.float32(self._default(name, default)))

    def text(self, name: str, default: str | None = None) -> str:
        found = self._attributes.get(name)
        return found.s.decode("utf-8", "replace") if found is not None else self._default(name, default)

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        found = self._attributes.get(name)
        return tuple(found.ints) if found is not None else tuple(self._default(name, default))

    def numbers(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        found = self._attributes.get(name)
        return tuple(found.floats) if found is not None else tuple(self._default(name, default))

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        found = self._attributes.get(name)
        if found is None:
            return tuple(self._default(name, default))
        return tuple(text.decode("utf-8", "replace") for text in found.strings)

    def tensor(self, name: str) -> Array:
        found = self._attributes.get(name)
        if found is None:
            raise NodeFault(1108, f"attribute {name!r} is missing")
        return to_array(found.t, self._folder)

    def strings_or_tensor(self, name: str) -> Array | tuple[str, ...]:
        """An attribute that holds a tensor, in one dimension: its numbers, or its strings."""
        found = self._attributes.get(name)
        if found is not None and found.t.data_type == STRING_ELEMENTS:
            return tuple(text.decode("utf-8", "replace") for text in found.t.string_data)
        return self.tensor(name).reshape(-1)

    def graph(self, name: str) -> GraphProto:
        found = self._attributes.get(name)
        if found is None:
            raise NodeFault(1108, f"attribute {name!r} is missing")
        return found.g

    def _default(self, name: str, default: _T | None) -> _T:
        if default is None:
            raise NodeFault(1108, f"attribute {name!r} is missing")
        return default

    # -- what attributes and operands mean -----------------------------------------------------------------------------
    def axis(self, given: int, rank: int, what: str = "axis") -> int:
        """A dimension number counted from the front; `NodeFault` 1108 where there is none such."""
        if not -rank <= given < rank:
            raise NodeFault(1108, f"{what} {given} is no dimension of a tensor of rank {rank}")
        return given % rank

    def axes(self, given: Sequence[int], rank: int, what: str = "axes") -> tuple[int, ...]:
        """Distinct dimension numbers, sorted."""
        found = [self.axis(entry, rank, what) for entry in given]
        if len(set(found)) != len(found):
            raise NodeFault(1108, f"{what} {list(given)} name a dimension twice")
        return tuple(sorted(found))

    def positives(self, name: str, rank: int, default: int = 1) -> tuple[int, ...]:
        """An attribute with one positive integer per dimension (strides, dilations, a window)."""
        found = self.integers(name, (default,) * rank)
        if len(found) != rank:
            raise NodeFault(1108, f"attribute {name!r} has {len(found)} entries, {rank} are needed")
        for entry in found:
            if not 0 < entry < 2**31:
                raise NodeFault(1108, f"attribute {name!r} holds {entry}, it must be positive and below 2**31")
        return found

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """A text attribute that must be one of some words; `NodeFault` 1123 otherwise."""
        found = self.text(name, default)
        if found not in choices:
            raise NodeFault(1123, f"attribute {name!r} is {found!r}; supported: {', '.join(choices)}")
        return found


def finite(number: float, what: str) -> float:
    """The number; `NodeFault` 1108 for NaN and infinities, where an attribute must be neither."""
    if not math.isfinite(number):
        raise NodeFault(1108, f"{what} is {number}")
    return number


def element(value: Value) -> DType:
    """The element type of a value."""
    return value.tensor.dtype


def fixed_extent(value: Dim, what: str) -> int:
    """The integer that a dim is; `NodeFault` 1116 where it is symbolic."""
    if not value.is_constant:
        raise NodeFault(1116, f"{what} is {value}, it must be constant")
    return value.constant
