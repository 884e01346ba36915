"""Which of the user's nodes a fault of a region's kernel speaks of, though steps of a schedule put nodes into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilework.candidates.region import Region
from tilework.dims import Dim
from tilework.graph.graph import Graph, Node, Value
from tilework.loops.program import Compute, statements
from tilework.lowering.registers import FaultPlace
from tilework.ops.registry import has_operator, operator


def origin_of(node: Node) -> str:
    """The user's own name for a node, or the graph's."""
    return node.location or node.name


def blamed(region: Region, faults: tuple[FaultPlace, ...]) -> tuple[Node, ...]:
    """The node of each fault, by the fault's number.

    Data are to blame where an index is read from them: the node is one that reads its index there, whatever statement
    it was inlined into; among several, one that also accesses the same buffer. Any other fault is its statement's.
    """
    nodes = region.definition.nodes
    readers: dict[tuple[str, ...], dict[str, Node]] = {}
    for statement in statements(region.definition.program.body):
        node = _node_of(statement.name, nodes)
        if node is None:
            continue
        for buffer, index in _accesses(statement):
            for entry in index:
                positions = tuple(sorted({load.buffer for load in entry.loads()}))
                if positions:
                    readers.setdefault(positions, {}).setdefault(buffer, node)
    found: list[Node] = []
    for fault in faults:
        by_buffer = readers.get(fault.positions, {})
        node = by_buffer.get(fault.buffer) or next(iter(by_buffer.values()), None) or _node_of(fault.statement, nodes)
        found.append(node or region.root)
    return tuple(found)


def reason_of(node: Node, region: Region, graph: Graph) -> str:
    """What a fault of a node says: which tensor has the position, and which does not have such an element."""

    def called(name: str) -> str:
        producer = graph.producers.get(name)
        location = "" if producer is None else producer.location
        return name if location in ("", node.location) else f"the result of {location}"

    places = operator(node.operator).index_operands if not node.black_box and has_operator(node.operator) else ()
    others = [name for number, name in enumerate(node.inputs) if number not in places]
    if not places or not others or others[0] not in region.values:
        return ""
    index = node.inputs[places[0]]
    of = _dimensions(node, region.values.get(index))
    maker = graph.producers.get(index)
    own = maker is not None and maker.location == node.location
    source = graph.producers.get(others[0])
    if own and source is not None and source.location == node.location and region.values[others[0]].tensor.size == 1:
        return f"there is no {others[0]}"  # what is required of a number is checked so
    position = "a position that it computes" if own else f"a position in {called(index)}"
    selected = f"{called(others[0])}, {region.values[others[0]].type}"
    return f"{position} is outside {of}{selected}"


def _dimensions(node: Node, index: Value | None) -> str:
    """Which dimensions the positions are in: one, or as many as tuples of positions are long."""
    only = node.attributes.get("dimension")
    if isinstance(only, int):
        return f"dimension {only} of "
    first = node.attributes.get("batch_dimensions", 0)
    if index is None or not index.tensor.rank or index.tensor.shape[-1].value is None or not isinstance(first, int):
        return ""
    last = first + index.tensor.shape[-1].value - 1
    return f"dimension {first} of " if first == last else f"dimensions {first} to {last} of "


def _accesses(statement: Compute) -> Iterator[tuple[str, tuple[Dim, ...]]]:
    for target in statement.targets:
        yield target.buffer, target.index
    for load in statement.loads:
        yield load.buffer, load.index


def _node_of(statement: str, nodes: Mapping[str, Node]) -> Node | None:
    """The node of a stage; what steps derive from a statement adds to its name behind a dot."""
    name = statement
    while name not in nodes:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    return nodes[name]
