"""A graph as a list of what runs: regions, and control nodes with a list of their own for each subgraph.

A subgraph becomes a block whose graph is closed: what it reads of the graphs around it are inputs and constants of its
own, under the same names (names are distinct, see `passes.distinct_names`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from tilework.candidates.region import Region
from tilework.decisions.fusion import regions
from tilework.dims import Dim, Symbol, dim
from tilework.graph.graph import Attribute, Constant, Graph, Node, Value, captured
from tilework.graph.types import TensorType


@dataclass(frozen=True, eq=False)
class Control:
    """A control node, the blocks of its subgraphs in order, and the names that its subgraphs' inputs had.

    `trip` is the symbol that counts the trips of a `scan`: its body reads what is scanned at that position.
    """

    node: Node
    blocks: tuple[Block, ...]
    formals: tuple[tuple[Value, ...], ...]
    trip: str = ""

    @property
    def state_count(self) -> int:
        """Operands that a repetition passes from trip to trip; the same number of results comes first."""
        return int(str(self.node.attributes["state_count"])) if self.trip else len(self.formals[-1])

    @property
    def collected(self) -> tuple[Value, ...]:
        """Results of a repetition that hold a row of each trip."""
        return self.node.outputs[self.state_count :]

    def position(self, length: Dim) -> Dim:
        """The row that a trip of a `scan` is about, of so many: from the end where it is reversed."""
        return _position(self.node, self.trip, length)

    @property
    def outside(self) -> tuple[str, ...]:
        """Values around the node that it or its subgraphs read."""
        inner = (name for graph in self.node.subgraphs for name in captured(graph))
        return tuple(dict.fromkeys((*self.node.inputs, *inner)))


Item: TypeAlias = "Region | Control"


@dataclass(frozen=True, eq=False)
class Block:
    """A closed graph and its items, in an order in which they can run."""

    graph: Graph
    items: tuple[Item, ...]

    def regions(self) -> Iterator[Region]:
        """Every region, those inside control nodes included."""
        for item in self.items:
            if isinstance(item, Region):
                yield item
            else:
                for block in item.blocks:
                    yield from block.regions()

    def graphs(self) -> Iterator[Graph]:
        """Every closed graph, this one first."""
        yield self.graph
        for item in self.items:
            if isinstance(item, Control):
                for block in item.blocks:
                    yield from block.graphs()


def block_of(graph: Graph) -> Block:
    """The items of a graph whose names are distinct."""
    items: list[Item] = []
    for region in regions(graph):
        items.append(_control(graph, region.root) if region.root.subgraphs else region)
    return Block(graph, tuple(items))


def _control(graph: Graph, node: Node) -> Control:
    bodies = list(node.subgraphs)
    formals = tuple(body.inputs for body in bodies)
    trip = ""
    if node.operator == "scan":
        trip = _free_symbol(graph)
        bodies = [_at_trip(graph, node, bodies[0], trip)]
    return Control(node, tuple(block_of(_closed(body, graph)) for body in bodies), formals, trip)


def _closed(body: Graph, around: Graph) -> Graph:
    """The body with what it reads of the graph around it as inputs and constants, and with all symbols."""
    known = around.constant_arrays
    outside = [name for name in captured(body) if name not in body.values]
    constants = [Constant(name, known[name]) for name in outside if name in known]
    inputs = [around.values[name] for name in outside if name not in known]
    return body.replace(
        inputs=(*body.inputs, *inputs),
        constants=(*body.constants, *constants),
        symbols=(*around.symbols, *body.symbols),
    )


def _position(node: Node, trip: str, length: Dim) -> Dim:
    return length - 1 - dim(trip) if node.attributes.get("reverse", False) else dim(trip)


def _free_symbol(graph: Graph) -> str:
    known = {symbol.name for symbol in graph.symbols}
    count = 0
    while f"trip{count}" in known:
        count += 1
    return f"trip{count}"


def _at_trip(graph: Graph, node: Node, body: Graph, trip: str) -> Graph:
    """The body of a `scan` with its slices taken from what is scanned, at the position of the trip."""
    count = int(str(node.attributes["state_count"]))
    length = graph.values[node.inputs[count]].tensor.shape[0]
    at = _position(node, trip, length)
    nodes: list[Node] = []
    for formal, name in zip(body.inputs[count:], node.inputs[count:], strict=True):
        whole = graph.values[name].tensor
        below = len(whole.shape) - 1
        taken: Mapping[str, Attribute] = MappingProxyType({
            "start_indices": (at, *(Dim() for _ in range(below))),
            "limit_indices": (at + 1, *whole.shape[1:]),
            "strides": (1,) * (below + 1),
        })  # fmt: skip
        row = Value(f"{formal.name} at {trip}", TensorType((dim(1), *whole.shape[1:]), whole.dtype))
        nodes.append(Node(f"{formal.name} at {trip}", "slice", (name,), (row,), taken, location=node.location))
        shape: Mapping[str, Attribute] = MappingProxyType({"shape": whole.shape[1:]})
        nodes.append(Node(f"{formal.name} of {trip}", "reshape", (row.name,), (formal,), shape, location=node.location))
    last = None if length.value is None else max(length.value - 1, 0)
    return replace(
        body, inputs=body.inputs[:count], nodes=(*nodes, *body.nodes), symbols=(*body.symbols, Symbol(trip, 0, last))
    )
