"""Giving values of a graph other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilework.graph.graph import Constant, Graph, Node, Value, definition_names, subgraphs


def rename_values(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with values renamed, old name to new; a value in the way of a new name gets a number added to its own.

    The values are those of the graph itself; subgraphs that capture them read them by their new names.
    """
    if not names:
        return graph
    # what subgraphs define counts as taken: there it would hide the value of that name
    inner = {name for part, depth in subgraphs(graph) if depth for name in definition_names(part)}
    taken = {*graph.values, *inner, *names.values()}
    wanted = dict(names)
    in_the_way: dict[str, str] = {}
    for name in names.values():
        if name in graph.values and name not in names:
            wanted[name] = _numbered(name, taken)
        if name in inner:
            in_the_way[name] = _numbered(name, taken)
    return _renamed(graph, wanted, in_the_way)


def _numbered(name: str, taken: set[str]) -> str:
    count = 0
    while f"{name}_{count}" in taken:
        count += 1
    taken.add(f"{name}_{count}")
    return f"{name}_{count}"


def _renamed(graph: Graph, wanted: Mapping[str, str], in_the_way: Mapping[str, str]) -> Graph:
    """The graph under `wanted`, its subgraphs too, where a name that they define and that is `in_the_way` goes."""

    def value(old: Value) -> Value:
        return Value(wanted[old.name], old.type) if old.name in wanted else old

    def inside(subgraph: Graph) -> Graph:
        own = set(definition_names(subgraph))
        names = {old: new for old, new in wanted.items() if old not in own}
        names.update((old, in_the_way[old]) for old in own if old in in_the_way)
        return _renamed(subgraph, names, in_the_way)

    def node(old: Node) -> Node:
        return replace(
            old,
            inputs=tuple(wanted.get(name, name) for name in old.inputs),
            outputs=tuple(map(value, old.outputs)),
            subgraphs=tuple(map(inside, old.subgraphs)),
        )

    return graph.replace(
        inputs=tuple(map(value, graph.inputs)),
        constants=tuple(Constant(wanted.get(c.name, c.name), c.array) for c in graph.constants),
        nodes=tuple(map(node, graph.nodes)),
        outputs=tuple(wanted.get(name, name) for name in graph.outputs),
    )
