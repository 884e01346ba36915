"""The order of a product's tiles, in blocks for the caches.

A band of rows of the one operand stays in the second-level cache while tiles go through a group of the other's panels
(as wide as a tile, all along the sum); groups are shared among the threads. A sum so long that one panel would fill the
cache is cut into chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilework.dims import product
from tilework.loops.program import Compute, Loop
from tilework.recipes.cpu._access import loads_of
from tilework.recipes.cpu._caches import cache_of
from tilework.recipes.cpu._packing import usual
from tilework.schedule.schedule import Schedule

GROUPS = 16
"""Groups that give every thread a fair share."""
FEWEST = 8
"""Tiles of rows that a band has at least: each panel is fetched again for every band."""
SHORTEST = 16
"""Iterations of a chunk of a sum at least."""


@dataclass(frozen=True)
class Tiles:
    """The loops of a product before and after its tiles are cut off: `row` and `lane` are the loops that a tile of
    `rows` by `columns` elements covers a part of, `row_tiles` and `lane_tiles` the loops over tiles.
    """

    around: tuple[Loop, ...]
    row: str
    lane: str
    rows: int
    columns: int
    row_tiles: str
    lane_tiles: str


def in_blocks(
    schedule: Schedule, found: Compute, tiles: Tiles, free: list[str], reductions: list[str]
) -> tuple[Schedule, list[str], list[str]]:
    """Split the loops over tiles for the caches: the schedule, the loops outside a tile in order (chunks of the sum
    among them), and the reduction loops inside it. As given where the nest is no plain product, or all of the operand
    that lanes walk stays near anyway.
    """
    extents = {loop.variable: loop.extent for loop in tiles.around}
    batch = [v for v in free if v not in (tiles.row_tiles, tiles.lane_tiles)]
    along = [load for load in loads_of(found) if any(tiles.lane in entry.names() for entry in load.index)]
    moved = [{name for entry in load.index for name in entry.names()} for load in along]
    if not moved or any(name not in names for name in batch for names in moved):
        return schedule, free, reductions
    depth = usual(schedule, product([extents[v] for v in found.reduction if v in extents]))
    element = max(schedule.program.buffers[load.buffer].dtype.itemsize for load in loads_of(found))
    second = cache_of(schedule.machine, 2).bytes
    if 2 * depth * usual(schedule, extents[tiles.lane]) * element <= second:
        return schedule, free, reductions
    high = -(-usual(schedule, extents[tiles.row]) // tiles.rows)
    wide = -(-usual(schedule, extents[tiles.lane]) // tiles.columns)
    groups = -(-GROUPS // usual(schedule, product([extents[v] for v in batch])))
    if wide < groups and high < 2 * FEWEST:
        return schedule, free, reductions
    schedule, chunks, reductions = _chunks(schedule, reductions, -(-5 * depth * tiles.columns * element // second))
    if chunks:
        depth = usual(schedule, schedule.setting.loop(reductions[-1]).extent)
    band = max(FEWEST, 2 * second // (5 * depth * element * tiles.rows))
    if wide < groups:
        schedule, across, tile = _cut(schedule, tiles.row_tiles, max(2, min(band, high // groups)), "band", "tile")
        return schedule, [*batch, across, tiles.lane_tiles, *chunks, tile], reductions
    group = wide // groups
    if high <= band or group == 1:
        return schedule, [*batch, tiles.lane_tiles, *chunks, tiles.row_tiles], reductions
    schedule, outer, inner = _cut(schedule, tiles.lane_tiles, group, "group", "panel")
    schedule, across, tile = _cut(schedule, tiles.row_tiles, -(-high // -(-high // band)), "band", "tile")
    return schedule, [*batch, outer, across, inner, *chunks, tile], reductions


def _chunks(schedule: Schedule, reductions: list[str], pieces: int) -> tuple[Schedule, list[str], list[str]]:
    """The one loop of a sum cut into so many pieces, each long enough to be worth it."""
    if pieces < 2 or len(reductions) != 1:
        return schedule, [], reductions
    name = reductions[0]
    extent = usual(schedule, schedule.setting.loop(name).extent)
    size = max(SHORTEST, -(-extent // pieces))
    if size >= extent:
        return schedule, [], reductions
    schedule, chunk, within = _cut(schedule, name, size, "chunk", "within")
    return schedule, [chunk], [within]


def _cut(schedule: Schedule, loop: str, factor: int, outer: str, inner: str) -> tuple[Schedule, str, str]:
    names = f"{loop}.{outer}", f"{loop}.{inner}"
    return schedule.split(loop, factor, *names), *names
