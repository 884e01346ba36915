"""online_attention: attention by online softmax, whose scores stay in the caches (`algorithms/online_softmax.py`).

Keys and values are copied first, in the order in which tiles read them (`_packing.py`), by nests that all threads
share; values that lie one after another are read where they are. Threads share blocks of queries. Inside a block
every statement gets the lanes and tiles that it would have as a nest of its own (`vector_nest.py`): the two products
are tiles in registers, scale and mask are part of the first one's stores.

A block of keys, and of values, is about a first-level cache; a block of queries is as many as give scores that fill an
eighth of the second level: panels of keys come near once for many queries.
"""

from __future__ import annotations

from functools import partial

from tilework.algorithms.attention import Attention, attention_of
from tilework.algorithms.online_softmax import KEYS, QUERY, SCORES, VALUES, WEIGH, online_softmax
from tilework.candidates.candidate import Candidate
from tilework.candidates.region import Region
from tilework.dims import product
from tilework.errors import ScheduleError
from tilework.fast_dataclass import dataclass
from tilework.layout import Layout, Part
from tilework.loops.expressions import Load
from tilework.loops.program import Compute, LoopProgram, statements
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Numerics
from tilework.recipes.cpu._access import flat_address, step_along
from tilework.recipes.cpu._caches import cache_of
from tilework.recipes.cpu._epilogues import with_epilogue
from tilework.recipes.cpu._packing import REUSE, Copy, arranged
from tilework.recipes.cpu._stages import outermost_loops
from tilework.recipes.cpu._tile_sizes import tile_sizes
from tilework.recipes.cpu.vector_nest import all_threads, is_done, nest, threads
from tilework.schedule.primitives.transform_layout import TransformLayout
from tilework.schedule.schedule import Schedule

FEWEST_ROWS = 24
"""Queries of a block at least, so far as there are as many: each uses the keys and values that were brought near."""
MOST_ROWS = 192
USUAL_ROWS = 64
"""Queries of a block where nobody knows how many there are."""
ENOUGH = 16
"""Blocks of queries that give every thread a fair share."""


@dataclass(frozen=True)
class Blocks:
    """Queries and keys of a block."""

    rows: int
    keys: int


class OnlineAttention:
    """Offers a candidate for a region that is one attention, where sums may be grouped otherwise."""

    name = "online_attention"

    def candidates(self, region: Region, machine: CpuMachine, numerics: Numerics) -> tuple[Candidate, ...]:
        """One candidate, or none."""
        if not numerics.reassociate:
            return ()
        found = attention_of(region.definition.computation)
        sizes = blocks_of(found, machine) if found is not None else None
        if found is None or sizes is None:
            return ()
        note = f"{sizes.rows} queries and {sizes.keys} keys at a time, scores in the caches"
        made = partial(scheduled, found, sizes, machine, numerics)
        return (Candidate("online softmax", self.name, made, numerics="default", note=note),)


