"""Copies of operands in the order in which tiles read them, made first where they are read often enough to pay.

A constant is stored that way when the model is compiled (`_tiles.py`). Any other operand is copied by a nest of its
own in front, in parallel: the copy moves each element once, and the tiles then read memory straight on, without the
cache conflicts and page walks of long strides. Where lanes would be strided, the copy transposes.
"""

from __future__ import annotations

from tilework.dims import Dim, dim, product
from tilework.fast_dataclass import dataclass
from tilework.layout import Layout, Part
from tilework.loops.expressions import Load
from tilework.loops.program import Compute
from tilework.memory.placement import typical
from tilework.recipes.cpu._access import flat_address, loads_of, step_along
from tilework.recipes.cpu._caches import cache_of, comes_from_memory
from tilework.schedule.primitives.cache_read import CacheRead
from tilework.schedule.schedule import Schedule

REUSE = 32
"""Times that each element is read from which on a copy pays; half as many where it comes from memory each time."""
REUSE_TURNED = 6
"""The same where lanes would be strided otherwise."""
DEPTH = 32
"""Rows that the copy takes along the operand before it goes on across them: few enough pages, pieces long enough."""


@dataclass(frozen=True)
class Copy:
    """A copied operand: its buffer, the dimension that its reader's lanes walk, those that its sum walks."""

    buffer: str
    lane: int
    summed: tuple[int, ...]


def copyable(schedule: Schedule, found: Compute) -> frozenset[str]:
    """Arguments that a copy may stand for: only a sum reads them, at one place, and each element often."""
    if not found.reduction or found.guards or found.reducer is None:
        return frozenset()
    arguments = {a.buffer.name for a in schedule.program.arguments if a.access == "read"}
    chosen: set[str] = set()
    for load in loads_of(found):
        names = {name for entry in load.index for name in entry.names()}
        if load.buffer not in arguments or len(load.index) < 2 or len(schedule.setting.readers[load.buffer]) != 1:
            continue
        if not all(_plain(entry, found) for entry in load.index) or not names & set(found.reduction):
            continue
        if _reuse(schedule, found, load) >= REUSE_TURNED:
            chosen.add(load.buffer)
    return frozenset(chosen)


def _plain(entry: Dim, found: Compute) -> bool:
    """Whether an index is one loop's variable, or a quotient or remainder of one that is not summed over."""
    names = entry.names()
    if len(names) != 1 or entry.loads():
        return not names
    return entry == dim(min(names)) or not (names & set(found.reduction) or entry.affine_in(names))


def copied(
    schedule: Schedule, found: Compute, lane: str, candidates: frozenset[str]
) -> tuple[Schedule, tuple[Copy, ...]]:
    """Copy what pays with lanes along `lane`: each into a buffer of the same order, for `arranged` to turn."""
    made: list[Copy] = []
    if lane in found.reduction:
        return schedule, ()
    for load in loads_of(found):
        if load.buffer not in candidates or not _pays(schedule, found, load, lane):
            continue
        places = [d for d, entry in enumerate(load.index) if lane in entry.names()]
        summed = tuple(d for d, entry in enumerate(load.index) if entry.names() & set(found.reduction))
        if len(places) != 1 or load.index[places[0]] != dim(lane) or not summed:
            continue
        name = f"{load.buffer}.packed"
        trial = schedule.attempt(CacheRead(load.buffer, "", name))
        if trial is None or trial.program.buffers[name].shape != schedule.program.buffers[load.buffer].shape:
            continue
        schedule = trial
        made.append(Copy(name, places[0], summed))
    return schedule, tuple(made)


