"""Which loop becomes the lanes of vectors."""

from __future__ import annotations

from tilework.loops.expressions import Call, walk
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import Compute, Loop
from tilework.lowering.memory import CLOSEST
from tilework.recipes.cpu._access import (
    addresses,
    divides_along,
    flat_address,
    loads_of,
    packed_layout,
    reduced_by,
    step_along,
)
from tilework.schedule.schedule import Schedule

_WORTH = 6
"""Cost of lanes (see `_lanes`) beyond which a scalar loop is as good."""
_TOLERATED = 0.1
"""Share of empty lanes that is not worth another choice."""


def best_lanes(
    schedule: Schedule,
    found: Compute,
    around: tuple[Loop, ...],
    kinds: dict[str, str],
    packable: frozenset[str],
    copyable: frozenset[str] = frozenset(),
) -> str | None:
    """The loop to vectorise: the one whose lanes cost least, inner loops first among equals; None where none will do.

    A load costs nothing where neighbouring lanes read neighbouring elements, or all the same one, or some the same one;
    a constant can be stored so that they do, a `copyable` operand copied. Results cost less where a reduction writes
    each of them once.
    """
    if any(load for target in found.targets for entry in target.index for load in entry.loads()):
        return None
    program = schedule.program
    stores, _ = addresses(program, found)
    reduces = bool(reduced_by(found, around))
    lanes = (schedule.machine.vector_bits if schedule.machine is not None else 128) // 32
    best: tuple[int, bool, int] | None = None
    chosen: str | None = None
    for position, loop in enumerate(around):
        if loop.extent.value is not None and loop.extent.value < 2:
            continue
        cost, apart = 0, 0
        for load in loads_of(found):
            address = flat_address(program.buffers[load.buffer], load.index)
            step = step_along(address, loop.variable)
            if step is None and divides_along(address, loop.variable, lanes):
                continue
            if step not in (0, 1) and packed_layout(program, load, loop.variable, packable) is None:
                near = step is not None and 2 <= step <= CLOSEST
                near = near or packed_layout(program, load, loop.variable, copyable) is not None
                cost += 1 if near else 2
                apart += 0 if near else 1
        # masks that change from step to step, and lanes that a last vector leaves empty
        cost += sum(loop.variable in guard.names() for guard in found.guards)
        cost += 1 if _wasted(schedule, loop) > _TOLERATED else 0
        if kinds[loop.variable] == "independent":
            cost += 0 if all(step_along(address, loop.variable) == 1 for address in stores) else 1 if reduces else 2
        elif kinds[loop.variable] == "reduction" and schedule.numerics.reassociate:
            cost += 1
        else:
            continue
        # a sum fetches lanes one by one in each of its steps
        rank = (cost + apart if reduces else cost, kinds[loop.variable] == "reduction", -position)
        if cost <= _WORTH and (best is None or rank < best):
            best, chosen = rank, loop.variable
    return chosen


def slow(statement: Compute) -> bool:
    """Whether a statement computes long chains: functions that are polynomials in the code."""
    calls = [node.function for value in statement.values for node in walk(value) if isinstance(node, Call)]
    return any(FUNCTIONS[name].transcendental for name in calls if name in FUNCTIONS)


def _wasted(schedule: Schedule, loop: Loop) -> float:
    """The share of lanes that stay empty."""
    extent = loop.extent.value
    if extent is None:
        return 0.0
    lanes = (schedule.machine.vector_bits if schedule.machine is not None else 128) // 32
    return 1 - extent / (-(-extent // lanes) * lanes)
