"""Narrow elements that tiles read one by one, for all lanes, are converted once.

A sum of products of 16-bit floats is one of float32. Where an operand does not move with the lanes, its elements
would be converted and spread for every vector of columns; a copy in the wider type, made by a nest of its own in
front, leaves a load that spreads.
"""

from __future__ import annotations

from tilework.dtypes import DType
from tilework.loops.expressions import Call, Load, walk
from tilework.loops.program import Compute
from tilework.machine.cpu import CpuMachine
from tilework.recipes.cpu._packing import copyable
from tilework.schedule.primitives.cache_read import CacheRead
from tilework.schedule.primitives.split import Split
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule


def with_wide_copies(schedule: Schedule, statement: str, lane: str) -> tuple[Schedule, tuple[str, ...]]:
    """Copies of what a sum reads often of narrow floating arrays without moving along `lane`, and their statements."""
    found = schedule.setting.statement(statement)
    made: list[str] = []
    candidates = copyable(schedule, found)
    for load, wide in _narrow_loads(found):
        if load.buffer not in candidates or any(lane in entry.names() for entry in load.index):
            continue
        trial = schedule.attempt(CacheRead(load.buffer, "", _name(load, wide), "global", str(wide)))
        if trial is not None:
            schedule = trial
            made.append(_name(load, wide))
    return schedule, tuple(made)


def wide_rows(schedule: Schedule, load: Load, wide: DType, at: str) -> Schedule | None:
    """Copy what a loop's body reads of a buffer in a wider type, in vectors; None where that is not legal."""
    copy = _name(load, wide)
    done = schedule.attempt(CacheRead(load.buffer, at, copy, "global", str(wide)))
    last = f"{copy}.{len(load.index) - 1}"
    if done is None or not isinstance(done.machine, CpuMachine) or last not in done.setting.names():
        return done
    width, lanes = done.machine.lanes(wide.bits), f"{last}.lanes"
    if (done.setting.loop(last).extent.value or width) < width:
        return done
    split = done.attempt(Split(last, width, f"{last}.outer", lanes, tail="mask"))
    return (split.attempt(Vectorize(lanes)) if split is not None else None) or done


def _name(load: Load, wide: DType) -> str:
    return f"{load.buffer}.{wide}"


def _narrow_loads(found: Compute) -> list[tuple[Load, DType]]:
    """Loads of 16-bit floating numbers that are converted, with the type that they become."""
    pairs: dict[int, tuple[Load, DType]] = {}
    for node in [node for value in found.values for node in walk(value)]:
        if not (isinstance(node, Call) and node.function == "cast" and node.dtype.is_floating):
            continue
        (narrow,) = node.arguments
        if isinstance(narrow, Load) and narrow.dtype.is_floating and narrow.dtype.bits < node.dtype.bits:
            pairs[id(narrow)] = (narrow, node.dtype)
    return list(pairs.values())
