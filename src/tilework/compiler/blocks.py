"""A graph as a list of what runs: regions, and control nodes with a list of their own for each subgraph.

A subgraph becomes a block whose graph is closed: what it reads of the graphs around it are inputs and constants of its
own, under the same names (names are distinct, see `passes.distinct_names`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from tilework.candidates.region import Region
from tilework.decisions.attention import Attentions
from tilework.decisions.fusion import fused
from tilework.decisions.windows import Windows
from tilework.dims import Dim, Symbol, dim
from tilework.fast_dataclass import dataclass
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
Finder: TypeAlias = Callable[[Graph], Attentions]


@dataclass(frozen=True, eq=False)
class Block:
    """A closed graph and its items, in an order in which they can run, and which values share memory."""

    graph: Graph
    items: tuple[Item, ...]
    windows: Windows

    def regions(self) -> Iterator[Region]:
        """Every region, those inside control nodes included."""
        for item in self.items:
            if isinstance(item, Region):
                yield item
            else:
                for block in item.blocks:
                    yield from block.regions()

    def in_place(self) -> frozenset[str]:
        """Nodes of this graph and of those inside that need no kernel, their results being where their operands are."""
        return frozenset(n.name for block in self.blocks() for n in block.graph.nodes if block.windows.covers(n))

    def blocks(self) -> Iterator[Block]:
        """Every block, this one first."""
        yield self
        for item in self.items:
            if isinstance(item, Control):
                for block in item.blocks:
                    yield from block.blocks()

    def graphs(self) -> Iterator[Graph]:
        """Every closed graph, this one first."""
        return (block.graph for block in self.blocks())


def block_of(graph: Graph, find: Finder) -> Block:
    """The items of a graph whose names are distinct; `find` tells its attentions, and those of its subgraphs."""
    policies = zip(graph.inputs, graph.signature_or_default().inputs, strict=True)
    given = frozenset(value.name for value, policy in policies if policy.access == "read")
    return _block(graph, frozenset(symbol.name for symbol in graph.symbols if not symbol.measured), given, find)


def _block(graph: Graph, fixed: frozenset[str], enterable: frozenset[str], find: Finder) -> Block:
    """The items of a graph. Symbols `fixed` have their values before the call's first step; the memory of the inputs
    `enterable` may be entered at an offset.
    """
    items: list[Item] = []
    found = fused(graph, fixed, enterable, find(graph))
    for region in found.regions:
        control = bool(region.root.subgraphs)
        items.append(_control(graph, region.root, fixed, found.windows.enterable, find) if control else region)
    return Block(graph, tuple(items), found.windows)


def _control(graph: Graph, node: Node, fixed: frozenset[str], enterable: frozenset[str], find: Finder) -> Control:
    bodies = list(node.subgraphs)
    formals = tuple(body.inputs for body in bodies)
    trip = ""
    if node.operator == "scan":
        trip = _free_symbol(graph)
        bodies = [_at_trip(graph, node, bodies[0], trip)]
    blocks: list[Block] = []
    for body, names in zip(bodies, formals, strict=True):
        # what a branch is given stays as it is; what a loop is given is state
        given = zip(names, node.inputs[1:], strict=True) if node.operator == "if" else ()
        inside = enterable | {formal.name for formal, operand in given if operand in enterable}
        blocks.append(_block(_closed(body, graph), fixed, inside, find))
    return Control(node, tuple(blocks), formals, trip)


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
