"""Narrow elements that a tile reads one by one, for all lanes, are converted once.

Where rows of a product are used again for every block of columns, the rows of a tile are copied in the type that the
sum needs.
"""

from __future__ import annotations

from tilework.dims import product
from tilework.dtypes import DType
from tilework.loops.expressions import Call, Load, walk
from tilework.loops.program import Compute, Loop
from tilework.machine.cpu import CpuMachine
from tilework.schedule.primitive import Primitive
from tilework.schedule.primitives.cache_read import CacheRead
from tilework.schedule.primitives.split import Split
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule

MOST_BYTES = 1 << 15
"""Bytes of a copy: it stays in the first cache, or streams through it from a near second one."""
ENOUGH_USES = 4
"""Blocks of columns from which on a copy pays."""


def with_wide_copies(schedule: Schedule, statement: str) -> Schedule:
    """Copy what a statement reads of narrow floating arrays, once for each of its lanes' blocks, in the wider type."""
    found = schedule.setting.statement(statement)
    around = schedule.setting.enclosing(found)
    lanes = next((loop for loop in around if loop.kind == "vectorized"), None)
    if lanes is None or found.reducer is None:
        return schedule
    for load, wide in _narrow_loads(found):
        if any(lanes.variable in entry.names() for entry in load.index):
            continue
        at = _place_of_copy(load, around, wide)
        if at is not None:
            schedule = wide_copy(schedule, load, wide, at) or schedule
    return schedule


def wide_copy(schedule: Schedule, load: Load, wide: DType, at: str) -> Schedule | None:
    """Copy what a loop's body reads of a buffer in a wider type; None where that is not legal."""
    copy = f"{load.buffer}.{wide}"
    done = schedule.attempt(CacheRead(load.buffer, at, copy, "global", str(wide)))
    if done is None or not isinstance(schedule.machine, CpuMachine):
        return done
    last = f"{copy}.{len(load.index) - 1}"
    width = schedule.machine.lanes(wide.bits)
    if last not in done.setting.names() or (done.setting.loop(last).extent.value or width) < width:
        return done
    steps: list[Primitive] = [
        Split(last, width, f"{last}.outer", f"{last}.lanes", tail="mask"),
        Vectorize(f"{last}.lanes"),
    ]
    trial: Schedule | None = done
    for step in steps:
        trial = trial.attempt(step) if trial is not None else None
    return trial or done


def _narrow_loads(found: Compute) -> list[tuple[Load, DType]]:
    """Loads of 16-bit floating numbers that are only used as float32, with that type."""
    pairs: dict[int, tuple[Load, DType]] = {}
    for node in [node for value in found.values for node in walk(value)]:
        if not (isinstance(node, Call) and node.function == "cast" and node.dtype.is_floating):
            continue
        (narrow,) = node.arguments
        if isinstance(narrow, Load) and narrow.dtype.is_floating and narrow.dtype.bits < node.dtype.bits:
            pairs[id(narrow)] = (narrow, node.dtype)
    return list(pairs.values())


def _place_of_copy(load: Load, around: tuple[Loop, ...], wide: DType) -> str | None:
    """The loop around the outermost one that uses what is loaded again; None where a copy would not pay."""
    moved = {name for entry in load.index for name in entry.names()}
    position = next((p for p, loop in enumerate(around) if loop.variable not in moved and loop.kind == "serial"), None)
    if not position:
        return None
    again = around[position].extent.value
    tile = product([loop.extent for loop in around[position:] if loop.variable in moved]).value
    if again is None or again < ENOUGH_USES or tile is None or tile * wide.itemsize > MOST_BYTES:
        return None
    return around[position - 1].variable
