"""What the primitives that move a computation or a storage share: where it may go, and accesses relative to a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilework.dims import Dim
from tilework.loops.expressions import Expression, Load
from tilework.loops.expressions import rewrite as rewrite_expression
from tilework.loops.program import (
    Access,
    AsyncCopy,
    Buffer,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Prefetch,
    Storage,
    children,
    path,
    rewrite,
    statements,
)
from tilework.loops.program import Sequence as SequenceNode
from tilework.schedule.footprint import (
    Box,
    box,
    loops_inside,
    reads_in_dims,
    reads_of,
    special_users,
    touched_buffers,
    writes_of,
)
from tilework.schedule.iterators import separated
from tilework.schedule.rewriting import instructions, storages
from tilework.schedule.verdict import Verdict, illegal, unknown


def accesses_of(buffer: str, node: Node) -> list[tuple[Dim, ...]]:
    """The indices at which anything below a node reads or writes a buffer."""
    return writes_of(buffer, node) + reads_of(buffer, [n for n in _nodes(node) if isinstance(n, Compute)])


def _nodes(node: Node) -> list[Node]:
    return [node, *(below for child in children(node) for below in _nodes(child))]


def only_life(program: LoopProgram, buffer: str, step: str) -> Storage | Verdict:
    """The one storage node of a temporary, or why a step cannot be done with it."""
    if buffer not in program.buffers:
        there = ", ".join(program.buffers)
        return illegal(1501, f"there is no buffer {buffer!r}", alternative=f"the buffers are: {there}")
    found = storages(program, buffer)
    if not found:
        return illegal(1520, f"{buffer} is an argument: {step} needs a temporary")
    if len(found) > 1:
        return unknown(f"{buffer} lives in {len(found)} places since a loop was cut", *found)
    return found[0]


def plain_use(buffer: str, node: Node) -> Verdict | None:
    """Why the accesses of a buffer below a node cannot be rewritten, where they cannot."""
    special = special_users(buffer, node)
    if special:
        return unknown(f"{buffer} is copied or prefetched", special[0])
    for found in instructions(node):
        if buffer in touched_buffers(found):
            return illegal(1519, f"{found.instruction} touches {buffer}", found)
    return None


def shifted(node: Node, buffer: str, origin: Sequence[Dim]) -> Node:
    """Every access of a buffer below a node relative to an origin."""

    def moved(index: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(entry - start for entry, start in zip(index, origin, strict=True))

    def access(found: Access) -> Access:
        return replace(found, index=moved(found.index)) if found.buffer == buffer else found

    memo: dict[int, Expression] = {}

    def leaf(found: Expression) -> Expression:
        if isinstance(found, Load) and found.buffer == buffer:
            return Load(buffer, moved(found.index), found.dtype)
        return found

    def change(found: Node) -> Node:
        match found:
            case Compute():
                values = tuple(rewrite_expression(value, leaf, memo) for value in found.values)
                return replace(found, targets=tuple(map(access, found.targets)), values=values)
            case Prefetch():
                return replace(found, target=access(found.target))
            case AsyncCopy():
                return replace(found, target=access(found.target), source=access(found.source))
            case _:
                return found

    return rewrite(node, change)


def siblings(program: LoopProgram, first: Node, second: Node) -> tuple[SequenceNode, int, int] | None:
    """The sequence in which one node is a child and the other is below a later (or earlier) child; their places."""
    a, b = path(program.body, first), path(program.body, second)
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] is b[shared]:
        shared += 1
    if not shared or shared >= len(a) or shared >= len(b):
        return None
    meeting = a[shared - 1]
    if not isinstance(meeting, SequenceNode):
        return None
    places = [next(p for p, child in enumerate(meeting.children) if child is chain[shared]) for chain in (a, b)]
    return meeting, places[0], places[1]


def box_inside(program: LoopProgram, buffer: str, body: Node, indices: list[tuple[Dim, ...]]) -> Box | None:
    """The box that some accesses cover while one iteration of a loop runs."""
    return box(indices, loops_inside(body), program.buffers[buffer].shape, clamp=True)


def smaller(found: Buffer, sides: Box) -> Buffer:
    """The buffer that holds a box only."""
    return replace(found, shape=tuple(side.size for side in sides))


def loops_between(program: LoopProgram, outer: Node, inner: Node) -> list[Loop]:
    """The loops below one node and around another (the other included, where it is a loop), outermost first."""
    return [n for n in path(outer, inner) if isinstance(n, Loop) and n is not outer]


def narrowed(program: LoopProgram, life: Storage, loop: Loop) -> LoopProgram | Verdict:
    """The program with a storage moved into a loop around it and shrunk to the box used there, or why not.

    Legal where all accesses are inside, and every loop moved over touches other elements in each iteration: then each
    iteration reads only what it wrote itself.
    """
    kept = life.buffer
    special = plain_use(kept.name, life)
    if special is not None:
        return special
    if kept.name in reads_in_dims(life):
        return unknown(f"{kept.name} is read by an index or a guard", life)
    accesses = accesses_of(kept.name, loop.body)
    if len(accesses) != len(accesses_of(kept.name, life)):
        others = [s for s in statements(life) if kept.name in touched_buffers(s) and not path(loop.body, s)]
        return illegal(1520, f"{others[0].name} uses {kept.name} outside {loop.variable}", others[0], loop)
    for outer in loops_between(program, life, loop):
        free = {outer.variable: outer.extent, **loops_inside(outer.body)}
        if outer.extent.value is not None and outer.extent.value <= 1:
            continue
        if not separated(accesses, outer.variable, free, kept.shape):
            return unknown(f"iterations of {outer.variable} may use the same elements of {kept.name}", outer)
    sides = box_inside(program, kept.name, loop.body, accesses) if accesses else None
    if sides is None:
        return unknown(f"what {loop.variable} uses of {kept.name} is no box", loop)
    body = Storage(smaller(kept, sides), shifted(loop.body, kept.name, tuple(side.start for side in sides)))
    there = Loop(loop.variable, loop.extent, loop.kind, body)

    def change(node: Node) -> Node:
        if node is loop:
            return there
        return node.body if isinstance(node, Storage) and node.buffer is kept else node

    return program.with_body(rewrite(program.body, change))
