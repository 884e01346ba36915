"""Elementwise consumers: whether one can run as soon as an element of what it reads is final."""

from __future__ import annotations

from tilework.dims import dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import Compute, Loop, LoopProgram, Node, path, statements
from tilework.loops.program import walk as walk_tree
from tilework.schedule.footprint import (
    loops_inside,
    read_buffers,
    reads_in_dims,
    reads_of,
    touched_buffers,
    writes_of,
    written_buffers,
)
from tilework.schedule.iterators import kind, separated
from tilework.schedule.moving import loops_between, plain_use, siblings
from tilework.schedule.primitive import Setting
from tilework.schedule.rewriting import own_nest, storages
from tilework.schedule.verdict import Verdict, illegal, unknown


@dataclass(frozen=True)
class Consumer:
    """An elementwise statement, its nest, and what it reads element by element: per dimension the loop."""

    statement: Compute
    own: Node
    source: str
    loops: tuple[str, ...]


def consumer(setting: Setting, name: str, sources: set[str]) -> Consumer | Verdict:
    """The elementwise consumer of one of the buffers in `sources`, or why the statement is none."""
    program = setting.program
    found = setting.statement(name)
    if found.reducer is not None or len(found.targets) != 1:
        return illegal(1520, f"{name} is no elementwise statement", found)
    target = found.target.buffer
    read = read_buffers(found)
    wanted = sorted(read & sources)
    if len(wanted) != 1:
        what = "nothing" if not wanted else " and ".join(wanted)
        return illegal(1520, f"{name} reads {what} of what is computed there", found)
    source = wanted[0]
    if source == target:
        return unknown(f"{name} overwrites {source} in place", found)
    if any(a.buffer.name == source and a.access == "accumulate" for a in program.arguments):
        return unknown(f"{source} holds values that nothing here computes", found)
    if source in reads_in_dims(program.body):
        return unknown(f"{source} is read by an index or a guard", found)
    own = own_nest(program, [found], loops_only=True)
    loops = {n.variable: n for n in walk_tree(own) if isinstance(n, Loop)}
    indices = set(reads_of(source, [found]))
    shape = program.buffers[source].shape
    names: list[str] = []
    for index in indices:
        for d, (entry, extent) in enumerate(zip(index, shape, strict=True)):
            variable = next(iter(entry.names()), "")
            if len(indices) > 1 or entry != dim(variable or 0) or (variable and variable in names):
                return unknown(f"{name} does not read {source} element by element", found)
            if extent == 1 and not variable:
                names.append("")
                continue
            if variable not in loops or loops[variable].extent != extent:
                return unknown(f"{name} does not read all of dimension {d} of {source} in a loop of its own", found)
            names.append(variable)
    for loop in loops.values():
        if kind(program, loop, loops) != "independent":
            return unknown(f"iterations of {loop.variable} may need each other", loop)
        if loop.extent.names() & loops.keys() or loop.extent.loads():
            return unknown(f"the extent of {loop.variable} depends on another loop", loop)
    return Consumer(found, own, source, tuple(names))


def writers_below(program: LoopProgram, found: Consumer, below: Node) -> Verdict | None:
    """Why the values that a consumer reads are not all computed below a node, where they are not."""
    special = plain_use(found.source, program.body)
    if special is not None:
        return special
    for other in statements(program.body):
        if any(t.buffer == found.source for t in other.targets) and not path(below, other):
            return illegal(1520, f"{other.name} writes {found.source} elsewhere", other, found.statement)
    return None


def clear_way(program: LoopProgram, found: Consumer, place: Node) -> Verdict | tuple[Node, ...]:
    """The children of a sequence from the one that holds a place up to the consumer, or what stands in its way."""
    meeting = siblings(program, place, found.own)
    if meeting is None or meeting[0].children[meeting[2]] is not found.own:
        return unknown(f"{found.statement.name} and what it reads are no parts of one sequence", found.statement, place)
    sequence_, first, second = meeting
    lives = storages(program, found.source)
    life = lives[0] if lives else program.body
    around = [n for n in path(life, sequence_) if isinstance(n, Loop)]
    if around:
        return unknown(f"values of earlier iterations of {around[0].variable} may be read", around[0])
    if first > second:
        return illegal(1520, f"{found.statement.name} runs before {found.source} is computed", found.statement)
    target = found.statement.target.buffer
    others = read_buffers(found.own) - {found.source}
    between = sequence_.children[first:second]
    for child in between:
        for leaf in walk_tree(child):
            if isinstance(leaf, Loop) or not isinstance(leaf, Compute):
                continue
            if written_buffers(leaf) & others:
                return illegal(1520, f"{leaf.name} overwrites what {found.statement.name} reads", leaf, found.statement)
            if target in touched_buffers(leaf):
                return illegal(1520, f"{leaf.name} uses {target} before {found.statement.name}", leaf, found.statement)
        if target in touched_buffers(child) or written_buffers(child) & others:
            return unknown(f"something in between uses what {found.statement.name} touches", child, found.statement)
    return between


def finished(program: LoopProgram, source: str, top: Node, loop: Loop) -> Verdict | None:
    """Why an element might not be final at the end of a loop's iteration, where that cannot be excluded.

    It is where every loop around, up to `top`, writes other elements in each iteration.
    """
    shape = program.buffers[source].shape
    around = [n for n in (top, *loops_between(program, top, loop)) if isinstance(n, Loop)]
    for outer in dict.fromkeys(around):
        free = {outer.variable: outer.extent, **loops_inside(outer.body)}
        if outer.extent.value is not None and outer.extent.value <= 1:
            continue
        if not separated(writes_of(source, outer.body), outer.variable, free, shape):
            return unknown(f"iterations of {outer.variable} may write the same elements of {source}", outer)
    return None
