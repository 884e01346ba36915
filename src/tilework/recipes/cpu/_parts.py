"""Long reductions with few results are cut into parts with partial results of their own, so that threads share them.

How many parts there are depends on extents alone, and they are combined in order, so results do not depend on threads.
"""

from __future__ import annotations

from tilework.dims import product
from tilework.loops.program import Compute, Loop
from tilework.recipes.cpu._access import addresses, loads_of, step_along
from tilework.recipes.cpu._reductions import ROW_VECTORS, VECTORS, row_loop
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.rewriting import band
from tilework.schedule.schedule import Schedule

ENOUGH = 16
"""Iterations of independent loops with which threads have enough to share out."""
PARTS = 32
"""Parts of a reduction, where its extent is known."""
LEAST_TERMS = 64
"""Terms that each partial result combines at least: then storing it costs little."""
LEAST_WORK = 1 << 15
"""Terms of a part at least: about what waking a thread takes."""


def in_parts(schedule: Schedule, name: str) -> tuple[Schedule, tuple[str, ...]]:
    """Cut a long reduction into parts that can run at the same time; and the statements that there are then, each in a
    nest of its own.
    """
    cut = _cut(schedule, name) if schedule.numerics.reassociate else None
    return (schedule, (name,)) if cut is None else (cut, cut.forwards[-1][name])


def _cut(schedule: Schedule, name: str) -> Schedule | None:
    found = schedule.setting.statement(name)
    enclosing = schedule.setting.enclosing(found)
    if not enclosing or found.reducer is None or found.init is None or len(found.targets) != 1:
        return None
    around = band(enclosing[0])
    if around[-1].body is not found or any(loop.extent == 0 for loop in around):
        return None
    moving = {loop.variable for loop in around if loop.extent != 1}
    if any(moving - {n for entry in load.index for n in entry.names()} for load in loads_of(found)):
        return None  # elements are used again: a product, whose tiles have loops enough
    reduced = [loop for loop in around if loop.variable in found.reduction]
    free = [loop for loop in around if loop not in reduced]
    longest = _outermost_in_memory(schedule, found, reduced)
    if longest is None or not _few(schedule, found, around, free):
        return None
    size = _part(longest, [loop for loop in reduced if loop is not longest], free)
    if size is None:
        return None
    stem = longest.variable
    trial = schedule.split(stem, size, f"{stem}.part", f"{stem}.rest")
    order = [f"{stem}.rest" if loop is longest else loop.variable for loop in around]
    moved = trial.attempt(Reorder(f"{stem}.part", *order))
    return moved.attempt(CacheWrite(name, "", f"{name}.parts", (f"{stem}.part",), "global")) if moved else None


def _outermost_in_memory(schedule: Schedule, found: Compute, reduced: list[Loop]) -> Loop | None:
    """The reduction loop with the largest steps through memory."""
    _, loads = addresses(schedule.program, found)
    best: tuple[int, Loop] | None = None
    for loop in reduced:
        steps = [step_along(load, loop.variable) for load in loads]
        reach = max((abs(step) if step is not None else 1 << 62 for step in steps), default=0)
        if best is None or reach > best[0]:
            best = (reach, loop)
    return None if best is None else best[1]


def _few(schedule: Schedule, found: Compute, around: tuple[Loop, ...], free: list[Loop]) -> bool:
    """Whether the loops that are independent as they stand are too few for all threads."""
    trips = product([loop.extent for loop in free]).value
    if trips is None:
        return False
    if free:
        bits = schedule.machine.vector_bits if schedule.machine is not None else 128
        lanes = bits // 32
        _, loads = addresses(schedule.program, found)
        columns = free[-1].variable
        if any(step_along(load, columns) == 1 for load in loads):
            in_rows = row_loop(schedule, found, around, columns, lanes) is not None
            trips //= lanes * (ROW_VECTORS if in_rows else VECTORS)
    return trips < ENOUGH


def _part(longest: Loop, others: list[Loop], free: list[Loop]) -> int | None:
    """Iterations of the longest loop in a part; None where parts are not worth it."""
    terms = product([loop.extent for loop in others]).value
    results = product([loop.extent for loop in free]).value
    if results is None:
        return None
    each = terms if terms is not None else 1
    least = max(-(-LEAST_TERMS // each), -(-LEAST_WORK // (each * results)))
    extent = longest.extent.value
    if extent is None:
        return least
    if extent < 4 * least:
        return None
    even = [parts for parts in range(PARTS, ENOUGH - 1, -1) if extent % parts == 0 and extent // parts >= least]
    return extent // even[0] if even else max(least, -(-extent // PARTS))
