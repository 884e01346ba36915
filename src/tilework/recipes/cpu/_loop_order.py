"""The order of a sum's loops: what guards name is outside, long walks over memory inside."""

from __future__ import annotations

from tilework.loops.program import Compute, Loop
from tilework.recipes.cpu._access import addresses, flat_address, loads_of, step_along
from tilework.schedule.schedule import Schedule

LINE_BYTES = 64
NEAR_LINES = 64
"""Lines of the first-level cache that a chunk of a sum may fill with what rows read."""
LONG = 16
"""Iterations from which on a loop is long enough to be innermost."""
MOST_STEPS = 3
"""Steps of a sum that a tile takes in one trip at most."""


def order_of_sums(schedule: Schedule, found: Compute, loops: tuple[Loop, ...]) -> list[str]:
    """The reduction loops of a statement, outermost first.

    Guards that name a loop change what runs in it: outside, they are tested (or cut away) once for many iterations.
    Among the others the longest, and of equal ones the one with the smallest steps through memory, is innermost; loops
    that are equal in all this keep their order, and all do where sums may not be regrouped.
    """
    if not schedule.numerics.reassociate:
        return [loop.variable for loop in loops]
    _, loads = addresses(schedule.program, found)

    def rank(loop: Loop) -> tuple[bool, float, float]:
        guarded = any(loop.variable in guard.names() for guard in found.guards)
        steps = [step_along(address, loop.variable) for address in loads]
        reach = sum(float(1 << 30) if step is None else float(abs(step)) for step in steps)
        extent = loop.extent.value
        return (not guarded, float("inf") if extent is None else float(min(extent, LONG)), -reach)

    return [loop.variable for loop in sorted(loops, key=rank)]


def chunk_of_lines(schedule: Schedule, found: Compute, around: tuple[Loop, ...], lane: str, last: str) -> int | None:
    """The size of chunks in which a sum's innermost loop `last` is walked for all the others; None: it is not cut.

    Where each of its steps is in another cache line of what rows read, the taps around it come back to these lines.
    In chunks, they are still in the first-level cache then.
    """
    taps = [loop for loop in around if loop.variable in found.reduction and loop.variable != last and loop.extent != 1]
    extent = next(loop for loop in around if loop.variable == last).extent.value
    if not taps or extent is None or not schedule.numerics.reassociate:
        return None
    far: list[int] = []
    for load in loads_of(found):
        buffer = schedule.program.buffers[load.buffer]
        address = flat_address(buffer, load.index)
        step = step_along(address, last)
        if lane in address.names() or not step or abs(step) * buffer.dtype.itemsize < LINE_BYTES:
            continue
        lines = 1
        for tap in taps:
            jump = step_along(address, tap.variable)
            lines *= tap.extent.value or LONG if jump is None or abs(jump) * buffer.dtype.itemsize >= LINE_BYTES else 1
        far.append(lines)
    if not far:
        return None
    room = NEAR_LINES // max(far)
    sizes = [size for size in range(LONG // 2, min(room, extent // 2) + 1) if extent % size == 0]
    return max(sizes, default=None)


def steps_a_trip(loop: Loop) -> int:
    """How many steps of a sum its innermost loop is worth running in one trip: its end costs as much less.

    Two where that divides a long one, all of a short one (three channels of an image). Four would be more than LLVM's
    scheduler keeps in registers.
    """
    extent = loop.extent.value
    if extent is None:
        return 1
    if extent <= MOST_STEPS:
        return max(extent, 1)
    return 2 if extent >= LONG // 2 and extent % 2 == 0 else 1
