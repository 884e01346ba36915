"""Give every value and node of a graph and of all its subgraphs a name that occurs once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from tilework.fast_dataclass import dataclass, field
from tilework.graph.graph import Constant, Graph, Node, definition_names, subgraphs


@dataclass(frozen=True)
class DistinctNames:
    """Numbers names that several subgraphs define (two branches may each have an `x`); the outermost keeps its own.

    With it, the values of all subgraphs can be told apart by name alone, as those of one list of steps.
    """

    name: ClassVar[str] = "distinct_names"

    def run(self, graph: Graph) -> Graph:
        """The graph with distinct names; itself where it has no subgraphs."""
        if not any(node.subgraphs for node in graph.nodes):
            return graph
        names = _Names(
            {name for inner, _ in subgraphs(graph) for name in definition_names(inner)},
            {node.name for inner, _ in subgraphs(graph) for node in inner.nodes},
        )
        return _renamed(graph, {}, names)


@dataclass
class _Names:
    """Names that occur anywhere, which no new name may be, and those that are given away."""

    values: set[str]
    nodes: set[str]
    given: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def own(self, kind: str, name: str) -> str:
        """The name where nothing has it yet, else a new one."""
        known = self.values if kind == "value" else self.nodes
        found, count = name, 1
        while (kind, found) in self.given or (found != name and found in known):
            found = f"{name}_{count}"
            count += 1
        self.given.add((kind, found))
        return found


def _renamed(graph: Graph, outer: Mapping[str, str], names: _Names) -> Graph:
    known = dict(outer)
    known.update((name, names.own("value", name)) for name in definition_names(graph))

    def node_of(node: Node) -> Node:
        return replace(
            node,
            name=names.own("node", node.name),
            inputs=tuple(known.get(name, name) for name in node.inputs),
            outputs=tuple(replace(value, name=known[value.name]) for value in node.outputs),
            subgraphs=tuple(_renamed(inner, known, names) for inner in node.subgraphs),
        )

    return graph.replace(
        inputs=tuple(replace(value, name=known[value.name]) for value in graph.inputs),
        constants=tuple(Constant(known[constant.name], constant.array) for constant in graph.constants),
        outputs=tuple(known.get(name, name) for name in graph.outputs),
        nodes=tuple(node_of(node) for node in graph.nodes),
    )
