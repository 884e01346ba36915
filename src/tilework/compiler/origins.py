"""Which of the user's nodes a fault of a region's kernel speaks of, though steps of a schedule put nodes into one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilework.candidates.region import Region
from tilework.dims import Dim
from tilework.graph.graph import Node
from tilework.loops.program import Compute, statements
from tilework.lowering.registers import FaultPlace


def origin_of(node: Node) -> str:
    """The user's own name for a node, or the graph's."""
    return node.location or node.name


def fault_origins(region: Region, faults: tuple[FaultPlace, ...]) -> tuple[str, ...]:
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
    found: list[str] = []
    for fault in faults:
        by_buffer = readers.get(fault.positions, {})
        node = by_buffer.get(fault.buffer) or next(iter(by_buffer.values()), None) or _node_of(fault.statement, nodes)
        found.append(origin_of(node or region.root))
    return tuple(found)


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
