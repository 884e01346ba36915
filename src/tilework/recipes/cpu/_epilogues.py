"""What is computed from the results of a product, element by element, as part of the statement that stores them.

A bias, an activation, a residual then see each result while it is in a register, and no second pass goes over memory.
"""

from __future__ import annotations

from tilework.loops.expressions import Call, walk
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import Compute, statements
from tilework.recipes.cpu._access import uses_again
from tilework.schedule.outside import BeyondNest
from tilework.schedule.primitives.fuse_into_store import FuseIntoStore
from tilework.schedule.schedule import Schedule

MOST_CODE = 200
"""Operations of an epilogue, written out for every vector of a tile, beyond which a pass of its own is better."""
_FUNCTION = 25
"""Operations of a function that is a polynomial in the code."""


def result_with_readers(schedule: Schedule, statement: str) -> str:
    """The buffer of a product's results, if other statements read it; else nothing.

    Raises `BeyondNest` where its readers are not in sight.
    """
    found = schedule.setting.statement(statement)
    if len(found.targets) != 1 or not uses_again(found, schedule.setting.enclosing(found)):
        return ""
    result = found.target.buffer
    if schedule.outside is not None and result in schedule.outside.shared:
        raise BeyondNest(f"who reads {result}")
    return result if schedule.setting.readers.get(result) else ""


def with_epilogue(schedule: Schedule, result: str) -> Schedule:
    """Fuse what reads `result`, and what reads that, into the statement that stores it, as long as it may be."""
    while True:
        stores = [s for s in statements(schedule.program.body) if any(t.buffer == result for t in s.targets)]
        readers = {reader.name for reader, _ in schedule.setting.readers.get(result, ())}
        if len(stores) != 1 or len(readers) != 1 or stores[0].reducer is not None:
            return schedule
        (reader,) = readers
        if _code(schedule, stores[0], schedule.setting.statement(reader)) > MOST_CODE:
            return schedule
        fused = schedule.attempt(FuseIntoStore(reader, stores[0].name))
        if fused is None:
            return schedule
        schedule, result = fused, fused.setting.statement(reader).target.buffer


def _code(schedule: Schedule, store: Compute, reader: Compute) -> int:
    """Operations of a reader, once for every copy of the store."""
    copies = 1
    for loop in schedule.setting.enclosing(store):
        if loop.kind == "unrolled":
            copies *= loop.extent.value or 1
    calls = [node for value in reader.values for node in walk(value) if isinstance(node, Call)]
    long = sum(1 for call in calls if call.function in FUNCTIONS and FUNCTIONS[call.function].transcendental)
    return copies * (len(calls) + _FUNCTION * long)
