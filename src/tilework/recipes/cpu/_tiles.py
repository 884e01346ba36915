"""Lanes innermost, and for sums tiles of rows and vectors whose partial results stay in registers."""

from __future__ import annotations

import math

from tilework.loops.program import Compute, Loop, LoopProgram
from tilework.recipes.cpu._access import addresses, buffers_of, loads_of, reduced_by, step_along
from tilework.recipes.cpu._blocks import Tiles, in_blocks
from tilework.recipes.cpu._lanes import slow
from tilework.recipes.cpu._loop_order import order_of_sums, steps_a_trip
from tilework.recipes.cpu._packing import Copy, arranged, usual
from tilework.recipes.cpu._panels import Panels, in_panels, straight_on
from tilework.recipes.cpu._reductions import VECTORS, along_lanes, in_rows, row_loop
from tilework.recipes.cpu._tile_sizes import cycles_of, tile_sizes
from tilework.recipes.cpu._turned_results import run_along_rows, with_turned_results, writes_count
from tilework.recipes.cpu._windows import rows_together, window_of, with_window
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.prefetch import Prefetch
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.transform_layout import TransformLayout
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule

MOST_LANES = 64
"""Lanes that one vectorised loop may have."""
BESIDE = 4
"""Vectors beside each other where chains are long: while one waits for a result, the others compute."""
AHEAD_BYTES = 3072
"""How far ahead of its use what streams through is fetched. Not by whole pages: addresses a page apart look alike to
the core.
"""
SCATTERED = 1.1
"""How much more than others tiles may cost whose results are turned before they are stored: scattering them takes
as many stores as there are lanes, and LLVM twice as long.
"""
FEWEST_ROWS = 4
"""Rows of which a tile can be made without many loads for each sum."""
FEWEST = 4
"""Such groups that a loop has at least: the last one may be mostly empty."""


