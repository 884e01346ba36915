"""Tails of products that are read more often than they have elements: the gates of squeeze-and-excitation blocks."""

from __future__ import annotations

from tilework.dims import Dim
from tilework.graph.graph import Graph, Node
from tilework.ops.registry import operator

_PRODUCTS = frozenset(("dot_general", "convolution"))
_SAME_ELEMENTS = frozenset(("reshape", "transpose"))


def is_repeated_tail(graph: Graph, node: Node) -> bool:
    """Whether a node is the last of those that a product's results go through, one by one, before they are repeated.

    Such a node stays with its product, whose results are stored in any case: in its reader's region it would be
    computed for every part that the results are repeated in, and the product could not follow it there.
    """
    return _is_tail(graph, node) and _is_repeated(graph, node)


def _only_reader(graph: Graph, node: Node) -> Node | None:
    if len(node.outputs) != 1 or node.outputs[0].name in graph.outputs:
        return None
    readers = graph.consumers.get(node.outputs[0].name, ())
    return readers[0] if len(readers) == 1 and not readers[0].subgraphs and not readers[0].black_box else None


def _is_tail(graph: Graph, node: Node) -> bool:
    """Whether an elementwise node's result follows a product's of the same shape, which nothing else reads."""
    shape = _shape(node)
    waiting, seen = [node], {node.name}
    while waiting:
        top = waiting.pop()
        if top.operator in _PRODUCTS:
            return top is not node
        if top.black_box or not operator(top.operator).elementwise:
            continue
        for name in top.inputs:
            found = graph.producers.get(name)
            if found is None or found.name in seen or len(found.outputs) != 1 or _shape(found) != shape:
                continue
            seen.add(found.name)
            if _only_reader(graph, found) is not None:
                waiting.append(found)
    return False


def _is_repeated(graph: Graph, node: Node) -> bool:
    """Whether its only reader, perhaps after a movement, has more elements than it, in more places."""
    reader = _only_reader(graph, node)
    while reader is not None and reader.operator in _SAME_ELEMENTS:
        node, reader = reader, _only_reader(graph, reader)
    if reader is None or len(reader.outputs) != 1:
        return False
    return reader.operator == "broadcast_in_dim" or (
        operator(reader.operator).elementwise and _shape(reader) != _shape(node)
    )


def _shape(node: Node) -> tuple[Dim, ...]:
    return node.outputs[0].tensor.shape