def blocks_of(found: Attention, machine: CpuMachine) -> Blocks | None:
    """The sizes of blocks; None where they do not follow from the extents."""
    queries, keys = found.row.extent.value, found.key.extent.value
    depth, columns = found.depth.extent.value, found.column.extent.value
    batch = product([axis.extent for axis in found.batch]).value
    if depth is None or columns is None:
        return None
    if (queries is not None and queries < REUSE) or keys == 0 or min(depth, columns) < 2 or batch == 0:
        return None  # of few queries the scores are few, and copies of the keys do not pay
    size = found.dtype.itemsize
    lanes = max(2, machine.vector_bits // found.dtype.bits)
    first, second = cache_of(machine, 1).bytes, cache_of(machine, 2).bytes
    tall, wide = tile_sizes(machine, None, None)
    width = lanes * wide if keys is None or keys >= lanes * wide else lanes
    near = max(width, first // (size * max(depth, columns)))
    # blocks of whole tiles, up to twice as large where that leaves less of them empty
    across = (
        near // width * width
        if keys is None
        else min((_even(keys, most, width) for most in (near, 2 * near)), key=lambda block: _up(keys, block))
    )
    most = min(MOST_ROWS, max(FEWEST_ROWS, second // (8 * size * across)))
    if queries is None:
        return Blocks(_up(min(most, USUAL_ROWS), tall), across)
    if batch is not None:
        most = max(min(most, FEWEST_ROWS), min(most, queries * batch // ENOUGH))
    return Blocks(_even(queries, most, tall) if queries > tall else queries, across)


def _even(extent: int, most: int, step: int) -> int:
    """The size of the fewest equal blocks of about `most` at most, each a multiple of `step`."""
    count = -(-extent // max(most, step))
    return _up(-(-extent // count), step)


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


# -- the schedule ------------------------------------------------------------------------------------------------------
def scheduled(found: Attention, sizes: Blocks, machine: CpuMachine, numerics: Numerics) -> Schedule:
    """The program in blocks, with tiles, lanes and threads."""
    program = online_softmax(found, sizes.rows, sizes.keys, copy_values=not _in_place(found, sizes, machine))
    schedule = Schedule(program, machine, numerics, origin=program)
    lanes, batch = max(2, machine.vector_bits // found.dtype.bits), len(found.batch)
    # first the order in which lanes find neighbouring keys, so that the product is a tile; then panels as wide as that
    turned = _arranged(schedule, Copy(KEYS, batch, (batch + 1,)), lanes, 1)
    schedule = with_epilogue(nest(turned or schedule, SCORES, apart=True), SCORES)
    schedule = with_epilogue(nest(schedule, WEIGH, apart=True), "sums")
    for name in [statement.name for statement in _inside(program) if statement.name not in (SCORES, WEIGH)]:
        if not is_done(schedule, name):
            schedule = nest(schedule, name, apart=True)
    if turned is not None:
        panel = Part(batch + 1, _width(schedule, SCORES, f"{SCORES}.j"))
        layout = Layout(batch + 2, (*map(Part, range(batch)), Part(batch + 1), Part(batch), panel))
        schedule = schedule.attempt(TransformLayout(KEYS, str(layout))) or schedule
    if VALUES in schedule.program.buffers:
        copy = Copy(VALUES, batch + 1, (batch,))
        schedule = _arranged(schedule, copy, lanes, _width(schedule, WEIGH, f"{WEIGH}.e")) or schedule
    outside = [statement.name for statement in statements(program.body)]
    for name in outside[: outside.index(QUERY)]:
        schedule = all_threads(schedule, name)
    return threads(schedule, QUERY)


def _arranged(schedule: Schedule, copy: Copy, lanes: int, width: int) -> Schedule | None:
    """A copy in the order in which tiles read it; None where its elements come from places that are no rows."""
    try:
        return arranged(schedule, copy, lanes, width)
    except ScheduleError:
        return None


def _in_place(found: Attention, sizes: Blocks, machine: CpuMachine) -> bool:
    """Whether values are read where they are: rows one after another in memory, and blocks of them whole."""
    if not isinstance(found.values, Load):
        return False
    keys, columns = found.key.extent.value, found.column.extent.value or 0
    buffer = next(b for b in found.computation.inputs if b.name == found.values.buffer)
    address = flat_address(buffer, found.values.index)
    dense = step_along(address, found.column.name) == 1 and step_along(address, found.key.name) == columns
    whole = keys is None or keys <= sizes.keys or keys % sizes.keys == 0
    return dense and whole and columns * found.dtype.bits % machine.vector_bits == 0


def _inside(program: LoopProgram) -> list[Compute]:
    """The statements of a block of queries."""
    return list(statements(outermost_loops(program.body)[-1]))


def _width(schedule: Schedule, product: str, across: str) -> int:
    """Elements across of the tile that a product's statement computes: its lanes and vectors, cut from a loop."""
    width = 1
    for loop in schedule.setting.enclosing(schedule.setting.statement(product)):
        if loop.kind in ("vectorized", "unrolled") and loop.variable.startswith(f"{across}."):
            width *= loop.extent.value or 1
    return width


RECIPE = OnlineAttention()
"""Attention over blocks of keys."""
