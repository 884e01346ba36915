"""Values that follow from constants alone, computed while a model is imported: what a shape or an axis is made of."""

from __future__ import annotations

from typing import Any

from tilework.dims import Dim
from tilework.errors import TileworkError
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.operand import LARGEST_KNOWN, Operand
from tilework.graph.graph import Array, Attribute, Node, Value
from tilework.graph.types import TensorType
from tilework.ops.registry import operator


def known_array(operand: Operand, emitter: Emitter) -> Array | None:
    """The array of an operand that is a constant, or that few operators compute from small constants; else None."""
    if operand.array is None and operand.dims is None and operand.value is not None:
        operand.array = _computed(operand.value, emitter)
    return operand.array


def _computed(value: Value, emitter: Emitter) -> Array | None:
    emitters: list[Emitter] = [emitter]
    while emitters[-1].around is not None:
        emitters.append(emitters[-1].around)
    builders = [found.builder for found in emitters]
    makers = {made.name: node for builder in builders for node in builder.nodes for made in node.outputs}
    found: dict[str, Array] = {}
    left = [value.name]
    while left:
        name = left[-1]
        if name in found:
            left.pop()
            continue
        array = next((held for b in builders if (held := b.constant_value(name)) is not None), None)
        if array is not None:
            found[name] = array
            continue
        node = makers.get(name)
        if node is None or node.black_box or node.subgraphs:
            return None
        missing = [read for read in node.inputs if read not in found]
        if missing:
            left.extend(missing)
            continue
        results = _evaluated(node, [found[read] for read in node.inputs])
        if results is None:
            return None
        found.update((made.name, array) for made, array in zip(node.outputs, results, strict=True))
    return found[value.name]


def _evaluated(node: Node, operands: list[Array]) -> tuple[Array, ...] | None:
    """The results of a node by its operator's reference; None where they are large, symbolic or a fault."""
    types = [made.type for made in node.outputs if isinstance(made.type, TensorType)]
    if len(types) != len(node.outputs) or not all(
        t.size.is_constant and t.size.constant <= LARGEST_KNOWN for t in types
    ):
        return None
    try:
        attributes = {name: _plain(entry) for name, entry in node.attributes.items()}
        return operator(node.operator).reference(operands, attributes, types)
    except TileworkError:
        return None


def _plain(entry: Attribute) -> Any:
    if isinstance(entry, Dim):
        return int(entry)
    return tuple(_plain(part) for part in entry) if isinstance(entry, tuple) else entry
