"""Put the branch that a constant condition chooses in place of its `if`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Constant, Graph, Node, walk
from tilework.passes._rewriting import substitute


@dataclass(frozen=True)
class InlineBranches:
    """Replaces each `if` whose predicate is a constant by the nodes of the branch that runs.

    Names of the branch that are defined elsewhere too get a number. An `if` stays where a graph output would lose its
    name: its branch returns an input, a captured value, or one value twice.
    """

    name: ClassVar[str] = "inline_branches"

    def run(self, graph: Graph) -> Graph:
        """The graph without decided branches; what was inside them is looked at in the next run."""
        if not any(node.operator == "if" for node in walk(graph)):
            return graph
        return _inlined(graph, {}, _Names(graph))


class _Names:
    """How often every value and node name is defined in a graph and everything inside it."""

    def __init__(self, graph: Graph) -> None:
        self.values: Counter[str] = Counter()
        self.nodes: Counter[str] = Counter()
        for inner in _graphs(graph):
            self.values.update(list(inner.values))
            self.nodes.update(node.name for node in inner.nodes)

    def own(self, name: str, known: Counter[str]) -> str:
        """The name where it is defined once, else a new one."""
        if known[name] == 1:
            return name
        count = 1
        while known[f"{name}_{count}"]:
            count += 1
        known[name] -= 1
        known[f"{name}_{count}"] = 1
        return f"{name}_{count}"


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for inner in node.subgraphs:
            yield from _graphs(inner)


def _inlined(graph: Graph, outer: Mapping[str, Array], names: _Names) -> Graph:
    arrays = {**outer, **graph.constant_arrays}
    nodes: list[Node] = []
    constants: list[Constant] = []
    aliases: dict[str, str] = {}
    for node in graph.nodes:
        kept = _substituted(node, aliases)
        predicate = arrays.get(kept.inputs[0]) if kept.operator == "if" and not kept.black_box else None
        if predicate is not None:
            branch = kept.subgraphs[0 if bool(predicate.reshape(())) else 1]
            passed = _passed_on(kept, branch)
            if not branch.symbols and not any(name in graph.outputs for name in passed):
                aliases.update(passed)
                found_nodes, found_constants = _body(kept, branch, names)
                nodes.extend(found_nodes)
                constants.extend(found_constants)
                continue
        subgraphs = tuple(_inlined(inner, arrays, names) for inner in kept.subgraphs)
        if any(a is not b for a, b in zip(subgraphs, kept.subgraphs, strict=True)):
            kept = replace(kept, subgraphs=subgraphs)
        nodes.append(kept)
    if len(nodes) == len(graph.nodes) and all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return graph.replace(nodes=tuple(nodes), constants=(*graph.constants, *constants))


def _substituted(node: Node, names: Mapping[str, str]) -> Node:
    if not names:
        return node
    inputs = tuple(names.get(name, name) for name in node.inputs)
    return replace(node, inputs=inputs, subgraphs=tuple(substitute(inner, names) for inner in node.subgraphs))


def _passed_on(node: Node, branch: Graph) -> dict[str, str]:
    """Results of the `if` that its branch does not compute for them alone, and the values that they are."""
    arguments = dict(zip((value.name for value in branch.inputs), node.inputs[1:], strict=True))
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for result, name in zip(node.outputs, branch.outputs, strict=True):
        if name in arguments:
            found[result.name] = arguments[name]
        elif name not in branch.values:
            found[result.name] = name
        elif first.setdefault(name, result.name) != result.name:
            found[result.name] = first[name]
    return found


def _body(node: Node, branch: Graph, names: _Names) -> tuple[list[Node], list[Constant]]:
    """The branch's nodes and constants under names that fit the graph around it."""
    moved = dict(zip((value.name for value in branch.inputs), node.inputs[1:], strict=True))
    for result, name in zip(node.outputs, branch.outputs, strict=True):
        if name in branch.values:
            moved.setdefault(name, result.name)
    for name in branch.values:
        if name not in moved:
            moved[name] = names.own(name, names.values)
    constants = [Constant(moved[constant.name], constant.array) for constant in branch.constants]
    nodes = [
        replace(
            inner,
            name=names.own(inner.name, names.nodes),
            inputs=tuple(moved.get(name, name) for name in inner.inputs),
            outputs=tuple(replace(value, name=moved[value.name]) for value in inner.outputs),
            subgraphs=tuple(substitute(below, moved) for below in inner.subgraphs),
        )
        for inner in branch.nodes
    ]
    return nodes, constants
