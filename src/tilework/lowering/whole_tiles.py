"""Which guards of a tile hold for all of it at once: what a version of the tile without them tests first.

A guard that names unrolled or vectorised loops of a tile, and nothing else bound inside it, has its least value at a
corner of the tile. Where the least value is >= 0 the tile is whole, and runs without branches and masks.
"""

from __future__ import annotations

from tilework.dims import Dim
from tilework.loops.program import Compute, Loop, Node, children, walk
from tilework.lowering.cells import unrolls
from tilework.lowering.parallel import instructions

MAX_INSTANCES = 256
"""Statements (unrolled) of a tile of which two versions may be made."""


HEAVY = 13
"""Units of work of a statement from which on masks cost nothing beside it."""


def instances(node: Node) -> int:
    """How many statements a node is, once unrolled."""
    if isinstance(node, Compute):
        return 1
    total = sum(instances(child) for child in children(node))
    return total * int(node.extent) if isinstance(node, Loop) and unrolls(node) else total


def corner_values(node: Node) -> dict[Dim, Dim]:
    """Each such guard of a node, with its least value over the node's unrolled and vectorised loops."""
    loops = [n for n in walk(node) if isinstance(n, Loop)]
    flat = {n.variable: n.extent for n in loops if unrolls(n) or (n.kind == "vectorized" and n.extent.value)}
    other = {n.variable for n in loops} - flat.keys()
    found: dict[Dim, Dim] = {}
    for statement in walk(node):
        if not isinstance(statement, Compute):
            continue
        for guard in statement.guards:
            if guard in found or guard.loads():
                continue
            names = guard.names()
            moved = names & flat.keys()
            if not moved or names & other or not guard.affine_in(moved):
                continue
            corner = {n: Dim() if guard.coefficient(n) >= 0 else flat[n] - 1 for n in moved}
            found[guard] = guard.substitute(corner)
    return found


def worth_two_versions(node: Node) -> bool:
    """Whether a tile gains by running without masks: not where arithmetic hides them, nor where the text would double
    for too much.
    """
    if instances(node) > MAX_INSTANCES:
        return False
    units = instructions(node).value
    return has_serial_loops(node) or units is None or units < instances(node) * HEAVY


def has_serial_loops(node: Node) -> bool:
    """Whether a node is no straight line: a loop in it is neither written out nor lanes."""
    return any(isinstance(n, Loop) and not unrolls(n) and n.kind != "vectorized" for n in walk(node))
