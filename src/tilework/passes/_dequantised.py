"""Finding values that are narrow integers times a constant scale: (q - zero point) * scale, as graphs spell it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilework.dims import Dim
from tilework.dtypes import DType, float32, int32, integer_range
from tilework.errors import TileworkError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Graph, Node, Value
from tilework.graph.types import TensorType
from tilework.ops.registry import has_operator, operator

_LARGEST = 1 << 16
"""Elements of constants that are looked into: scales, zero points and biases have no more."""


@dataclass(frozen=True)
class Dequantised:
    """(value - zero) * scale. `zero` (int32) and `scale` (float32, finite, positive) broadcast against the value."""

    value: Value
    zero: Array
    scale: Array


class Matcher:
    """Looks at the nodes of a graph as it is written."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._arrays: dict[str, Array | None] = dict(graph.constant_arrays)

    def constant(self, name: str) -> Array | None:
        """What a value holds, where constants alone decide it and it is small."""
        if name in self._arrays:
            return self._arrays[name]
        self._arrays[name] = found = self._evaluated(name)
        return found

    def _evaluated(self, name: str) -> Array | None:
        node = self._graph.producers.get(name)
        if node is None or node.black_box or node.subgraphs or not has_operator(node.operator) or not node.inputs:
            return None
        kinds = [value.type for value in node.outputs]
        types = [kind for kind in kinds if isinstance(kind, TensorType)]
        if len(kinds) != 1 or len(types) != 1 or not types[0].size.is_constant or int(types[0].size) > _LARGEST:
            return None
        operands = [self.constant(other) for other in node.inputs]
        arrays = [array for array in operands if array is not None and array.size <= _LARGEST]
        if len(arrays) != len(operands):
            return None
        try:
            return operator(node.operator).reference(arrays, _plain(node.attributes), types)[0]
        except TileworkError:
            return None

    def positive(self, name: str) -> Array | None:
        """A constant of float32 numbers, all finite and above 0."""
        found = self.constant(name)
        if found is None or found.dtype != np.float32 or not found.size:
            return None
        return found if bool(np.all(np.isfinite(found) & (found > 0))) else None

    def dequantised(self, name: str) -> Dequantised | None:
        """The integers that a value is made of; None where it is no such value."""
        node = self._node(name, "multiply")
        if node is None:
            return None
        for wide, by in (node.inputs, node.inputs[::-1]):
            converted, scale = self._node(wide, "convert"), self.positive(by)
            if converted is None or scale is None or not self._is(wide, float32):
                continue
            source = converted.inputs[0]
            if not self._graph.values[source].tensor.dtype.is_integer:
                continue
            shape = self._graph.values[source].tensor.shape
            if shape != node.output.tensor.shape:
                continue  # the scale repeats it
            less = self._node(source, "subtract")
            if less is not None and self._is(source, int32):
                zero = self.constant(less.inputs[1])
                inner = self._narrow(less.inputs[0])
                if zero is not None and inner.tensor.shape == shape:
                    return Dequantised(inner, zero if np.any(zero) else np.zeros((), np.int32), scale)
            return Dequantised(self._narrow(source), np.zeros((), np.int32), scale)
        return None

    def requantised(self, node: Node) -> tuple[str, Array, float] | None:
        """The value, the scale and the zero point of a node that is the last one of a quantisation to 8 bits."""
        dtype = node.output.tensor.dtype
        if node.operator != "convert" or not dtype.is_integer or dtype.bits != 8:
            return None
        low, high = integer_range(dtype)
        top = self._bound(node.inputs[0], "minimum", high)
        bottom = None if top is None else self._bound(top, "maximum", low)
        if bottom is None:
            return None
        zero, rounded = 0.0, self._node(bottom, "round_nearest_even")
        added = self._node(bottom, "add")
        if added is not None:
            offset, rounded = self.constant(added.inputs[1]), self._node(added.inputs[0], "round_nearest_even")
            if offset is None or offset.size != 1:
                return None
            zero = float(offset.reshape(()))
        divided = None if rounded is None else self._node(rounded.inputs[0], "divide")
        scale = None if divided is None else self.positive(divided.inputs[1])
        if divided is None or scale is None or divided.output.tensor.shape != node.output.tensor.shape:
            return None
        return divided.inputs[0], scale, zero

    def _bound(self, name: str, kind: str, limit: int) -> str | None:
        """What a value is before a constant bound."""
        node = self._node(name, kind)
        number = None if node is None else self.constant(node.inputs[1])
        if node is None or number is None or number.size != 1 or float(number.reshape(())) != limit:
            return None
        return node.inputs[0]

    def _narrow(self, name: str) -> Value:
        """The integers before they were widened."""
        node = self._node(name, "convert")
        if node is not None and self._is(name, int32):
            before = self._graph.values[node.inputs[0]]
            if before.tensor.dtype.is_integer and before.tensor.dtype.bits <= 16:
                return before
        return self._graph.values[name]

    def _node(self, name: str, kind: str) -> Node | None:
        found = self._graph.producers.get(name)
        return found if found is not None and found.operator == kind and not found.black_box else None

    def _is(self, name: str, dtype: DType) -> bool:
        return self._graph.values[name].tensor.dtype == dtype


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with integers for dims; `TileworkError` where one is symbolic."""
    return {name: _integers(value) for name, value in attributes.items()}


def _integers(value: Any) -> Any:
    if isinstance(value, Dim):
        return int(value)
    return tuple(_integers(entry) for entry in value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType]
