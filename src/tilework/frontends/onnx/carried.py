"""Branches with results of different types: whatever follows from these is carried into both branches.

A value of the graph has one type. ONNX lets the branches of an `If` return others: a vector or a matrix, say. Where
data decide which, each branch gets a copy of all nodes that depend on the results, and is imported with types of its
own. What the model itself returns in the end must have one type again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tilework.errors import Fault
from tilework.frontends.onnx.check import node_called

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto

MOST_NODES = 400
"""Nodes that are copied at the most; those inside subgraphs count."""

MOST_REWRITINGS = 32
"""Subgraphs of which one import of a model carries something into branches: each has two copies of what follows, in
which there may be another `If`.
"""


def carried_into_branches(graph: GraphProto, faults: Sequence[Fault]) -> GraphProto | None:
    """A graph with what follows from one of its `If`s inside the branches, or without the `If` where the graph returns
    nothing that depends on it; None where there is more to copy. The faults name the `If`, and are all of that kind.
    """
    if not faults or any(fault.code != 1120 for fault in faults):
        return None
    wrong = {fault.where for fault in faults}
    for place, node in enumerate(graph.node):
        if node.op_type == "If" and node_called(node, place) in wrong:
            return _carried(graph, place)
    return None


def _carried(graph: GraphProto, place: int) -> GraphProto | None:
    from onnx import GraphProto, helper

    choice = graph.node[place]
    made = {name for name in choice.output if name}
    followers: list[NodeProto] = []
    rest: list[NodeProto] = list(graph.node[:place])
    for node in graph.node[place + 1 :]:
        if made.isdisjoint(names_read(node)):
            rest.append(node)
        else:
            followers.append(node)
            made.update(name for name in node.output if name)
    if sum(_size(node) for node in followers) > MOST_NODES:
        return None
    outputs = [value.name for value in graph.output if value.name in made]
    if outputs:
        called = next(name for name in choice.output if name)
        carried = helper.make_node("If", choice.input, outputs, name=choice.name, domain=choice.domain)
        for attribute in choice.attribute:
            branch = type(attribute)()
            branch.CopyFrom(attribute)
            names = {name: f"{name} ({attribute.name} of {called})" for name in made}
            for own, outer in zip(attribute.g.output, choice.output, strict=False):
                if outer:
                    branch.g.node.append(helper.make_node("Identity", [own.name], [names[outer]]))
            branch.g.node.extend(_renamed(node, names) for node in followers)
            del branch.g.output[:]
            branch.g.output.extend(helper.make_empty_tensor_value_info(names[name]) for name in outputs)
            carried.attribute.append(branch)
        rest.append(carried)
    found = GraphProto()
    found.CopyFrom(graph)
    del found.node[:]
    found.node.extend(rest)
    return found


def _renamed(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    """A copy that reads and makes values under other names."""
    found = type(node)()
    found.CopyFrom(node)
    found.output[:] = [names.get(name, name) for name in node.output]
    for one in _all(found):
        one.input[:] = [names.get(name, name) for name in one.input]
    for graph in _graphs(found):
        for value in graph.output:
            value.name = names.get(value.name, value.name)
    return found


def names_read(node: NodeProto) -> set[str]:
    """Names that a node reads, those inside its subgraphs included."""
    return {name for one in _all(node) for name in one.input} | {
        value.name for graph in _graphs(node) for value in graph.output
    }


def needed(graph: GraphProto) -> list[NodeProto]:
    """The nodes of a subgraph from which what it returns follows."""
    makers = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    left = [value.name for value in graph.output]
    found: set[int] = set()
    while left:
        place = makers.get(left.pop())
        if place is not None and place not in found:
            found.add(place)
            left.extend(names_read(graph.node[place]))
    return [node for place, node in enumerate(graph.node) if place in found]


def _size(node: NodeProto) -> int:
    return sum(1 for _ in _all(node))


def _all(node: NodeProto) -> Iterator[NodeProto]:
    """A node and those of its subgraphs."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(inner for attribute in top.attribute for graph in _of(attribute) for inner in graph.node)


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for one in _all(node):
        for attribute in one.attribute:
            yield from _of(attribute)


def _of(attribute: AttributeProto) -> tuple[GraphProto, ...]:
    return (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs)
