"""A graph's list of nodes while a pass writes it anew: new nodes with inferred types and names of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tilework.graph.graph import Array, Attribute, Constant, Graph, Node, Value, definition_names, subgraphs
from tilework.ops.registry import operator


class Growing:
    """Nodes and constants so far. `location` is what new nodes are called by in messages."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.location = ""
        self.nodes: list[Node] = []
        self.constants: list[Constant] = []
        self.values: dict[str, Value] = {value.name: value for value in graph.inputs}
        self.values.update((constant.name, constant.value) for constant in graph.constants)
        self.producers: dict[str, Node] = {}
        self._used = {name for inner, _ in subgraphs(graph) for name in definition_names(inner)}
        self._used.update(node.name for inner, _ in subgraphs(graph) for node in inner.nodes)

    def _fresh(self, stem: str) -> str:
        found = next(name for name in _names(stem) if name not in self._used)
        self._used.add(found)
        return found

    def constant(self, array: Array, stem: str) -> Value:
        held = np.array(array, order="C")
        held.flags.writeable = False
        found = Constant(self._fresh(stem), held)
        self.constants.append(found)
        self.values[found.name] = found.value
        return found.value

    def apply(
        self, name: str, *inputs: Value, as_: Value | None = None, like: Mapping[str, Attribute] | None = None,
        **attributes: Attribute,
    ) -> Value:  # fmt: skip
        """Add a node with one result; `as_`: the value that it takes the place of, whose type it must have. `like`:
        attributes of another node that it has too.
        """
        held: Mapping[str, Attribute] = MappingProxyType({**(like or {}), **attributes})
        (kind,) = operator(name).infer([value.type for value in inputs], held)
        made = as_ if as_ is not None else Value(self._fresh(name), kind)
        if made.type != kind:
            raise TypeError(f"{name} gives {kind} in place of {made.type}")
        called = made.name if as_ is None else self._fresh(f"{made.name}.{name}")
        self.keep(Node(called, name, tuple(v.name for v in inputs), (made,), held, (), self.location))
        return made

    def keep(self, node: Node) -> None:
        """A node as it is."""
        self.nodes.append(node)
        for value in node.outputs:
            self.values[value.name] = value
            self.producers[value.name] = node

    def built(self) -> Graph:
        """The graph with these nodes, and the constants added."""
        graph = self.graph
        return replace(graph, nodes=tuple(self.nodes), constants=(*graph.constants, *self.constants))


def _names(stem: str) -> Iterator[str]:
    yield stem
    count = 1
    while True:
        yield f"{stem}_{count}"
        count += 1
