"""Evaluate what depends on nothing but constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tilework.dims import Dim
from tilework.errors import TileworkError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Attribute, Constant, Graph, Node
from tilework.graph.types import TensorType
from tilework.ops.registry import has_operator, operator
from tilework.passes._rewriting import Outcome, Scope, is_effect, rewrite


@dataclass(frozen=True)
class FoldConstants:
    """Replaces a node by its results where all its operands are constants, through the operator's reference.

    Left alone: effects, control flow, black boxes, results of symbolic shape; results that take more bytes than the
    operands and than `growth_limit_bytes` (a broadcast would only be carried around); work beyond `operation_limit`
    arithmetic operations; and what would fail (an index out of range), which is the run's business.
    """

    name: ClassVar[str] = "fold_constants"
    growth_limit_bytes: int = 1 << 16
    operation_limit: int = 1 << 28

    def run(self, graph: Graph) -> Graph:
        """The graph with constant nodes evaluated."""
        return rewrite(graph, self._fold)

    def _fold(self, node: Node, scope: Scope) -> Outcome:
        if node.black_box or node.subgraphs or not has_operator(node.operator) or is_effect(node, scope):
            return None
        operands = [scope.array(name) for name in node.inputs]
        arrays = [array for array in operands if array is not None]
        types = [value.type for value in node.outputs if isinstance(value.type, TensorType)]
        attributes = _constant_attributes(node.attributes)
        static = all(extent.is_constant for found in types for extent in found.shape)
        if len(arrays) != len(operands) or attributes is None or not static:
            return None
        grown = sum(int(found.bytes) for found in types)
        if grown > max(self.growth_limit_bytes, sum(array.nbytes for array in arrays)):
            return None
        found = operator(node.operator)
        work = found.counts([scope.value(name).type for name in node.inputs], types, node.attributes).flops.value
        if work is None or work > self.operation_limit:
            return None
        try:
            results = found.reference(arrays, attributes, types)
        except TileworkError:
            return None
        return tuple(Constant(v.name, _held(array)) for v, array in zip(node.outputs, results, strict=True))


def _held(array: Array) -> Array:
    """A dense, read-only array of its own memory."""
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def _constant_attributes(attributes: Mapping[str, Attribute]) -> dict[str, Any] | None:
    """Attributes with integers for constant dims; None where one is symbolic."""
    try:
        return {name: _plain(value) for name, value in attributes.items()}
    except TileworkError:
        return None


def _plain(value: Attribute) -> Any:
    if isinstance(value, Dim):
        return int(value)
    return tuple(_plain(entry) for entry in value) if isinstance(value, tuple) else value
