"""Maps that read along another dimension than they write: tiles turned in registers, in blocks for the caches.

Where results lie beside each other along one loop, `lane`, and what is read does along another, `row`, one of the two
would be a gather or a scatter. Instead a tile of both loops is read into registers, with lanes along `row`, and the
statement takes it with lanes along `lane`: the code generator transposes it.

Tiles run in blocks of both loops, so that what is left of a line is still near when the next tile needs it. Results
larger than the last cache, and those whose rows meet in few sets of a cache, go through a block of their own: it is
filled by turned tiles, in long runs of what is read, and the statement walks over it in long runs of what it writes.
"""

from __future__ import annotations

import math

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass
from tilework.layout import Layout, Part
from tilework.loops.program import Compute, Loop
from tilework.machine.cpu import CpuMachine
from tilework.memory.placement import typical
from tilework.recipes.cpu._access import buffers_of, flat_address, loads_of, step_along
from tilework.recipes.cpu._caches import cache_of, page_bytes
from tilework.recipes.cpu._lanes import slow
from tilework.recipes.cpu._stages import own_loops
from tilework.schedule.primitives.cache_read import CacheRead
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.transform_layout import TransformLayout
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule

LINES = 2
"""Cache lines of a block's rows that tiles read and write where they lie."""
RUN_BYTES = 256
"""Bytes of a run in a block of its own: what memory takes at once without losing time."""
MOST_ROWS = 16
"""Rows of a tile: their lines should stay near until the next tile, even where they fall into few sets of the cache."""
SIDE_BY_SIDE = 4
"""Vectors that are written out one after another."""


@dataclass(frozen=True)
class Turned:
    """The loop along which results lie beside each other, the one along which what is read does, and the buffers that
    are read so.
    """

    lane: Loop
    row: Loop
    buffers: tuple[str, ...]


def turned(schedule: Schedule, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str]) -> Turned | None:
    """The two loops of a map that reads along another loop than it writes; None for anything else."""
    if (
        found.reducer is not None
        or len(found.targets) != 1
        or any(kinds[loop.variable] != "independent" for loop in around)
    ):
        return None
    program = schedule.program
    if found.loaded or any(loop.extent.names() & kinds.keys() for loop in around):
        return None
    target = flat_address(program.buffers[found.target.buffer], found.target.index)
    lane = _walked(target, around)
    if lane is None:
        return None
    rows: dict[str, Loop] = {}
    for load in loads_of(found):
        address = flat_address(program.buffers[load.buffer], load.index)
        if step_along(address, lane.variable) in (0, 1):
            continue
        row = _walked(address, around)
        if row is None:
            return None
        rows[load.buffer] = row
    chosen = next(iter(rows.values()), None)
    if chosen is None or any(row is not chosen for row in rows.values()):
        return None
    found_loops = Turned(lane, chosen, tuple(rows))
    smallest = zip((lane, chosen), tile_size(schedule, found, found_loops), strict=True)
    return (
        None
        if any(loop.extent.value is not None and loop.extent.value < size for loop, size in smallest)
        else found_loops
    )


def _walked(address: Dim, around: tuple[Loop, ...]) -> Loop | None:
    """The loop along which neighbouring elements lie beside each other."""
    return next((loop for loop in reversed(around) if step_along(address, loop.variable) == 1), None)


