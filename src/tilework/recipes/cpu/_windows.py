"""Windows that slide along a loop: several results a pass, so that what their windows share is loaded once.

A depthwise convolution or a pooling has no operand that all results of a row use, so that tiles of rows and vectors
(`_tiles.py`) have nothing to keep. But neighbouring results along a loop `i` read overlapping elements `s i + d t` for
the taps `t` of their windows. With several `i` and all `t` written out, each vector is loaded once and used by every
tap that it meets, and the weights of the taps stay in registers meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tilework.fast_dataclass import dataclass
from tilework.loops.program import Compute, Loop, statements
from tilework.machine.cpu import CpuMachine
from tilework.recipes.cpu._access import loads_of
from tilework.recipes.cpu._caches import cache_of
from tilework.schedule.primitive import Machine
from tilework.schedule.primitives.cache_write import CacheWrite
from tilework.schedule.primitives.partition import Partition
from tilework.schedule.primitives.reorder import Reorder
from tilework.schedule.primitives.vectorize import Vectorize
from tilework.schedule.schedule import Schedule

MOST_RESULTS = 12
"""Most results of one pass."""
MOST_TAPS = 11
"""Taps beyond which windows are not written out."""
BUDGET = 400
"""Nodes that a nest may grow to when the ends of windows are cut off from its middle."""
USUAL_EXTENT, ENDS = 60, 2
"""Results along a loop whose extent is not known, and for how many passes more those at its ends count: they test each
tap, which short passes do less of.
"""
WAITING = 0.6
"""How much of the time that the sums of one pass wait for each other passes beside it do not fill."""
ONE_MORE = 1.02
"""How much more a smaller last pass may cost, as it is code of its own."""
TOGETHER = 2
"""Rows of results that one pass has where rows share elements that the first-level cache does not keep."""


@dataclass(frozen=True)
class Window:
    """Results along `along` whose windows of `taps` elements overlap; `step`: elements from one result to the next."""

    along: Loop
    taps: Loop
    step: int
    shared: int
    """Loads of a tap that all results use."""


def window_of(found: Compute, around: tuple[Loop, ...], kinds: dict[str, str], chosen: str) -> Window | None:
    """The window that the innermost loop has, if any: one index entry moves with the loop and with a reduction."""
    return next(_windows(found, around, kinds, chosen), None)


def _windows(found: Compute, around: tuple[Loop, ...], kinds: dict[str, str], chosen: str) -> Iterator[Window]:
    for along in reversed(around):
        if along.variable == chosen or kinds[along.variable] != "independent" or (along.extent.value or 2) < 2:
            continue
        for taps in around:
            count = taps.extent.value
            if kinds[taps.variable] != "reduction" or count is None or not 2 <= count <= MOST_TAPS:
                continue
            steps = [
                entry.coefficient(along.variable)
                for load in loads_of(found)
                for entry in load.index
                if {along.variable, taps.variable} <= entry.names()
            ]
            if len(steps) == 1 and 0 < steps[0] < count:
                shared = sum(
                    all(along.variable not in entry.names() for entry in load.index) for load in loads_of(found)
                )
                yield Window(along, taps, steps[0], shared)
                break


def rows_together(
    schedule: Schedule, found: Compute, around: tuple[Loop, ...], kinds: dict[str, str], chosen: str
) -> str:
    """The loop along which windows overlap too, and of which a pass takes `TOGETHER` iterations; empty: of none.

    That is so where the elements that all results of one iteration read are more than the first-level cache holds.
    """
    windows = list(islice(_windows(found, around, kinds, chosen), 2))
    if len(windows) < 2:
        return ""
    first, second = windows
    if first.step != 1 or second.step != 1 or not first.shared:
        return ""
    rows = second.along.extent.value
    if rows is None or rows % TOGETHER or second.taps.variable == first.taps.variable:
        return ""
    place = around.index(second.along)
    extents = {loop.variable: loop.extent.value for loop in (*around[place + 1 :], second.taps)}
    read = 0
    for load in loads_of(found):
        size = schedule.program.buffers[load.buffer].dtype.itemsize
        for entry in load.index:
            moved = [(abs(entry.coefficient(v)), extents[v]) for v in entry.names() if v in extents]
            if any(extent is None for _, extent in moved):
                return ""
            size *= 1 + sum(step * ((extent or 1) - 1) for step, extent in moved)
        read += size
    return second.along.variable if read > cache_of(schedule.machine, 1).bytes else ""


def results_of(window: Window, machine: Machine | None, rows: int = 1) -> int:
    """How many results one pass has in each row: as registers allow, and so that the last pass is nearly full."""
    registers = machine.vector_registers if machine is not None else 16
    pipes = machine.fma_pipes if isinstance(machine, CpuMachine) else 2
    latency = machine.fma_latency if isinstance(machine, CpuMachine) else 4
    taps = int(window.taps.extent)
    extent = window.along.extent.value
    # the window at hand and the weights of its taps; where that leaves too little, weights come from memory each time
    room = registers - 2 * taps if window.shared else registers - taps - 1
    if room < pipes * latency:
        room = registers - taps - 2
    best, least = 1, float("inf")
    for count in range(2, min(room // rows, MOST_RESULTS, extent or MOST_RESULTS) + 1):
        if extent is None:
            rest, passes = 0, [(count, -(-USUAL_EXTENT // count) + ENDS)]
        else:
            whole, rest = divmod(extent, count)
            passes = [(count, whole), (rest, 1 if rest else 0)]
        cycles = sum(
            many * max(rows * size * taps / pipes, taps * latency * WAITING)
            + many * (taps + rows * size * window.step) / 8
            for size, many in passes
        )
        cycles *= ONE_MORE if rest else 1
        if cycles < least - 1e-9:
            best, least = count, cycles
    return best


def with_window(
    schedule: Schedule,
    found: Compute,
    window: Window,
    free: list[str],
    reductions: list[str],
    outer: str,
    inner: str,
    together: str = "",
) -> Schedule | None:
    """Several results a pass: `free` and `reductions` are the loops in their order, `outer` and `inner` the lanes'.

    `together`: a loop of which each pass has `TOGETHER` iterations.
    """
    along, taps = window.along.variable, window.taps.variable
    count = results_of(window, schedule.machine, TOGETHER if together else 1)
    if together and (window.along.extent.value or 1) % count:
        # a narrower last pass would lose what two rows gain
        together, count = "", results_of(window, schedule.machine)
    if count < 2:
        return None
    block, result = f"{along}.block", f"{along}.result"
    trial = schedule.split(along, count, block, result)
    order = [block if v == along else v for v in free]
    rest = [v for v in reductions if v != taps]
    several = (result,)
    if together:
        rows, row = f"{together}.block", f"{together}.row"
        trial = trial.split(together, TOGETHER, rows, row)
        order = [rows if v == together else v for v in order]
        several = (row, result)
    reordered = trial.attempt(Reorder(*order, *rest, *several, taps, inner))
    if reordered is None:
        return None
    for loop in (*several, taps):
        reordered = reordered.unroll(loop)
    vectorised = reordered.attempt(Vectorize(inner))
    if vectorised is None:
        return None
    done = vectorised.attempt(CacheWrite(found.name, order[-1], f"{found.name}.cells"))
    if done is None:
        return None
    # windows that reach over an end are pieces of their own, so that the others test nothing
    # (with a free extent the generator's two versions of a tile are as fast, and pieces would be versions of versions)
    known = window.along.extent.value is not None
    # (the loops over taps are not cut for two rows of results: where one of them needs no tap is tested in each step)
    cut = done.attempt(Partition(block, BUDGET, "whole" if together else "cut")) if len(order) > 1 and known else None
    # where every window lies in the padding, nothing of the sum would be left
    return cut if cut is not None and any(s.name == found.name for s in statements(cut.program.body)) else done
