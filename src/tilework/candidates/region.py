"""`Region`: a set of graph nodes with ordered boundary values; the unit of fusion, tuning and choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

from tilework.candidates.joined import Joined, joined
from tilework.dims import Dim, Symbol
from tilework.fast_dataclass import dataclass, field
from tilework.graph.graph import Attribute, Constant, Graph, Node, Value
from tilework.ops.registry import operator


@dataclass(frozen=True)
class Within:
    """A box of a larger array: that array's shape, and the index in it at which the box starts."""

    shape: tuple[Dim, ...]
    corner: tuple[Dim, ...]


@dataclass(frozen=True, eq=False)
class Region:
    """Nodes in an order in which they can run, with the values that enter and leave.

    `scalars` are the one-element constants among what the nodes read: they become literals of the code. All other
    operands that no node of the region defines are `inputs`. `outputs` are read outside the region.
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    scalars: tuple[Constant, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    """Those of the graph's that the region's shapes and attributes name."""
    constants: frozenset[str] = frozenset()
    """Names of the inputs whose contents are known at compile time: they may be stored in any layout."""
    usual: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Values of symbols to plan for, where they are not those that a symbol has by itself (`typical`)."""
    within: Mapping[str, Within] = field(default_factory=lambda: MappingProxyType({}))
    """Boundary values that are boxes of larger arrays, by name: those arrays are what the kernel is given."""
    there: Mapping[int, Value] = field(default_factory=lambda: MappingProxyType({}))
    """Operands of the root, by position, that are in its result already: the stages for them are left out."""

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Every value that the region reads or defines, by name."""
        found = {value.name: value for value in self.inputs}
        found.update((constant.name, constant.value) for constant in self.scalars)
        found.update((value.name, value) for value in self.there.values())
        found.update((value.name, value) for node in self.nodes for value in node.outputs)
        return MappingProxyType(found)

    @cached_property
    def definition(self) -> Joined:
        """Its computation; raises `CodegenError` 1650 for an operator that has no definition."""
        return joined(self)

    @property
    def root(self) -> Node:
        """The last node: the one whose results the region is for."""
        return self.nodes[-1]

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(node.operator for node in self.nodes)


_NOWHERE: Mapping[str, Within] = MappingProxyType({})


def _index_operands(node: Node) -> tuple[int, ...]:
    return () if node.black_box or node.subgraphs else operator(node.operator).index_operands


def region_of(
    graph: Graph,
    name: str,
    nodes: tuple[Node, ...],
    shared: frozenset[str] = frozenset(),
    within: Mapping[str, Within] = _NOWHERE,
    there: frozenset[int] = frozenset(),
) -> Region:
    """The region of some nodes of a graph: its boundary follows from who reads what.

    Nodes named in `shared` belong to every region that reads their results, so these do not leave it. `within` has
    the values of the graph that are boxes of others, `there` the operands of the last node that it does not read, as
    they are where it would copy them.
    """
    inside = {value.name for node in nodes for value in node.outputs}
    chosen = set(map(id, nodes))
    constants = {constant.name: constant for constant in graph.constants}
    inputs: dict[str, Value] = {}
    scalars: dict[str, Constant] = {}
    positions = {node.inputs[p] for node in nodes for p in _index_operands(node)}
    for node in nodes:
        for position, read in enumerate(node.inputs):
            if not read or read in inside or (node is nodes[-1] and position in there):
                continue
            constant = constants.get(read)
            if constant is not None and constant.array.size == 1 and read not in positions:
                scalars[read] = constant
            else:
                inputs[read] = graph.values[read]
    leaving = set(graph.outputs)
    for value_name in inside - {value.name for node in nodes if node.name in shared for value in node.outputs}:
        if any(id(reader) not in chosen for reader in graph.consumers.get(value_name, ())):
            leaving.add(value_name)
    outputs = tuple(value for node in nodes for value in node.outputs if value.name in leaving)
    known = frozenset(name for name in inputs if name in constants)
    boxes = {value.name: within[value.name] for value in (*inputs.values(), *outputs) if value.name in within}
    needed = symbols_of((*inputs.values(), *(v for node in nodes for v in node.outputs)), nodes)
    needed |= {name for box in boxes.values() for size in (*box.shape, *box.corner) for name in size.names()}
    placed = {position: graph.values[nodes[-1].inputs[position]] for position in sorted(there)}
    needed |= symbols_of(placed.values(), ())
    symbols = tuple(symbol for symbol in graph.symbols if symbol.name in needed)
    return Region(
        name, nodes, tuple(inputs.values()), outputs, tuple(scalars.values()), symbols, known,
        within=MappingProxyType(boxes), there=MappingProxyType(placed),
    )  # fmt: skip


def symbols_of(values: Iterable[Value], nodes: Iterable[Node]) -> set[str]:
    """Names of the symbols in the shapes of values and the attributes of nodes."""
    found = {name for value in values for extent in value.tensor.shape for name in extent.names()}
    left: list[Attribute] = [attribute for node in nodes for attribute in node.attributes.values()]
    while left:
        entry = left.pop()
        if isinstance(entry, Dim):
            found |= entry.names()
        elif isinstance(entry, tuple):
            left.extend(entry)
    return found
