"""The order of tiles where rows of results need the same operand again and again, as in convolutions.

What the lanes of one tile read, all along the sum, is a panel. Three orders of the loops over tiles come into question;
each is priced by the bytes that it fetches from beyond the second-level cache, of which half may hold what is kept. A
panel larger than that is cut into chunks of the sum.
"""

from __future__ import annotations

from itertools import pairwise

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass
from tilework.layout import Layout, Part
from tilework.loops.expressions import Load
from tilework.loops.program import Compute, Loop
from tilework.machine.cpu import CpuMachine
from tilework.recipes.cpu._access import loads_of
from tilework.recipes.cpu._loop_order import chunk_of_lines
from tilework.schedule.schedule import Schedule

USUAL_CACHE = 1 << 19
"""Bytes of a second-level cache that is not known."""
USUAL_EXTENT = 64
"""Iterations of a loop that are not known."""
SHORTEST = 32
"""Iterations of a chunk of a sum at least."""


@dataclass(frozen=True)
class Panels:
    """The loop that lanes were cut from, and the loops over tiles along rows and along lanes."""

    lane: str
    rows: str
    lanes: str


def in_panels(
    schedule: Schedule,
    found: Compute,
    around: tuple[Loop, ...],
    panels: Panels,
    free: list[str],
    reductions: list[str],
) -> tuple[Schedule, list[str], list[str]] | None:
    """The loops outside a tile in order, chunks of the sum among them, and the reductions inside it.

    `found` and `around` are the statement and its loops before they were split. None where every loop outside moves the
    panels: that is a plain product.
    """

    def trips(variable: str) -> int:
        extent = schedule.setting.loop(variable).extent.value
        return USUAL_EXTENT if extent is None else max(extent, 1)

    others = [v for v in free if v not in (panels.rows, panels.lanes)]
    kept_loads = [load for load in loads_of(found) if any(panels.lane in entry.names() for entry in load.index)]
    needing = {name for load in kept_loads for entry in load.index for name in entry.names()}
    again = 1
    for variable in others:
        again *= 1 if variable in needing else trips(variable)
    if again < 2 or panels.rows not in free or panels.lanes not in free:
        return None
    kept, rest = _footprints(schedule, found, around, panels.lane)
    near = _second_level(schedule) // 2
    orders = (
        ([*others, panels.rows, panels.lanes], rest + kept * (1 if kept <= near else again * trips(panels.rows))),
        ([*others, panels.lanes, panels.rows], rest + kept * (1 if kept <= near else again)),
        ([panels.lanes, *others, panels.rows], kept + rest * (1 if rest <= near else trips(panels.lanes))),
    )
    best = min(orders, key=lambda order: order[1])[0]
    panel = kept // trips(panels.lanes)
    last = reductions[-1]
    exact = found.accumulate is None  # what is stored between chunks would else be rounded
    if best[0] == panels.lanes and panel > near and exact and schedule.numerics.reassociate:
        size = _chunk(schedule.setting.loop(last).extent.value, -(-panel // near))
        if size is not None:
            schedule = schedule.split(last, size, f"{last}.chunk", f"{last}.part")
            best = [panels.lanes, f"{last}.chunk", *best[1:]]
            reductions = [*reductions[:-1], f"{last}.part"]
    size = chunk_of_lines(schedule, found, around, panels.lane, last)
    inner = reductions[-1]
    extent = schedule.setting.loop(inner).extent.value
    if size is not None and extent is not None and extent > size and extent % size == 0:
        schedule = schedule.split(inner, size, f"{inner}.far", f"{inner}.near")
        reductions = [f"{inner}.far", *reductions[:-1], f"{inner}.near"]
    return schedule, best, reductions


def straight_on(load: Load, shape: tuple[Dim, ...], loops: list[str], block: int) -> Layout:
    """The layout of a constant whose last dimension lanes walk along, in blocks of `block`: the order of the loops.

    A dimension that several loops walk over, with others between them, is cut as they cut it.
    """
    last = len(shape) - 1
    parts: list[tuple[int, Part]] = []
    for d, entry in enumerate(load.index[:last]):
        names = sorted((v for v in entry.names() if v in loops), key=loops.index)
        places = [loops.index(v) for v in names]
        steps = [entry.coefficient(v) for v in names]
        # digits of the position: each ends where the next loop is not the next inside
        ends = [i for i in range(len(names)) if i == len(names) - 1 or places[i + 1] != places[i] + 1]
        digits = [steps[i] for i in ends]
        extent = shape[d].value
        whole = all(a > b > 0 and a % b == 0 for a, b in pairwise(digits)) and digits[-1:] == [1]
        if not whole or extent is None or extent % digits[0] or entry.constant:
            parts.append((max(places, default=-1), Part(d)))
            continue
        parts.append((places[ends[0]], Part(d)))
        parts += [
            (places[end], Part(d, before // step))
            for end, (before, step) in zip(ends[1:], pairwise(digits), strict=True)
        ]
    parts.sort(key=lambda part: part[0])
    return Layout(last + 1, (Part(last), *(part for _, part in parts), Part(last, block)))


def _chunk(extent: int | None, wanted: int) -> int | None:
    """The size of the fewest equal chunks of a loop that are at least `wanted`; None where there are none."""
    if extent is None:
        return None
    for count in range(wanted, extent // SHORTEST + 1):
        if extent % count == 0:
            return extent // count
    return None


def _footprints(schedule: Schedule, found: Compute, around: tuple[Loop, ...], lane: str) -> tuple[int, int]:
    """Bytes that the nest reads of what moves with the lanes, and of the rest."""
    extents = {loop.variable: loop.extent.value or USUAL_EXTENT for loop in around}
    sides = {True: 0, False: 0}
    for load in loads_of(found):
        elements = 1
        for entry, size in zip(load.index, schedule.program.buffers[load.buffer].shape, strict=True):
            reach = 1 + sum(abs(entry.coefficient(v)) * (extents[v] - 1) for v in entry.names() if v in extents)
            elements *= min(reach, size.value if size.value is not None else reach)
        moves = any(lane in entry.names() for entry in load.index)
        sides[moves] += elements * schedule.program.buffers[load.buffer].dtype.itemsize
    return sides[True], sides[False]


def _second_level(schedule: Schedule) -> int:
    known = schedule.machine.cache(2) if isinstance(schedule.machine, CpuMachine) else None
    return known.bytes if known is not None else USUAL_CACHE
