"""Remove what nothing uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Graph, Node, Value, captured
from tilework.graph.types import TensorType, TokenType
from tilework.ops.registry import has_operator, operator


@dataclass(frozen=True)
class EliminateDeadCode:
    """Removes nodes and constants that no output and no effect depends on, in subgraphs too.

    Kept: inputs (they are the caller's), whatever takes or returns a token, and what binds a measured symbol.
    """

    name: ClassVar[str] = "eliminate_dead_code"

    def run(self, graph: Graph) -> Graph:
        """The graph without dead nodes and constants."""
        return _pruned(graph, frozenset(), {})


def _pruned(graph: Graph, measured: frozenset[str], outer: Mapping[str, Value]) -> Graph:
    values = {**outer, **graph.values}
    measured |= {symbol.name for symbol in graph.symbols if symbol.measured}
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        needed = _is_effect(node, values) or _binds(node, values, measured)
        if not needed and not any(value.name in live for value in node.outputs):
            continue
        subgraphs = tuple(_pruned(inner, measured, values) for inner in node.subgraphs)
        if any(a is not b for a, b in zip(subgraphs, node.subgraphs, strict=True)):
            node = replace(node, subgraphs=subgraphs)
        live.update(node.inputs)
        for inner in subgraphs:
            live.update(captured(inner))
        kept.append(node)
    nodes = tuple(reversed(kept))
    constants = tuple(constant for constant in graph.constants if constant.name in live)
    same = len(constants) == len(graph.constants) and len(nodes) == len(graph.nodes)
    if same and all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return graph.replace(nodes=nodes, constants=constants)


def _is_effect(node: Node, values: Mapping[str, Value]) -> bool:
    return any(isinstance(v.type, TokenType) for v in (*node.outputs, *(values[name] for name in node.inputs)))


def _binds(node: Node, values: Mapping[str, Value], measured: frozenset[str]) -> bool:
    """Whether a node gives a measured symbol its value: its operator says so, or (control flow, black boxes) a result's
    shape names one that no operand's shape names.
    """
    if not measured:
        return False
    if not node.subgraphs and not node.black_box and has_operator(node.operator):
        return bool(operator(node.operator).measured(node.attributes))
    found = _symbols(node.outputs) & measured
    return bool(found - _symbols(values[name] for name in node.inputs))


def _symbols(values: Iterable[Value]) -> set[str]:
    types = [value.type for value in values]
    return {name for t in types if isinstance(t, TensorType) for extent in t.shape for name in extent.names()}
