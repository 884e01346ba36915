"""winograd: convolutions of 3x3 taps with 4 products for 9 (`algorithms/winograd.py`), where sums may be regrouped.

The sixteen products are tiles in registers as any product's (`vector_nest.py`), over weights that were transformed and
packed while compiling. Transforms have lanes along channels, or along squares where those lie next to each other.

A block of squares is as many as have patches and products of a few second-level caches: the more there are, the less
often the weights are read and the fewer tiles are not full. Threads share blocks, or the loops inside them where blocks
are few.
"""

from __future__ import annotations

from functools import partial

from tilework.algorithms.convolution import Along, Convolution, convolution_of
from tilework.algorithms.winograd import PATCH, SIDE, applies, suits, transformed, winograd
from tilework.candidates.candidate import Candidate, Prepared
from tilework.candidates.region import Region
from tilework.dims import product
from tilework.loops.program import statements
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Numerics
from tilework.recipes.cpu._caches import cache_of
from tilework.recipes.cpu.vector_nest import ENOUGH, is_done, least, nest, threads
from tilework.schedule.primitives.parallel import Parallel
from tilework.schedule.schedule import Schedule

ROOM = 3
"""Second-level caches that the patches and products of a block fill: measured, see design/0040."""
FREE = 4
"""Columns of squares of a block where nobody knows how many there are: those beyond the last are computed in vain."""
FREE_ROWS = 16
"""Rows of squares then: a block ends with the last."""
CHANNELS = 16
"""Channels and filters from which on the products, which are fewer, outweigh the transforms, which are additional."""


class Winograd:
    """Offers a candidate for a region that is one convolution of 3x3 taps with constant weights."""

    name = "winograd"

    def candidates(self, region: Region, machine: CpuMachine, numerics: Numerics) -> tuple[Candidate, ...]:
        """One candidate, or none."""
        if not numerics.reassociate or region.there:
            return ()
        definition = region.definition
        found = convolution_of(definition.computation)
        if found is None or not applies(found) or not _pays(found):
            return ()
        if found.weights.buffer not in {definition.buffers[name] for name in region.constants}:
            return ()
        rows, columns = block_of(found, machine)
        packable = frozenset(definition.buffers[name] for name in region.constants)
        note = f"squares of 2x2 results, {rows} x {columns} of them at a time"
        weights = Prepared("transformed to 4x4", partial(transformed, found), partial(suits, found))
        made = partial(scheduled, found, (rows, columns), packable, machine, numerics)
        return (
            Candidate(
                "Winograd F(2x2, 3x3)", self.name, made, numerics="default",
                prepared={found.weights.buffer: weights}, note=note,
            ),
        )  # fmt: skip


def _pays(found: Convolution) -> bool:
    least = min(found.depth.extent.value or 0, found.filter.extent.value or 0)
    extents = (found.rows.place.extent.value, found.columns.place.extent.value)
    return least >= CHANNELS and all(extent is None or extent >= PATCH for extent in extents)


def block_of(found: Convolution, machine: CpuMachine) -> tuple[int, int]:
    """Rows and columns of squares of a block: whole rows of the image if there is room, and equal blocks."""
    depth, filters = found.depth.extent.value or 1, found.filter.extent.value or 1
    square = PATCH * PATCH * (depth + filters) * found.image.dtype.itemsize
    room = max(1, ROOM * cache_of(machine, 2).bytes // square)
    columns = _even(found.columns, room, FREE)
    return _even(found.rows, room // columns, FREE_ROWS), columns


def _even(along: Along, most: int, free: int) -> int:
    """Squares in one direction: of the fewest equal blocks; `free` where nobody knows how many there are."""
    extent = along.place.extent.value
    if extent is None:
        return max(1, min(free, most))
    count = -(-extent // SIDE)
    return -(-count // -(-count // max(1, min(count, most))))


def scheduled(
    found: Convolution, block: tuple[int, int], packable: frozenset[str], machine: CpuMachine, numerics: Numerics
) -> Schedule:
    """The program in blocks, with tiles, lanes and threads."""
    program = winograd(found, *block)
    schedule = Schedule(program, machine, numerics, origin=program)
    names = [statement.name for statement in statements(program.body)]
    for name in names:
        if not is_done(schedule, name):
            schedule = nest(schedule, name, packable, apart=True)
    shared = schedule.setting.enclosing(schedule.setting.statement(names[0]))
    around = [loop for loop in shared if not loop.variable.startswith(f"{names[0]}.")]
    if around and least(product(loop.extent for loop in around)) >= ENOUGH:
        return threads(schedule, names[0])
    for name in names:
        own = schedule.setting.enclosing(schedule.setting.statement(name))[len(around)]
        schedule = schedule.attempt(Parallel(own.variable)) or schedule
    return schedule


RECIPE = Winograd()
"""3x3 convolutions by Winograd's algorithm."""
