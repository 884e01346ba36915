"""The order of a product's tiles, in blocks for the caches.

A panel of the one operand (as wide as a tile, all along the sum) stays in the second-level cache while tiles go through
the rows of the other; threads share the panels. Rows too many to come from the last level again for each panel go in
bands, each through a group of panels. A sum so long that one panel would fill the cache is cut into chunks. Where few
rows use an operand that comes from memory, it is read straight on, a few of its rows at a time.
"""

from __future__ import annotations

from tilework.dims import product
from tilework.fast_dataclass import dataclass
from tilework.loops.program import Compute, Loop, statements
from tilework.recipes.cpu._access import loads_of
from tilework.recipes.cpu._caches import cache_of, comes_from_memory
from tilework.recipes.cpu._packing import REUSE, usual
from tilework.schedule.schedule import Schedule

GROUPS = 16
"""Groups that give every thread a fair share."""
FEWEST = 16
"""Tiles of rows that a band has at least: each panel is fetched again for every band."""
NEAR = 8
"""Second-level caches that the rows' operand may fill and still come in time from the level behind."""
SHORTEST = 16
"""Iterations of a chunk of a sum at least."""
SLICES = 4
"""Slices in which threads share an operand that is read once, at least."""
SLICE_BYTES = 4096
"""Bytes along a row of such a slice: a page, the reach of hardware that reads ahead."""


@dataclass(frozen=True)
class Tiles:
    """The loops of a product before and after its tiles are cut off.

    A tile covers `rows` iterations of `row` (empty: there is no such loop) and `columns` of `lane`; `row_tiles` and
    `lane_tiles` are the loops over tiles. `in_order`: the operand that lanes walk is stored as tiles read it.
    """

    around: tuple[Loop, ...]
    row: str
    lane: str
    rows: int
    columns: int
    row_tiles: str
    lane_tiles: str
    in_order: bool


Loops = tuple[Schedule, list[str], list[str]]
"""A schedule, the loops outside a tile in order (chunks of the sum among them), the reduction loops inside it."""


def in_blocks(schedule: Schedule, found: Compute, tiles: Tiles, free: list[str], reductions: list[str]) -> Loops:
    """Split and order the loops over tiles for the caches; as given where the nest is no plain product, or where all of
    the operand that lanes walk stays near anyway.
    """
    given = schedule, free, reductions
    extents = {loop.variable: usual(schedule, loop.extent) for loop in tiles.around}
    batch = [v for v in free if v not in (tiles.row_tiles, tiles.lane_tiles)]
    along = [load for load in loads_of(found) if any(tiles.lane in entry.names() for entry in load.index)]
    moved = [{name for entry in load.index for name in entry.names()} for load in along]
    if not moved or any(name not in names for name in batch for names in moved if extents[name] > 1):
        return given
    depth = usual(schedule, product([loop.extent for loop in tiles.around if loop.variable in found.reduction]))
    element = max(schedule.program.buffers[load.buffer].dtype.itemsize for load in loads_of(found))
    second = cache_of(schedule.machine, 2).bytes
    if 2 * depth * extents[tiles.lane] * element <= second:
        return given
    times = usual(schedule, product([loop.extent for loop in tiles.around if loop.variable in batch]))
    exact = found.accumulate is None  # what is stored between chunks would else be rounded
    if not tiles.in_order and extents.get(tiles.row, 1) < REUSE:
        if not exact or not comes_from_memory(schedule.machine, depth * extents[tiles.lane] * element):
            return given
        return _read_once(given, tiles, batch, depth, -(-extents[tiles.lane] * element // SLICE_BYTES), times)
    if not tiles.row:
        return given
    high, wide = -(-extents[tiles.row] // tiles.rows), -(-extents[tiles.lane] // tiles.columns)
    groups = -(-GROUPS // times)
    pieces = -(-4 * depth * tiles.columns * element // second) if exact else 1
    schedule, chunks, reductions = _chunks(schedule, reductions, pieces)
    chunk = depth if not chunks else -(-depth // usual(schedule, schedule.setting.loop(chunks[0]).extent))
    band = max(FEWEST, 2 * second // (5 * chunk * element * tiles.rows))
    if wide < groups:
        if not chunks or high < 2:
            return given
        schedule, across, tile = _cut(schedule, tiles.row_tiles, max(2, min(band, high // groups)), "band", "tile")
        return schedule, [*batch, across, tiles.lane_tiles, *chunks, tile], reductions
    group = wide // groups
    if high <= band or group == 1 or extents[tiles.row] * depth * element <= NEAR * second:
        return schedule, [*batch, tiles.lane_tiles, *chunks, tiles.row_tiles], reductions
    schedule, outer, inner = _cut(schedule, tiles.lane_tiles, group, "group", "panel")
    schedule, across, tile = _cut(schedule, tiles.row_tiles, -(-high // -(-high // band)), "band", "tile")
    return schedule, [*batch, outer, across, inner, *chunks, tile], reductions


def _chunks(schedule: Schedule, reductions: list[str], pieces: int) -> Loops:
    """The one loop of a sum cut into so many pieces, each long enough to be worth it."""
    if pieces < 2 or len(reductions) != 1 or _rounds(schedule, reductions[0]):
        return schedule, [], reductions
    extent = usual(schedule, schedule.setting.loop(reductions[0]).extent)
    size = max(SHORTEST, -(-extent // pieces))
    if size >= extent:
        return schedule, [], reductions
    schedule, chunk, within = _cut(schedule, reductions[0], size, "chunk", "within")
    return schedule, [chunk], [within]


def _rounds(schedule: Schedule, reduction: str) -> bool:
    """Whether partial results stored between chunks would be rounded: to a narrower type than they are kept in."""
    sums = [found for found in statements(schedule.program.body) if reduction in found.reduction]
    return any(found.accumulate is not None for found in sums)


def _read_once(given: Loops, tiles: Tiles, batch: list[str], depth: int, pages: int, times: int) -> Loops:
    """An operand from memory that few rows use: some steps of the sum at a time go straight on along its rows, while
    the results stay near. Steps are as many as the first cache has ways: rows a power of two apart meet in one set.
    """
    schedule, _, reductions = given
    wide = usual(schedule, schedule.setting.loop(tiles.lane_tiles).extent)
    slices = -(-max(SLICES, pages) // times)
    extent = usual(schedule, schedule.setting.loop(reductions[0]).extent)
    steps = max(1, cache_of(schedule.machine, 1).ways * extent // depth)
    if len(reductions) != 1 or steps < 2 or steps >= extent or wide < 2 or _rounds(schedule, reductions[0]):
        return given
    schedule, chunk, within = _cut(schedule, reductions[0], steps, "chunk", "within")
    outside = [*batch]
    panel = tiles.lane_tiles
    if slices > 1 and wide >= 2 * slices:
        schedule, outer, panel = _cut(schedule, panel, -(-wide // slices), "slice", "panel")
        outside.append(outer)
    rows = [tiles.row_tiles] if tiles.row else []
    return schedule, [*outside, chunk, panel, *rows], [within]


def _cut(schedule: Schedule, loop: str, factor: int, outer: str, inner: str) -> tuple[Schedule, str, str]:
    names = f"{loop}.{outer}", f"{loop}.{inner}"
    return schedule.split(loop, factor, *names), *names
