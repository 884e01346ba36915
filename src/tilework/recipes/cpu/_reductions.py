"""Reductions that use nothing twice, so that memory is the limit: along the lanes, or in columns beside each other."""

from __future__ import annotations

from dataclasses import replace

from tilework.loops.program import Compute, Loop
from tilework.recipes.cpu._access import addresses, reduced_by, step_along
from tilework.recipes.cpu._lanes import slow
from tilework.recipes.cpu._packing import usual
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.decompose_reduction import DecomposeReduction
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule

VECTORS = 8
"""Most vectors beside each other: additions do not wait for each other then, and memory is read in long pieces."""
FEW_VECTORS = 4
"""As many where a vector's own computation is long, or a row is short."""
STREAMS = 2
"""Rows that are read at once."""
SHARED = 64
"""Groups of rows at least: as many as threads share well."""
ROWS = 8
"""Rows of a column sum that are added in registers before their sum goes to memory."""
ROW_VECTORS = 256
"""Vectors of a row beside each other: their sums stay in a first-level cache while rows pass by."""


def along_lanes(
    schedule: Schedule, found: Compute, free: list[str], reductions: list[str], outer: str, lanes: str, at: str
) -> Schedule | None:
    """Partial results in several vectors, which meet in one vector, and that in one element. `outer`: the loop over
    vectors.
    """
    pieces = schedule.setting.loop(outer).extent.value
    streams = _streams(schedule, found, free)
    count = _beside(found, pieces) // (streams or 1)
    vectors: tuple[str, ...] = ()
    if streams:
        row = free[-1]
        schedule = schedule.split(row, streams, f"{row}.block", f"{row}.row")
        free, vectors = [*free[:-1], f"{row}.block"], (f"{row}.row",)
        at = f"{row}.block"
    if count > 1:
        stem = outer.removesuffix(".outer")
        schedule = schedule.split(outer, count, f"{stem}.block", f"{stem}.vector")
        vectors = (*vectors, f"{stem}.vector")
        reductions = [f"{stem}.block" if name == outer else name for name in reductions]
    trial = schedule.attempt(Reorder(*free, *reductions, *vectors, lanes))
    if trial is None:
        return None
    for vector in vectors:
        trial = trial.unroll(vector)
    trial = trial.attempt(Vectorize(lanes))
    if trial is None:
        return None
    cells = trial.attempt(CacheWrite(found.name, at, f"{found.name}.cells", (*vectors[bool(streams) :], lanes)))
    if cells is None or not vectors:
        return cells or trial
    back = cells.forwards[-1][found.name][-1]
    kept = [loop.variable for loop in cells.setting.enclosing(cells.setting.statement(back))]
    return cells.attempt(CacheWrite(back, at, f"{found.name}.lanes", (kept[-1],))) or cells


def _streams(schedule: Schedule, found: Compute, free: list[str]) -> int:
    """How many rows to read at once: one stream alone does not keep memory busy. 0 where there are no rows, or few."""
    if not free:
        return 0
    row = schedule.setting.loop(free[-1])
    _, loads = addresses(schedule.program, found)
    several = usual(schedule, row.extent) >= SHARED * STREAMS
    return STREAMS if several and all(step_along(load, row.variable) != 0 for load in loads) else 0


def _beside(found: Compute, pieces: int | None) -> int:
    """How many vectors go beside each other: of equal worth the most that leave no rest."""
    most = FEW_VECTORS if slow(found) or (pieces is not None and pieces < 4 * VECTORS) else VECTORS
    if pieces is None:
        return most
    whole = [count for count in range(most, FEW_VECTORS - 1, -1) if pieces % count == 0]
    return min(whole[0] if whole else FEW_VECTORS, pieces)


def row_loop(schedule: Schedule, found: Compute, around: tuple[Loop, ...], chosen: str, lanes: int) -> str | None:
    """The reduction loop that steps from row to row, where a row is longer than a tile of columns; else None.

    A tile would then read a short piece of each row, all over memory, before it comes back for the next piece.
    """
    reduced = reduced_by(found, around)
    loops = [loop for loop in around if loop.variable in reduced]
    extent = next(loop.extent for loop in around if loop.variable == chosen).value
    if chosen in reduced or not loops:
        return None
    if extent is not None and extent <= VECTORS * lanes:
        return None
    rows = loops[-1]
    if rows.extent.value is not None and rows.extent.value < 2 * ROWS:
        return None
    _, loads = addresses(schedule.program, found)
    along, down = ([step_along(load, name) for load in loads] for name in (chosen, rows.variable))
    return rows.variable if 1 in along and all(step != 1 for step in down) and any(step != 0 for step in down) else None


def in_rows(
    schedule: Schedule,
    found: Compute,
    free: list[str],
    reductions: list[str],
    rows: str,
    outer: str,
    lanes: str,
    above: str,
) -> Schedule | None:
    """Columns summed in the order in which memory holds them: some rows at a time, a long piece of each.

    Each piece's sums go on with those of the rows before, so every column is added up in its own order. Sums that are
    wider than their result wait in a buffer beside it.
    """
    stem = outer.removesuffix(".outer")
    pieces = schedule.setting.loop(outer).extent.value
    columns = outer
    if pieces is None or pieces > ROW_VECTORS:
        schedule = schedule.split(outer, ROW_VECTORS, f"{stem}.block", f"{stem}.vector")
        free = [f"{stem}.block" if name == outer else name for name in free]
        columns = f"{stem}.vector"
    else:
        free = [name for name in free if name != outer]
    schedule = schedule.split(rows, ROWS, f"{rows}.block", f"{rows}.row")
    reductions = [f"{rows}.block" if name == rows else name for name in reductions]
    trial = schedule.attempt(Reorder(*free, *reductions, columns, f"{rows}.row", lanes))
    if trial is None:
        return None
    trial = trial.unroll(f"{rows}.row").attempt(Vectorize(lanes))
    if trial is None:
        return None
    if len(found.targets) > 1:
        return trial  # no tile holds several results of a sum
    wide = found.accumulate not in {None, schedule.program.buffers[found.target.buffer].dtype}
    started = trial if found.init is None else None
    if wide:
        beside = CacheWrite(found.name, free[-1] if free else above, f"{found.name}.sums", (), "global")
        started = trial.attempt(replace(beside, start="identity" if found.init is not None else "target"))
    elif started is None:
        started = trial.attempt(DecomposeReduction(found.name))
    cells = CacheWrite(found.name, columns, f"{found.name}.cells")
    resumed = started.attempt(replace(cells, start="target")) if started is not None else None
    if wide:
        return resumed  # in any other order of the loops, sums would be rounded row by row
    return resumed or trial.attempt(cells) or trial
