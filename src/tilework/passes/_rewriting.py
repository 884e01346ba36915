"""Rewriting node by node, in order, subgraphs included, keeping the names of graph outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Constant, Graph, Node, Value
from tilework.graph.types import TensorType, TokenType


@dataclass(frozen=True)
class Alias:
    """A node is not needed: its results are these values, one each, defined before it."""

    names: tuple[str, ...]


Outcome: TypeAlias = "Node | Alias | tuple[Constant, ...] | None"
"""What becomes of a node: another node with the same results, other values, constants called as its results, or (None)
the node as it is."""


class Scope:
    """What is known while one graph is rewritten: the values defined so far, here and in the graphs around it."""

    def __init__(self, graph: Graph, outer: Scope | None) -> None:
        self.outer = outer
        self.values: dict[str, Value] = {value.name: value for value in graph.inputs}
        self.values.update((constant.name, constant.value) for constant in graph.constants)
        self.arrays: dict[str, Array] = dict(graph.constant_arrays)
        self.producers: dict[str, Node] = {}
        self.keys: dict[object, Node] = {}
        """For a pass to remember nodes of this graph by."""

    def add(self, node: Node) -> None:
        """A node that stays."""
        for value in node.outputs:
            self.values[value.name] = value
            self.producers[value.name] = node

    def add_constant(self, constant: Constant) -> None:
        self.values[constant.name] = constant.value
        self.arrays[constant.name] = constant.array

    def value(self, name: str) -> Value:
        """The value of that name; `KeyError` for one that is not defined yet."""
        if name in self.values or self.outer is None:
            return self.values[name]
        return self.outer.value(name)

    def tensor(self, name: str) -> TensorType | None:
        """The type of a tensor; None for a token."""
        found = self.value(name).type
        return found if isinstance(found, TensorType) else None

    def array(self, name: str) -> Array | None:
        """The array of a constant; None for any other value."""
        if name in self.values or self.outer is None:
            return self.arrays.get(name)
        return self.outer.array(name)

    def producer(self, name: str) -> Node | None:
        """The node that defines a value; None for an input or a constant."""
        if name in self.values or self.outer is None:
            return self.producers.get(name)
        return self.outer.producer(name)


Visit: TypeAlias = Callable[[Node, Scope], Outcome]


def rewrite(graph: Graph, visit: Visit) -> Graph:
    """The graph with every node put before `visit` once, its operands and subgraphs already rewritten.

    A node whose result is a graph output is replaced by another value only where that value can take over the name
    of the output: it comes from a node of the same graph and is no output itself. Otherwise the node stays.
    """
    return _rewrite(graph, visit, None, {})


def _rewrite(graph: Graph, visit: Visit, outer: Scope | None, known: Mapping[str, str]) -> Graph:
    scope = Scope(graph, outer)
    aliases = dict(known)
    outputs = set(graph.outputs)
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    constants: list[Constant] = []
    changed = any(name in aliases for name in graph.outputs)
    for node in graph.nodes:
        current = _moved(node, visit, scope, aliases)
        outcome = visit(current, scope)
        if isinstance(outcome, Alias):
            pairs = {v.name: name for v, name in zip(node.outputs, outcome.names, strict=True) if v.name != name}
            takes_over = {old: new for old, new in pairs.items() if old in outputs}
            free = all(
                new in scope.producers and new not in outputs and new not in renamed for new in takes_over.values()
            ) and len(set(takes_over.values())) == len(takes_over)
            if free:
                aliases.update(pairs)
                renamed.update((new, old) for old, new in takes_over.items())
                changed = True
                continue
            outcome = None
        if isinstance(outcome, tuple):
            for constant in outcome:
                scope.add_constant(constant)
            constants.extend(outcome)
            changed = True
            continue
        kept = current if outcome is None else outcome
        changed = changed or kept is not node
        scope.add(kept)
        nodes.append(kept)
    if not changed:
        return graph
    found = graph.replace(
        nodes=tuple(nodes), constants=(*graph.constants, *constants),
        outputs=tuple(aliases.get(name, name) for name in graph.outputs),
    )  # fmt: skip
    return substitute(found, renamed)


def _moved(node: Node, visit: Visit, scope: Scope, aliases: Mapping[str, str]) -> Node:
    inputs = tuple(aliases.get(name, name) for name in node.inputs)
    subgraphs = tuple(_rewrite(graph, visit, scope, aliases) for graph in node.subgraphs)
    if inputs == node.inputs and all(a is b for a, b in zip(subgraphs, node.subgraphs, strict=True)):
        return node
    return replace(node, inputs=inputs, subgraphs=subgraphs)


def substitute(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with values renamed wherever they are defined or read, subgraphs included."""
    if not names:
        return graph
    return graph.replace(
        outputs=tuple(names.get(name, name) for name in graph.outputs),
        nodes=tuple(_substituted(node, names) for node in graph.nodes),
    )


def _substituted(node: Node, names: Mapping[str, str]) -> Node:
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(replace(v, name=names[v.name]) if v.name in names else v for v in node.outputs)
    subgraphs = tuple(substitute(graph, names) for graph in node.subgraphs)
    return replace(node, inputs=inputs, outputs=outputs, subgraphs=subgraphs)


def is_effect(node: Node, scope: Scope) -> bool:
    """Whether a node takes or returns a token."""
    types = (*(scope.value(name).type for name in node.inputs), *(value.type for value in node.outputs))
    return any(isinstance(found, TokenType) for found in types)