def with_lanes(
    schedule: Schedule,
    found: Compute,
    around: tuple[Loop, ...],
    kinds: dict[str, str],
    chosen: str,
    packable: frozenset[str] = frozenset(),
    copies: tuple[Copy, ...] = (),
) -> Schedule:
    """Split the chosen loop by the machine's lanes and move the lanes innermost; constants of sums and copies of other
    operands are stored in the order in which tiles read them.
    """
    loop = next(node for node in around if node.variable == chosen)
    reduced = reduced_by(found, around)
    kept = (found.accumulate.bits,) if found.accumulate is not None else ()
    widest = max((*(schedule.program.buffers[b].dtype.bits for b in buffers_of(found)), *kept), default=32)
    lanes = max(2, (schedule.machine.vector_bits if schedule.machine is not None else 128) // max(widest, 8))
    extent = loop.extent.value
    if extent is not None and extent < lanes:
        lanes = 1 << (extent - 1).bit_length()
    if not reduced and slow(found):
        lanes *= _beside(schedule, loop, lanes)
    outer, inner = f"{chosen}.outer", f"{chosen}.lanes"
    trial = schedule.split(chosen, lanes, outer, inner, tail="mask")
    order = [node.variable for node in around]
    reductions = order_of_sums(schedule, found, tuple(n for n in around if n.variable in reduced))
    free = [v for v in order if v not in reductions]
    lanes_reduce = chosen in reductions
    sums = len(reductions) == len(reduced) and all(kinds[v] != "ordered" for v in reductions)
    if not (reductions and sums and (schedule.numerics.reassociate or not lanes_reduce)):
        reordered = trial.attempt(Reorder(*(outer if v == chosen else v for v in order), inner))
        vectorised = reordered.attempt(Vectorize(inner)) if reordered is not None else None
        if vectorised is not None and not reduced and slow(found):
            vectorised = _ahead(vectorised, found, around, chosen, outer, lanes)
        return vectorised or schedule
    above = schedule.setting.enclosing(around[0])
    if lanes_reduce:
        places = [*(node.variable for node in above), *free]
        reductions = [outer if v == chosen else v for v in reductions]
        return along_lanes(trial, found, free, reductions, outer, inner, places[-1] if places else "") or schedule
    # a tile of several rows and vectors: sums then do not wait for each other, and what is loaded is used again
    turned = False
    row = _rows(schedule.program, found, around, kinds, chosen)
    pieces = trial.setting.loop(outer).extent.value
    if row is not None:
        rows, count = tile_sizes(schedule.machine, row.extent.value, pieces)
        if run_along_rows(schedule.program, found, row, chosen):
            # results that lie along the rows are turned in registers: blocks of a power of two rows
            extent = row.extent.value
            blocks = tile_sizes(schedule.machine, extent, pieces, powers=True)
            costs = [cycles_of(schedule.machine, extent, pieces, size) for size in (blocks, (rows, count))]
            turned = costs[0] <= SCATTERED * costs[1] or writes_count(found, around, lanes)
            rows, count = blocks if turned else (rows, count)
    else:
        window = window_of(found, around, kinds, chosen)
        if window is not None:
            free_outer = [outer if v == chosen else v for v in free]
            together = rows_together(schedule, found, around, kinds, chosen)
            slid = with_window(trial, found, window, free_outer, reductions, outer, inner, together)
            if slid is not None:
                return slid
        far = row_loop(schedule, found, around, chosen, lanes)
        if far is not None:
            free = [outer if v == chosen else v for v in free]
            place = above[-1].variable if above else ""
            return in_rows(trial, found, free, reductions, far, outer, inner, place) or schedule
        # nothing is used again: many vectors side by side read memory in long pieces
        rows, count = 1, min(VECTORS, pieces or VECTORS)
    vectors: tuple[str, ...] = ()
    if count > 1:
        trial = trial.split(outer, count, f"{chosen}.block", f"{chosen}.vector")
        vectors, outer = (f"{chosen}.vector",), f"{chosen}.block"
    free = [outer if v == chosen else v for v in free]
    if row is not None and rows > 1:
        trial = trial.split(row.variable, rows, f"{row.variable}.block", f"{row.variable}.row")
        free = [f"{row.variable}.block" if v == row.variable else v for v in free]
        vectors = (f"{row.variable}.row", *vectors)
    panelled = None
    if row is not None:
        panels = Panels(chosen, f"{row.variable}.block" if rows > 1 else row.variable, outer)
        panelled = in_panels(trial, found, around, panels, free, reductions)
        trial, free, reductions = panelled or (trial, free, reductions)
    # with one vector a row, LLVM would keep what both steps load at a time, and sums would leave their registers
    innermost = trial.setting.loop(reductions[-1])
    steps = steps_a_trip(innermost) if row is not None and count > 1 else 1
    if steps > 1:
        last = reductions.pop()
        if innermost.extent.value != steps or not reductions:
            trial = trial.split(last, steps, f"{last}.pair", f"{last}.step")
            reductions.append(f"{last}.pair")
            last = f"{last}.step"
        vectors = (last, *vectors)
    if panelled is None:
        name = row.variable if row is not None else ""
        ordered = packable | {copy.buffer for copy in copies}
        straight = {load.buffer for load in loads_of(found) if any(chosen in entry.names() for entry in load.index)}
        tiles = Tiles(
            around, name, chosen, rows, count * lanes, f"{name}.block" if rows > 1 else name, outer, straight <= ordered
        )
        trial, free, reductions = in_blocks(trial, found, tiles, free, reductions)
    reordered = trial.attempt(Reorder(*free, *reductions, *vectors, inner))
    if reordered is None:
        return schedule
    trial = reordered
    at = free[-1] if free else above[-1].variable if above else ""
    done = None
    if turned and row is not None and rows > 1:
        done = with_turned_results(trial, found.name, at, vectors, f"{row.variable}.row", inner)
    if done is None:
        for vector in vectors:
            trial = trial.unroll(vector)
        vectorised = trial.attempt(Vectorize(inner))
        if vectorised is None:
            return schedule
        cells = CacheWrite(found.name, at, f"{found.name}.cells")
        done = vectorised.attempt(cells) or vectorised
    done = _in_order(done, found.name, inner, count * lanes, packable)
    for copy in copies:
        done = arranged(done, copy, lanes, count * lanes)
    return done


def _beside(schedule: Schedule, loop: Loop, lanes: int) -> int:
    """How many vectors of `lanes` to compute beside each other."""
    count = BESIDE
    while count > 1 and (count * lanes > MOST_LANES or usual(schedule, loop.extent) < FEWEST * count * lanes):
        count //= 2
    return count


def _ahead(
    schedule: Schedule, found: Compute, around: tuple[Loop, ...], chosen: str, outer: str, lanes: int
) -> Schedule:
    """Fetch what a long chain loads along its lanes before it does.

    A core that computes a long chain does not look as far ahead as its own next loads, and what the hardware fetches by
    itself ends with the page. Rows that end sooner are left alone.
    """
    if chosen != around[-1].variable:
        return schedule
    trips = schedule.setting.loop(outer).extent.value
    for buffer in dict.fromkeys(load.buffer for load in loads_of(found)):
        size = schedule.program.buffers[buffer].dtype.itemsize
        iterations = -(-AHEAD_BYTES // (lanes * size))
        if trips is None or trips > iterations:
            schedule = schedule.attempt(Prefetch(found.name, outer, buffer, iterations)) or schedule
    return schedule


def _in_order(schedule: Schedule, statement: str, lanes: str, block: int, packable: frozenset[str]) -> Schedule:
    """Store constants that the lanes walk along in blocks as wide as a tile: a tile then reads memory straight on."""
    loops = [loop.variable for loop in schedule.setting.enclosing(schedule.setting.statement(statement))]
    for load in loads_of(schedule.setting.statement(statement)):
        shape = schedule.program.buffers[load.buffer].shape
        last = len(shape) - 1
        extent = shape[last].value if shape else None
        if load.buffer not in packable or last < 1 or extent is None or extent <= block:
            continue
        if lanes not in load.index[last].names() or any(lanes in entry.names() for entry in load.index[:last]):
            continue
        layout = straight_on(load, shape, loops, block)
        schedule = schedule.attempt(TransformLayout(load.buffer, str(layout))) or schedule
    return schedule


def _rows(
    program: LoopProgram, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str], chosen: str
) -> Loop | None:
    """The loop whose iterations use the same vectors: loads that move with the lanes do not move with it.

    Of those with enough iterations for a tile it is the one whose results are nearest to each other, else the longest.
    """
    (store, *_), _ = addresses(program, found)
    vectors = [load for load in loads_of(found) if any(chosen in entry.names() for entry in load.index)]
    best: Loop | None = None
    most = (False, -math.inf)
    for loop in around:
        if loop.variable == chosen or kinds[loop.variable] != "independent" or loop.extent == 1:
            continue
        if any(loop.variable in entry.names() for load in vectors for entry in load.index):
            continue
        step = step_along(store, loop.variable)
        length = loop.extent.value
        enough = length is None or length >= FEWEST_ROWS
        merit = (enough, (-math.inf if step is None else -step) if enough else length or 0)
        if best is None or merit >= most:
            best, most = loop, merit
    return best if vectors else None
