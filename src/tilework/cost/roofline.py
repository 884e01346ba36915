"""The roofline: the least time that work and traffic take on a machine, and what bounds it.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009; one roof for each level of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from tilework.cost.counts import Work
from tilework.cost.traffic import Traffic
from tilework.fast_dataclass import dataclass
from tilework.machine.cpu import CpuMachine

Bound = Literal["compute", "L1", "L2", "L3", "memory", "nothing"]

ASSUMED_HERTZ = 3e9
"""Cycles a second where nothing was measured."""
_ASSUMED_BYTES = {"L2": 32.0, "L3": 12.0, "memory": 5.0}
"""Bytes a cycle that one thread gets from a level, on common server cores; the first level gives two vectors."""
TRANSCENDENTAL_FLOPS = 20
"""Operations that a polynomial is taken for."""


@dataclass(frozen=True)
class Roofline:
    """What `threads` threads can do: operations a second on 32-bit floats, bytes a second from each level.

    `origin`: `assumed` from the machine's data at a usual clock, good for orders of magnitude; or `probed` here.
    """

    flops_per_second: float
    bytes_per_second: Mapping[str, float]
    origin: Literal["assumed", "probed"]
    threads: int = 1

    def peak(self, bits: int) -> float:
        """Operations a second on floats of so many bits (16-bit ones are computed in 32)."""
        return self.flops_per_second * 32 / max(bits, 32)

    def bandwidth(self, source: str) -> float:
        """Bytes a second from a level, or from the next farther one that is known."""
        order = ("L1", "L2", "L3", "L4", "memory")
        start = order.index(source) if source in order else 0
        for name in order[start:]:
            if name in self.bytes_per_second:
                return self.bytes_per_second[name]
        return min(self.bytes_per_second.values())

    def attainable(self, flops: int, moved: Traffic, bits: int) -> float:
        """The most operations a second while so many bytes come from that level."""
        if not moved.bytes:
            return self.peak(bits)
        return min(self.peak(bits), flops / moved.bytes * self.bandwidth(moved.source))


@dataclass(frozen=True)
class Prediction:
    """The least seconds, what takes them, and the seconds that each resource needs."""

    seconds: float
    bound: Bound
    parts: Mapping[str, float]


def assumed(machine: CpuMachine, threads: int = 1) -> Roofline:
    """A roofline from a machine's data alone: multiply-adds that start in a cycle, usual bytes a cycle, a usual clock.

    Caches and arithmetic grow with the threads, memory up to four times.
    """
    vector_bytes = machine.vector_bits / 8
    rates = {"L1": 2 * vector_bytes, **_ASSUMED_BYTES}
    known = {f"L{cache.level}" for cache in machine.caches} | {"memory"}
    scaled = {
        name: rate * ASSUMED_HERTZ * (threads if name != "memory" else min(threads, 4))
        for name, rate in rates.items()
        if name in known
    }
    per_cycle = 2 * machine.fma_pipes * machine.lanes(32)
    return Roofline(per_cycle * ASSUMED_HERTZ * threads, scaled, "assumed", threads)


def predict(work: Work, moved: Iterable[Traffic], roofline: Roofline, bits: int = 32) -> Prediction:
    """The least time of some work and traffic: no resource does more than it can, and all work at the same time."""
    flops = work.flops + TRANSCENDENTAL_FLOPS * work.transcendentals + work.integer_operations
    parts: dict[str, float] = {"compute": flops / roofline.peak(bits)}
    for one in moved:
        parts[one.source] = parts.get(one.source, 0.0) + one.bytes / roofline.bandwidth(one.source)
    bound, seconds = max(parts.items(), key=lambda entry: entry[1])
    return Prediction(seconds, _named(bound) if seconds > 0 else "nothing", parts)


def predict_boundary(flops: int, moved: int, machine: CpuMachine, roofline: Roofline, bits: int = 32) -> Prediction:
    """As `predict`, where only operations and the bytes across a boundary are known: those come from the smallest cache
    that holds them all.
    """
    source = next((f"L{cache.level}" for cache in machine.caches if moved <= cache.bytes), "memory")
    return predict(Work(flops), (Traffic(source, {"boundary": moved}, {}),), roofline, bits)


def _named(name: str) -> Bound:
    for known in ("compute", "L1", "L2", "L3", "memory"):
        if name == known:
            return known
    return "memory"


def scaled(roofline: Roofline, threads: int) -> Roofline:
    """A roofline of one thread as that of several that share nothing but memory (at most four times as fast)."""
    rates = {n: r * (threads if n != "memory" else min(threads, 4)) for n, r in roofline.bytes_per_second.items()}
    return replace(
        roofline, flops_per_second=roofline.flops_per_second * threads, bytes_per_second=rates, threads=threads
    )
