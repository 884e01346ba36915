"""How many rows and vectors a tile of sums has: from registers, and from what whole and partial tiles cost."""

from __future__ import annotations

from tilework.machine.cpu import CpuMachine
from tilework.schedule.primitive import Machine

VECTORS = 4
"""Most vectors beside each other in a tile of sums."""
LARGEST_ROWS = 14
"""Most rows of a tile of sums."""
FULL = 1.03
"""Cost of a tile that leaves no register for an element on its way."""
LOADS = 1.75
"""Loads a cycle: two are issued, and some meet the same bank of the first cache."""
LONG = 5040
"""What stands for an extent that is not known: all small sizes divide it."""


def tile_sizes(
    machine: Machine | None, rows: int | None, pieces: int | None, *, powers: bool = False
) -> tuple[int, int]:
    """Rows and vectors of a tile whose rows use the same vectors, for so many rows and vectors in all (None: any).

    The sums, the vectors kept and the one element at hand have to fit in registers. Among the sizes that do, the one
    under which all tiles together take the fewest cycles, those at the ends, which are smaller, included; of equals the
    one with fewest loads. With `powers`, rows are a power of two.
    """
    registers = machine.vector_registers if machine is not None else 16
    best, least = (1, 1), (float("inf"), 0.0)
    for vectors in range(1, min(VECTORS, pieces or VECTORS) + 1):
        for tall in range(1, min(LARGEST_ROWS, rows or LARGEST_ROWS) + 1):
            used = tall * vectors + vectors + 1
            if used > registers:
                break
            if powers and tall & (tall - 1):
                continue
            cycles = cycles_of(machine, rows, pieces, (tall, vectors))
            loads = (tall + vectors) / (tall * vectors)
            if (round(cycles, 6), loads) < least:
                best, least = (tall, vectors), (round(cycles, 6), loads)
    return best


def cycles_of(machine: Machine | None, rows: int | None, pieces: int | None, size: tuple[int, int]) -> float:
    """Cycles that all tiles of a size together take for each step of the sum."""
    registers = machine.vector_registers if machine is not None else 16
    pipes = machine.fma_pipes if isinstance(machine, CpuMachine) else 2
    latency = machine.fma_latency if isinstance(machine, CpuMachine) else 4
    tall, vectors = size
    cycles = sum(
        count * many * _cycles(high, wide, pipes, latency)
        for high, count in _parts(rows, tall)
        for wide, many in _parts(pieces, vectors)
    )
    return cycles * (FULL if tall * vectors + vectors + 1 == registers else 1.0)


def _parts(extent: int | None, size: int) -> list[tuple[int, int]]:
    """Whole parts and the one at the end, each with how many there are."""
    whole, rest = divmod(extent if extent is not None else LONG, size)
    return [(size, whole), *([(rest, 1)] if rest else [])]


def _cycles(rows: int, vectors: int, pipes: int, latency: int) -> float:
    """Cycles of one step of a tile: its multiply-adds, its loads, or the wait for the sums before."""
    arithmetic = rows * vectors / pipes
    loads = (rows + vectors) / LOADS
    # results come a little later than they could, and so do loads
    return max(arithmetic, loads, 1.25 * latency) + 0.1 * loads
