"""Giving values of a graph other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilework.graph.graph import Constant, Graph, Value


def rename_values(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with values renamed, old name to new; a value in the way of a new name gets a number added to its own.

    For graphs without subgraphs.
    """
    if not names:
        return graph
    wanted = dict(names)
    taken = set(graph.values) | set(names.values())
    for name in names.values():
        if name in graph.values and name not in names:
            count = 0
            while f"{name}_{count}" in taken:
                count += 1
            wanted[name] = f"{name}_{count}"
            taken.add(wanted[name])

    def value(old: Value) -> Value:
        return Value(wanted[old.name], old.type) if old.name in wanted else old

    return graph.replace(
        inputs=tuple(map(value, graph.inputs)),
        constants=tuple(Constant(wanted.get(c.name, c.name), c.array) for c in graph.constants),
        nodes=tuple(
            replace(node, inputs=tuple(wanted.get(n, n) for n in node.inputs), outputs=tuple(map(value, node.outputs)))
            for node in graph.nodes
        ),
        outputs=tuple(wanted.get(n, n) for n in graph.outputs),
    )
