"""Compute the same thing once (common subexpressions)."""

from __future__ import annotations

import struct
from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute, Constant, Graph, Node
from tilework.graph.types import TensorType
from tilework.passes._rewriting import Alias, Outcome, Scope, is_effect, rewrite, substitute


@dataclass(frozen=True)
class MergeDuplicates:
    """Merges nodes of one graph that apply the same operator to the same values, and constants with the same bytes.

    Effects, control flow and black boxes are left alone: nothing says that two of them return the same.
    """

    name: ClassVar[str] = "merge_duplicates"

    def run(self, graph: Graph) -> Graph:
        """The graph with duplicates merged."""
        return rewrite(_merged_constants(graph), _merge)


def _merge(node: Node, scope: Scope) -> Outcome:
    if node.black_box or node.subgraphs or is_effect(node, scope):
        return None
    attributes = tuple((name, _key(node.attributes[name])) for name in sorted(node.attributes))
    types = tuple(value.type for value in node.outputs)
    first = scope.keys.setdefault((node.operator, node.inputs, attributes, types), node)
    return None if first is node else Alias(tuple(value.name for value in first.outputs))


def _key(value: Attribute) -> object:
    """A key that tells apart what `==` does not: True and 1, 1 and 1.0, 0.0 and -0.0; and finds NaN equal to itself."""
    if isinstance(value, tuple):
        return tuple(_key(entry) for entry in value)
    return (type(value).__name__, struct.pack("<d", value) if isinstance(value, float) else value)


def _merged_constants(graph: Graph) -> Graph:
    by_type: dict[TensorType, list[Constant]] = {}
    for constant in graph.constants:
        by_type.setdefault(constant.type, []).append(constant)
    renamed: dict[str, str] = {}
    for alike in by_type.values():
        first: dict[str, str] = {}
        # only constants of one type are hashed: weights are large and mostly of different shapes
        for constant in alike if len(alike) > 1 else ():
            name = first.setdefault(constant.digest, constant.name)
            if name != constant.name and constant.name not in graph.outputs:
                renamed[constant.name] = name
    if not renamed:
        return graph
    kept = tuple(constant for constant in graph.constants if constant.name not in renamed)
    return substitute(graph.replace(constants=kept), renamed)