# -- the schedule ------------------------------------------------------------------------------------------------------
def with_turned_tiles(
    schedule: Schedule, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str]
) -> Schedule | None:
    """The nest of a map in turned tiles; None where it is no such map, or a step is refused."""
    loops = turned(schedule, found, around, kinds)
    if loops is None:
        return None
    large = _large(schedule, found)
    certain = large and (not schedule.program.symbols or _streams(schedule, found, loops))
    if certain or slow(found) or _few_sets(schedule, found, loops):
        return _through_blocks(schedule, found, around, loops, certain)
    element = max(schedule.program.buffers[name].dtype.itemsize for name in buffers_of(found))
    run = 2 * RUN_BYTES if large else LINES * cache_of(schedule.machine, 1).line_bytes
    return tiled(schedule, found, around, loops, max(1, run // element))


def tiled(
    schedule: Schedule,
    found: Compute,
    around: tuple[Loop, ...],
    loops: Turned,
    side: int = 0,
    *,
    along_reads: bool = False,
) -> Schedule | None:
    """The nest in turned tiles, in blocks of `side` iterations of both loops (0: no blocks).

    Tiles of a block go along what is written, or, with `along_reads`, along what is read.
    """
    lane, row = loops.lane.variable, loops.row.variable
    lanes, rows = tile_size(schedule, found, loops)
    outer: list[str] = []
    tiles: list[str] = []
    for name, extent, size, inner in (
        (row, loops.row.extent, rows, f"{row}.row"),
        (lane, loops.lane.extent, lanes, f"{lane}.lanes"),
    ):
        rest = name
        if side > size and (extent.value is None or extent.value > side):
            rest = f"{name}.part"
            schedule = schedule.split(name, side, f"{name}.block", rest)
            outer.append(f"{name}.block")
        schedule = schedule.split(rest, size, f"{name}.tile", inner, tail="mask")
        tiles.append(f"{name}.tile")
    if along_reads:
        tiles.reverse()
    others = [loop.variable for loop in around if loop.variable not in (row, lane)]
    trial = schedule.attempt(Reorder(*others, *outer, *tiles, f"{row}.row", f"{lane}.lanes"))
    if trial is None:
        return None
    for buffer in loops.buffers:
        copy = f"{found.name}.{buffer}.tile"
        trial = trial.attempt(CacheRead(buffer, tiles[-1], copy, "register"))
        if trial is None or not _neighbours(trial, copy, f"{lane}.lanes"):
            return None
        trial = _as_lanes(trial, copy)
    return trial.unroll(f"{row}.row").attempt(Vectorize(f"{lane}.lanes"))


def _neighbours(schedule: Schedule, copy: str, lanes: str) -> bool:
    """Whether neighbouring lanes read neighbouring rows of a tile: no row is copied for nothing."""
    entries = [entry for _, load in schedule.setting.readers[copy] for entry in load.index if lanes in entry.names()]
    return all(entry.coefficient(lanes) == 1 and entry.affine_in({lanes}) for entry in entries)


def _as_lanes(schedule: Schedule, copy: str) -> Schedule:
    """A copy into registers: lanes along what is read, everything else written out."""
    statement = schedule.setting.statement(copy)
    (load,) = loads_of(statement)
    address = flat_address(schedule.program.buffers[load.buffer], load.index)
    for loop in own_loops(schedule.setting.enclosing(statement), statement):
        lanes = step_along(address, loop.variable) == 1
        schedule = schedule.vectorize(loop.variable) if lanes else schedule.unroll(loop.variable)
    return schedule


def _through_blocks(
    schedule: Schedule, found: Compute, around: tuple[Loop, ...], loops: Turned, large: bool
) -> Schedule | None:
    """Blocks of what is read are turned into blocks of their own, which the statement reads along its lanes.

    Blocks follow each other along what is written; those of `large` arrays along what is read, where the next one is
    in the same pages, and goes on in the middle of a line.
    """
    lane, row = loops.lane.variable, loops.row.variable
    lanes, _ = tile_size(schedule, found, loops)
    side, run = _block_size(schedule, found, loops, large)
    schedule = schedule.split(row, run, f"{row}.block", f"{row}.part")
    schedule = schedule.split(lane, side, f"{lane}.block", f"{lane}.part")
    schedule = schedule.split(f"{lane}.part", lanes, f"{lane}.vector", f"{lane}.lanes", tail="mask")
    others = [loop.variable for loop in around if loop.variable not in (row, lane)]
    blocks = (f"{lane}.block", f"{row}.block") if large else (f"{row}.block", f"{lane}.block")
    trial = schedule.attempt(Reorder(*others, *blocks, f"{row}.part", f"{lane}.vector", f"{lane}.lanes"))
    for buffer in loops.buffers:
        copy = f"{found.name}.{buffer}.block"
        trial = trial.attempt(CacheRead(buffer, blocks[-1], copy)) if trial is not None else None
        trial = _filled(trial, copy, lane, large) if trial is not None else None
    if trial is None:
        return None
    if not slow(found):
        wide = f"{lane}.vector"
        if side // lanes > SIDE_BY_SIDE:
            trial = trial.split(wide, SIDE_BY_SIDE, f"{lane}.vectors", wide)
        trial = trial.unroll(wide)
    return trial.attempt(Vectorize(f"{lane}.lanes"))


def _filled(schedule: Schedule, copy: str, lane: str, large: bool) -> Schedule | None:
    """A copy whose readers have lanes along the loops of `lane`, filled and stored in turned tiles.

    Tiles lie behind each other as the readers take them; those of a `large` block, which is longer along what is read
    than the first cache has room for, as they are written.
    """
    statement = schedule.setting.statement(copy)
    own = own_loops(schedule.setting.enclosing(statement), statement)
    readers = schedule.setting.readers[copy]
    reader = readers[0][1]
    if any(load.index != reader.index for _, load in readers):
        return None
    across = next(
        (d for d, entry in enumerate(reader.index) if any(n.startswith(f"{lane}.") for n in entry.names())), 0
    )
    (source,) = loads_of(statement)
    row = _walked(flat_address(schedule.program.buffers[source.buffer], source.index), own)
    turn = next((loop for loop in own if loop.variable in statement.target.index[across].names()), None)
    if row is None or turn is None or row is turn:
        return None
    along = next(d for d, entry in enumerate(statement.target.index) if row.variable in entry.names())
    loops = Turned(turn, row, (source.buffer,))
    lanes, rows = tile_size(schedule, statement, loops)
    done = tiled(schedule, statement, own, loops, along_reads=True)
    rest = [Part(d) for d in range(len(reader.index)) if d not in (across, along)]
    tiles = (Part(across), Part(along)) if large else (Part(along), Part(across))
    layout = Layout(len(reader.index), (*rest, *tiles, Part(along, rows), Part(across, lanes)))
    return done.attempt(TransformLayout(copy, str(layout))) if done is not None else None


# -- sizes -------------------------------------------------------------------------------------------------------------
def tile_size(schedule: Schedule, found: Compute, loops: Turned) -> tuple[int, int]:
    """Lanes of the statement and rows of a tile: as many rows as there are registers for, with as many left over."""
    widest = max(schedule.program.buffers[name].dtype.bits for name in buffers_of(found))
    read = max(schedule.program.buffers[name].dtype.bits for name in loops.buffers)
    bits = schedule.machine.vector_bits if schedule.machine is not None else 128
    registers = schedule.machine.vector_registers if schedule.machine is not None else 16
    lanes = min(MOST_ROWS, max(2, bits // max(widest, 8)))
    rows = max(2, bits // max(read, 8))
    while rows > 2 and min(lanes, rows) * len(loops.buffers) > registers // 2:
        rows //= 2
    return lanes, rows


def _block_size(schedule: Schedule, found: Compute, loops: Turned, large: bool) -> tuple[int, int]:
    """Iterations of the loops `lane` and `row` of a block of its own.

    Whole lines of both sides, few enough for the first caches; or, of `large` arrays, runs of what is read that fill a
    page, behind which the hardware does not fetch by itself, in half of the second cache. Where a size is free the
    block is as small as the others: the array may be small.
    """
    buffers, second = schedule.program.buffers, cache_of(schedule.machine, 2)
    share = second.bytes // (8 if not large or schedule.program.symbols else 2)
    element = max(buffers[name].dtype.itemsize for name in loops.buffers)
    lanes, rows = tile_size(schedule, found, loops)
    if large:
        side = _at_most(max(lanes, RUN_BYTES // buffers[found.target.buffer].dtype.itemsize), loops.lane.extent)
        room = _floor(share // element // len(loops.buffers) // side)
        run = min(room, page_bytes(schedule.machine) // element)
    else:
        room = share // element // len(loops.buffers)
        run = min(RUN_BYTES // element, _floor(math.isqrt(room)))
        side = _at_most(max(lanes, rows, run), loops.lane.extent)
    return side, _at_most(max(lanes, rows, run), loops.row.extent)


def _floor(count: int) -> int:
    """The largest power of two that is not more."""
    return 1 << max(0, count.bit_length() - 1)


def _at_most(count: int, extent: Dim) -> int:
    """So many, or fewer where the loop is shorter: a power of two."""
    known = extent.value
    return count if known is None else min(count, 1 << (known - 1).bit_length())


def _large(schedule: Schedule, found: Compute) -> bool:
    """Whether the result is larger than the last cache."""
    usual = {symbol.name: typical(symbol) for symbol in schedule.program.symbols}
    size = int(schedule.program.buffers[found.target.buffer].bytes.evaluate(usual))
    machine = schedule.machine
    return isinstance(machine, CpuMachine) and size >= machine.last_level_bytes


def _streams(schedule: Schedule, found: Compute, loops: Turned) -> bool:
    """Whether vectors of the result lie in lines of their own, so that they are stored past the caches."""
    target = flat_address(schedule.program.buffers[found.target.buffer], found.target.index)
    lanes, _ = tile_size(schedule, found, loops)
    return all(
        step_along(target, name) is not None and (step_along(target, name) or 0) % lanes == 0
        for name in target.names() - {loops.lane.variable}
    )


def _few_sets(schedule: Schedule, found: Compute, loops: Turned) -> bool:
    """Whether the rows of a block lie so far apart that their lines fall into few sets of the first cache."""
    program, first = schedule.program, cache_of(schedule.machine, 1)
    way = first.bytes // first.ways
    accesses = [(found.target.buffer, found.target.index, loops.row)]
    accesses += [(load.buffer, load.index, loops.lane) for load in loads_of(found) if load.buffer in loops.buffers]
    for buffer, index, across in accesses:
        found_buffer = program.buffers[buffer]
        element = found_buffer.dtype.itemsize
        step = step_along(flat_address(found_buffer, index), across.variable)
        rows = min(LINES * first.line_bytes // element, across.extent.value or math.inf)
        if step is not None and way // math.gcd(step * element, way) * first.ways < rows:
            return True
    return False
