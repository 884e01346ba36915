"""The caches that recipes plan for."""

from __future__ import annotations

from tilework.machine.cpu import Cache, CpuMachine
from tilework.schedule.primitive import Machine

FAR = 16
"""Second-level caches that an operand fills from which on it comes from memory."""
_USUAL = {1: Cache(1, 32 << 10, 8), 2: Cache(2, 512 << 10, 8)}


def cache_of(machine: Machine | None, level: int) -> Cache:
    """The machine's cache of level 1 or 2; where it is not known, one of a common size."""
    known = machine.cache(level) if isinstance(machine, CpuMachine) else None
    return known if known is not None else _USUAL[level]


def page_bytes(machine: Machine | None) -> int:
    """Bytes of the machine's smallest page."""
    return machine.page_bytes if isinstance(machine, CpuMachine) else 4096


def comes_from_memory(machine: Machine | None, size: int) -> bool:
    """Whether so many bytes are too many for a thread's share of the last cache."""
    return size > FAR * cache_of(machine, 2).bytes
