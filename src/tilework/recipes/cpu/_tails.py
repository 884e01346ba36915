"""The partial tiles at the ends of a product's rows and columns, apart from the whole ones.

Whole tiles then have no guards, and partial ones are as small as they are: no row is tested inside the sum, masks are
constants, vectors that hold nothing are gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilework.loops.program import Loop, Node, Storage, children, path, statements, walk
from tilework.schedule.iterators import kind
from tilework.schedule.primitives.partition import Partition
from tilework.schedule.schedule import Schedule

BUDGET = 400
"""Nodes that a program may have afterwards: every piece is generated."""
PADDED_BUDGET = 20
"""The same where guards name loops of the sum, as padding does: its pieces multiply and gain little each. (Ten times
as many nodes made 3x3 convolutions 2 to 5 % faster, and took twice as long to compile.)"""


def tails_apart(schedule: Schedule, statement: str) -> Schedule:
    """Cut a nest in tiles at its partial tiles, where all its extents are known (and none is empty)."""
    found = schedule.setting.statement(statement)
    around = [loop for loop in schedule.setting.enclosing(found) if loop.extent != 1]
    if not around or not found.guards or any((loop.extent.value or 0) < 1 for loop in around):
        return schedule
    if around[0].kind != "serial" or not any(loop.kind == "unrolled" for loop in around):
        return schedule
    nodes = path(schedule.program.body, found)
    inside = [n for position, n in enumerate(nodes) if any(isinstance(outer, Storage) for outer in nodes[:position])]
    sums = {n.variable for n in inside if isinstance(n, Loop) and n.kind == "serial"}
    padded = any(guard.names() & sums for guard in found.guards)
    budget = PADDED_BUDGET if padded else BUDGET
    if sum(1 for _ in walk(schedule.program.body)) > budget:
        return schedule
    cut = schedule.attempt(Partition(around[0].variable, budget))
    # a statement that runs nowhere, as all it reads is padding, is gone then: its nest stays as it is
    return cut if cut is not None and any(s.name == statement for s in statements(cut.program.body)) else schedule


def other_pieces(schedule: Schedule, statement: str) -> list[Loop]:
    """The outermost loops of pieces of a statement's nest whose iterations threads may share and do not yet."""
    return [
        loop
        for loop in _outermost(schedule.program.body)
        if loop.kind == "serial"
        and any(found.name == statement for found in statements(loop))
        and not any(isinstance(node, Loop) and node.kind == "parallel" for node in walk(loop))
        and kind(schedule.program, loop) == "independent"
    ]


def _outermost(node: Node) -> Iterator[Loop]:
    """The outermost loops of more than one iteration."""
    if isinstance(node, Loop) and node.extent != 1:
        yield node
    else:
        for child in children(node):
            yield from _outermost(child)
