"""Branches with results of different types: whatever follows from these is carried into both branches.

A value of the graph has one type. ONNX lets the branches of an `If` return others: a vector or a matrix, say. Where
data decide which, each branch gets a copy of all nodes that depend on the results, and is imported with types of its
own. What the model itself returns in the end must have one type again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

MOST_NODES = 400
"""Nodes that are copied at the most; those inside subgraphs count."""


def carried_into_branches(model: ModelProto, place: int) -> ModelProto | None:
    """The model with what follows from the `If` at a place among its nodes inside the branches, or without the `If`
    where the model returns nothing that depends on it; None where it is too much to be copied.
    """
    from onnx import ModelProto, helper

    choice = model.graph.node[place]
    made = {name for name in choice.output if name}
    followers: list[NodeProto] = []
    rest: list[NodeProto] = list(model.graph.node[:place])
    for node in model.graph.node[place + 1 :]:
        if made.isdisjoint(names_read(node)):
            rest.append(node)
        else:
            followers.append(node)
            made.update(name for name in node.output if name)
    if sum(_size(node) for node in followers) > MOST_NODES:
        return None
    outputs = [value.name for value in model.graph.output if value.name in made]
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
    found = ModelProto()
    found.CopyFrom(model)
    del found.graph.node[:]
    found.graph.node.extend(rest)
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
