"""Windows that slide along a loop: several results a pass, so that what their windows share is loaded once.

A depthwise convolution or a pooling has no operand that all results of a row use, so that tiles of rows and vectors
(`_tiles.py`) have nothing to keep. But neighbouring results along a loop `i` read overlapping elements `s i + d t` for
the taps `t` of their windows. With several `i` and all `t` written out, each vector is loaded once and used by every
tap that it meets, and the weights of the taps stay in registers meanwhile.
"""

from __future__ import annotations

from tilework.fast_dataclass import dataclass
from tilework.loops.program import Compute, Loop, statements
from tilework.machine.cpu import CpuMachine
from tilework.recipes.cpu._access import loads_of
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
                return Window(along, taps, steps[0], shared)
    return None


def results_of(window: Window, machine: Machine | None) -> int:
    """How many results one pass has: as registers allow, and so that the last pass is nearly full."""
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
    for count in range(2, min(room, MOST_RESULTS, extent or MOST_RESULTS) + 1):
        whole, rest = divmod(extent, count) if extent is not None else (60 // count, 0)
        cycles = sum(
            many * max(size * taps / pipes, taps * latency / 2) + many * (taps + size * window.step) / 8
            for size, many in ((count, whole), *([(rest, 1)] if rest else []))
        )
        if extent is None:
            cycles /= whole * count
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
) -> Schedule | None:
    """Several results a pass: `free` and `reductions` are the loops in their order, `outer` and `inner` the lanes'."""
    along, taps = window.along.variable, window.taps.variable
    count = results_of(window, schedule.machine)
    if count < 2:
        return None
    block, result = f"{along}.block", f"{along}.result"
    trial = schedule.split(along, count, block, result)
    order = [block if v == along else v for v in free]
    rest = [v for v in reductions if v != taps]
    reordered = trial.attempt(Reorder(*order, *rest, result, taps, inner))
    if reordered is None:
        return None
    vectorised = reordered.unroll(result).unroll(taps).attempt(Vectorize(inner))
    if vectorised is None:
        return None
    done = vectorised.attempt(CacheWrite(found.name, order[-1], f"{found.name}.cells"))
    if done is None:
        return None
    # windows that reach over an end are pieces of their own, so that the others test nothing
    # (with a free extent the generator's two versions of a tile are as fast, and pieces would be versions of versions)
    known = window.along.extent.value is not None
    cut = done.attempt(Partition(block, BUDGET)) if len(order) > 1 and known else None
    # where every window lies in the padding, nothing of the sum would be left
    return cut if cut is not None and any(s.name == found.name for s in statements(cut.program.body)) else done
