"""Tiles of sums whose results lie beside each other along their rows: the tile is turned when it is written.

Convolutions of images whose channels come first have lanes along features, as weights can be stored for any lanes, and
rows along columns of the image. A vector of results would be a scatter. Instead the write-back runs with lanes along
the rows; the code generator transposes the registers, for which rows have to be a power of two.
"""

from __future__ import annotations

from tilework.loops.program import Compute, Loop, LoopProgram, statements
from tilework.recipes.cpu._access import addresses, step_along
from tilework.recipes.cpu._stages import own_loops
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule

SHORT = 24
"""Terms for each lane below which a sum is short: a scatter takes more than two multiply-adds' time for each lane."""


def run_along_rows(program: LoopProgram, found: Compute, row: Loop, lane: str) -> bool:
    """Whether results lie beside each other along the rows of a tile, and not along its lanes."""
    stores, _ = addresses(program, found)
    steps = {(step_along(address, row.variable), step_along(address, lane)) for address in stores}
    return all(along == 1 and across != 1 for along, across in steps)


def writes_count(found: Compute, around: tuple[Loop, ...], lanes: int) -> bool:
    """Whether a sum is so short that scattering its results costs more than tiles of fewer shapes do."""
    terms = 1
    for loop in around:
        if loop.variable in found.reduction:
            terms *= loop.extent.value or SHORT * lanes
    return terms < SHORT * lanes


def with_turned_results(
    schedule: Schedule, statement: str, at: str, unrolled: tuple[str, ...], row: str, lanes: str
) -> Schedule | None:
    """Partial results in registers inside the loop `at`, written with lanes along `row`; None where a step is refused.

    No loop of the tile is marked yet: `unrolled` will be written out, `lanes` be those of the sum.
    """
    cells = f"{statement}.cells"
    trial = schedule.attempt(CacheWrite(statement, at, cells))
    start, end = f"{statement}.init", f"{statement}.back"
    if trial is None or not {start, end} <= {found.name for found in statements(trial.program.body)}:
        return None
    for variable in unrolled:
        trial = trial.unroll(variable)
    trial = trial.attempt(Vectorize(lanes))
    if trial is None:
        return None
    (*before, last) = _tile(trial, start, cells)
    for variable in before:
        trial = trial.unroll(variable)
    trial = trial.attempt(Vectorize(last))
    if trial is None:
        return None
    back = _tile(trial, end, cells)
    along = next((variable for variable in back if variable.startswith(f"{row}.")), None)
    if along is None:
        return None
    others = [variable for variable in back if variable != along]
    trial = trial.attempt(Reorder(*others, along))
    if trial is None:
        return None
    for variable in others:
        trial = trial.unroll(variable)
    return trial.attempt(Vectorize(along))


def _tile(schedule: Schedule, statement: str, cells: str) -> list[str]:
    """The loops of a nest over a tile, outermost first: as many as the tile has dimensions."""
    found = schedule.setting.statement(statement)
    own = own_loops(schedule.setting.enclosing(found), found)
    return [loop.variable for loop in own[len(own) - len(schedule.program.buffers[cells].shape) :]]
