"""The order of a sum's loops: what guards name is outside, long walks over memory inside."""

from __future__ import annotations

from tilework.loops.program import Compute, Loop
from tilework.recipes.cpu._access import addresses, step_along
from tilework.schedule.schedule import Schedule

LONG = 16
"""Iterations from which on a loop is long enough to be innermost."""


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


def two_steps(loop: Loop) -> bool:
    """Whether the innermost loop of a sum is worth running two steps a trip: its end then costs half as much.

    Four would be more than LLVM's scheduler keeps in registers.
    """
    extent = loop.extent.value
    return extent is not None and extent >= LONG and extent % 2 == 0
