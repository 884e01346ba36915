"""Stages of a computation: which are recomputed where they are read, and which are computed together, row by row."""

from __future__ import annotations

from tilework.dims import product
from tilework.loops.expressions import Call, Load, walk
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import Compute, Loop, Node, Sequence, children, statements
from tilework.recipes.cpu._access import loads_of, uses_again
from tilework.schedule.primitive import Setting
from tilework.schedule.primitives.compute_at import ComputeAt
from tilework.schedule.primitives.fission import Fission
from tilework.schedule.rewriting import band
from tilework.schedule.schedule import Schedule

ROW_BYTES = 1 << 18
"""Bytes of a temporary that may live inside a loop: half of a small second-level cache."""


def worth_inlining(setting: Setting, name: str) -> bool:
    """Whether recomputing a stage at its readers costs less than storing it.

    A stage that only moves elements is free. One that computes is worth it when a single statement reads it at one
    place, and reads every element once: as many iterations as elements.
    """
    found = setting.statement(name)
    if len(found.targets) != 1 or found.reducer is not None:
        return False
    buffer = found.target.buffer
    calls = [node for node in walk(found.values[0]) if isinstance(node, Call)]
    sites = setting.readers.get(buffer, [])
    if not any(FUNCTIONS[c.function].transcendental for c in calls if c.function in FUNCTIONS) and len(calls) <= 1:
        return all(_moves_only(calls) or not _reuses(setting, reader, load) for reader, load in sites)
    return len(sites) == 1 and not _reuses(setting, *sites[0])


def _moves_only(calls: list[Call]) -> bool:
    return not calls


def _reuses(setting: Setting, reader: Compute, load: Load) -> bool:
    """Whether the reader has loops that do not move the load: it reads elements more than once."""
    moved = {name for entry in load.index for name in entry.names()}
    loops = [node for node in setting.enclosing(reader) if node.extent != 1]
    return any(node.variable not in moved for node in loops)


def together(schedule: Schedule) -> Schedule:
    """Bring the nests of a computation under the loops that all share, so that a row is walked while it is near.

    Stages before the last move to the innermost of the last one's loops where none computes anything twice.
    """
    mains = [main_statement(loop) for loop in outermost_loops(schedule.program.body)]
    if len(mains) < 2:
        return schedule
    *before, last = (schedule.setting.statement(name) for name in mains)
    if any(_needs_tiles(schedule.setting, found, last) for found in before):
        return schedule
    around = band(schedule.setting.enclosing(last)[0])
    for loop in reversed(around):
        trial = schedule
        for name in reversed(mains[:-1]):
            moved = trial.attempt(ComputeAt(name, loop.variable))
            if moved is None or not _once(schedule, moved, name, loop.variable):
                break
            trial = moved
        else:
            return trial
    return schedule


def _needs_tiles(setting: Setting, found: Compute, last: Compute) -> bool:
    """Whether a stage is a product, which needs tiles of its own.

    A softmax of rows and a mask uses the mask again for every row, but the rows themselves once: it walks over all that
    the last stage does, and some operand is as large as that.
    """
    around = setting.enclosing(found)
    if not uses_again(found, around):
        return False
    loops = {loop.variable for loop in around if loop.extent != 1}
    walks = any(loops <= {name for entry in load.index for name in entry.names()} for load in loads_of(found))
    trips = (product([loop.extent for loop in setting.enclosing(statement)]) for statement in (found, last))
    return not (walks and next(trips) == next(trips))


def _once(before: Schedule, after: Schedule, statement: str, at: str) -> bool:
    """Whether a stage that moved into a loop still computes each element once, and keeps few of them there.

    Of a row whose length is a symbol's few are kept as far as anybody knows: less than all rows in any case.
    """
    buffer = before.setting.statement(statement).target.buffer
    old, new = before.program.buffers[buffer], after.program.buffers[buffer]
    around = after.setting.enclosing(after.setting.loop(at))
    trips = product([after.setting.loop(at).extent, *(loop.extent for loop in around)])
    kept = new.bytes.value
    return new.size * trips == old.size and (kept is None or kept <= ROW_BYTES)


def distributed(schedule: Schedule) -> Schedule:
    """Give a reduction's start a nest of its own where it stands beside the reduction's loops: both are perfect then.

    Nests whose stages were brought together stay so.
    """
    for tops in [[s.name for s in statements(loop)] for loop in outermost_loops(schedule.program.body)]:
        if len(tops) < 2 or len(nests_inside(schedule, tuple(tops))) > 1:
            continue
        for loop in reversed(schedule.setting.enclosing(schedule.setting.statement(tops[-1]))):
            if isinstance(schedule.setting.loop(loop.variable).body, Sequence):
                schedule = schedule.attempt(Fission(loop.variable)) or schedule
    return schedule


def nests_inside(schedule: Schedule, names: tuple[str, ...]) -> list[str]:
    """The statements of a nest whose own innermost loops hold nothing else; one for a start and its sum."""
    found: list[str] = []
    for name in names:
        statement = schedule.setting.statement(name)
        around = schedule.setting.enclosing(statement)
        if around and own_loops(around, statement):
            found.append(name)
    return found


def own_loops(around: tuple[Loop, ...], statement: Compute) -> tuple[Loop, ...]:
    """The innermost loops around a statement that hold nothing but it."""
    inner: Node = statement
    found: list[Loop] = []
    for loop in reversed(around):
        if loop.body is not inner:
            break
        found.insert(0, loop)
        inner = loop
    return tuple(found)


def outermost_loops(node: Node) -> list[Loop]:
    """The outermost loops, in order."""
    if isinstance(node, Loop):
        return [node]
    return [loop for child in children(node) for loop in outermost_loops(child)]


def main_statement(loop: Loop) -> str:
    """The statement that a nest is for: the last one, which its other statements prepare."""
    return list(statements(loop))[-1].name