def _pays(schedule: Schedule, found: Compute, load: Load, lane: str) -> bool:
    """Whether tiles would read the operand badly as it is."""
    buffer = schedule.program.buffers[load.buffer]
    address = flat_address(buffer, load.index)
    step = step_along(address, lane)
    if step != 1:
        return step != 0
    extents = {loop.variable: loop.extent for loop in schedule.setting.enclosing(found)}
    first, across = cache_of(schedule.machine, 1), usual(schedule, extents[lane]) * buffer.dtype.itemsize
    depth = usual(schedule, product([extents[v] for v in found.reduction if v in address.names()]))
    far = comes_from_memory(schedule.machine, depth * across)
    if _reuse(schedule, found, load) < (REUSE // 2 if far else REUSE):
        return False
    # short rows lie in order as they are
    return across > 2 * first.line_bytes and depth * across > 2 * first.bytes


def _reuse(schedule: Schedule, found: Compute, load: Load) -> int:
    """How often a nest reads each element."""
    names = {name for entry in load.index for name in entry.names()}
    return usual(schedule, product([n.extent for n in schedule.setting.enclosing(found) if n.variable not in names]))


def usual(schedule: Schedule, extent: Dim) -> int:
    """An extent, or what to plan for where it depends on symbols; 1 where it depends on anything else."""
    sizes = {symbol.name: typical(symbol) for symbol in schedule.program.symbols}
    if extent.names() - sizes.keys() or extent.loads():
        return 1
    return max(1, int(extent.evaluate(sizes)))


# -- the copy ----------------------------------------------------------------------------------------------------------
def arranged(schedule: Schedule, copy: Copy, width: int, block: int) -> Schedule:
    """Store a copy in blocks of `block` elements along its reader's lanes, and give its nest vectors of `width`."""
    shape = schedule.program.buffers[copy.buffer].shape
    extent = shape[copy.lane].value
    blocked = block > 1 and (extent is None or extent > block)
    across = block if blocked else width
    loops = {d: f"{copy.buffer}.{d}" for d, size in enumerate(shape) if size != 1}
    if step_along(_walked(schedule, copy, loops).index[-1], loops[copy.lane]) == 1:
        schedule = _straight(schedule, copy, loops, width, across)
    else:
        schedule = _turned(schedule, copy, loops, width, across)
    outside = [d for d in range(len(shape)) if d != copy.lane and d not in copy.summed]
    inside = map(Part, copy.summed)
    parts = (Part(copy.lane), *inside, Part(copy.lane, block)) if blocked else (*inside, Part(copy.lane))
    return schedule.transform_layout(copy.buffer, str(Layout(len(shape), (*map(Part, outside), *parts))))


def _walked(schedule: Schedule, copy: Copy, loops: dict[int, str]) -> Load:
    """The element that a copy is about: the one that moves along most of its loops."""
    found = loads_of(schedule.setting.statement(copy.buffer))
    return max(found, key=lambda load: len({n for entry in load.index for n in entry.names()} & set(loops.values())))


def _across(schedule: Schedule, loop: str, width: int, block: int) -> tuple[Schedule, str, list[str], str]:
    """The loop along the lanes, split into blocks of vectors: the loops over blocks, vectors and lanes."""
    outer, lanes = f"{loop}.outer", f"{loop}.lanes"
    schedule = schedule.split(loop, width, outer, lanes, tail="mask")
    if block == width:
        return schedule, outer, [], lanes
    return (
        schedule.split(outer, block // width, f"{loop}.block", f"{loop}.vector"),
        f"{loop}.block",
        [f"{loop}.vector"],
        lanes,
    )


def _straight(schedule: Schedule, copy: Copy, loops: dict[int, str], width: int, block: int) -> Schedule:
    """Vectors as they stand; some rows at a time, so that reads and writes keep to few pages."""
    schedule, blocks, vectors, lanes = _across(schedule, loops[copy.lane], width, block)
    outside = [loops[d] for d in loops if d != copy.lane]
    rows: list[str] = []
    deepest = next((d for d in reversed(copy.summed) if d in loops), None)
    if deepest is not None:
        row, extent = loops[deepest], schedule.setting.loop(loops[deepest]).extent.value
        if extent is None or extent > DEPTH:
            schedule = schedule.split(row, DEPTH, f"{row}.block", f"{row}.row")
            rows = [f"{row}.row"]
            outside = [f"{row}.block" if v == row else v for v in outside]
    schedule = schedule.reorder(*outside, blocks, *rows, *vectors, lanes)
    for vector in vectors:
        schedule = schedule.unroll(vector)
    return schedule.vectorize(lanes)


def _turned(schedule: Schedule, copy: Copy, loops: dict[int, str], width: int, block: int) -> Schedule:
    """Squares of `width` by `width` elements are read along their rows and written along their columns."""
    load = _walked(schedule, copy, loops)
    last = len(load.index) - 1
    place = next((d for d, entry in enumerate(load.index) if loops[copy.lane] in entry.names()), last)
    row = next((variable for variable in loops.values() if step_along(load.index[last], variable) == 1), None)
    schedule, blocks, vectors, lanes = _across(schedule, loops[copy.lane], width, block)
    if row is None:
        return schedule.vectorize(lanes)
    outside = [variable for variable in loops.values() if variable not in (loops[copy.lane], row)]
    schedule = schedule.split(row, width, f"{row}.block", f"{row}.row")
    inner = [f"{row}.row"]
    schedule = schedule.reorder(*outside, blocks, f"{row}.block", *vectors, *inner, lanes)
    square = f"{copy.buffer}.square"
    trial = schedule.attempt(CacheRead(load.buffer, (vectors or [f"{row}.block"])[-1], square, "register"))
    sides = [] if trial is None else [trial.program.extents.get(f"{square}.{d}") for d in (place, last)]
    if any(side != width for side in sides):
        trial = None  # the element's index is such that it is no square
    schedule = schedule.unroll(f"{row}.row") if trial is None else trial.unroll(f"{row}.row")
    if trial is not None:
        schedule = schedule.unroll(f"{square}.{place}").vectorize(f"{square}.{last}")
    return schedule.vectorize(lanes)
