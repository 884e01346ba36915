"""Memory: what the machine has, and what this process may take of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tilework import environment
from tilework.cli.doctor.section import Advice, Section, text_of
from tilework.cli.sizes import in_words
from tilework.errors import UsageError
from tilework.runtime.memory import physical_bytes
from tilework.runtime.processors import control_groups

LITTLE = 512 << 20
"""Free bytes below which a compilation of a larger model may be ended by the system."""
_NO_LIMIT = 1 << 60
"""Groups of the first version say a number like 2**63 for none."""


def memory(root: Path = Path("/")) -> Section:
    """The machine's memory and this process's limits. `root` stands in for the file system's root."""
    total, free, group, resource = physical_bytes(), _free(root), _group_limit(root), _process_limit()
    try:
        ours = environment.read(environment.MEMORY_LIMIT)
    except UsageError:
        ours = None  # told among the variables
    advice: list[Advice] = []
    if group is not None and ours is None and group < total:
        text = f"the control group allows {in_words(group)}, and calls do not know: one that needs more is ended"
        advice.append(Advice(text, f"Set TILEWORK_MEMORY_LIMIT below it, e.g. {max(1, group * 3 // 4 >> 20)}M."))
    if free is not None and free < LITTLE:
        advice.append(Advice(f"{in_words(free)} of memory are free", "End what is not needed, or use a smaller model."))
    facts = {"total": total, "free": free, "group_limit": group, "process_limit": resource, "call_limit": ours}
    parts = [f"{in_words(total)}", *([f"{in_words(free)} free"] if free is not None else [])]
    parts += [f"control group {in_words(group)}"] if group is not None else []
    parts += [f"address space {in_words(resource)}"] if resource is not None else []
    parts += [f"a call at most {in_words(ours)}"] if ours is not None else []
    return Section("memory", facts, (("memory", ", ".join(parts)),), tuple(advice))


def _free(root: Path) -> int | None:
    found = dict(line.split(":", 1) for line in text_of(root / "proc/meminfo").splitlines() if ":" in line)
    try:
        return int(found["MemAvailable"].split()[0]) << 10
    except (KeyError, ValueError, IndexError):
        return None


def _group_limit(root: Path) -> int | None:
    """The least limit of this process's control groups (Linux kernel documentation: memory.max, limit_in_bytes)."""
    return min(_group_limits(root), default=None)


def _group_limits(root: Path) -> Iterator[int]:
    for folder in control_groups("memory", root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = text_of(folder / name)
            if text.isdecimal() and int(text) < _NO_LIMIT:
                yield int(text)


def _process_limit() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return soft if soft != resource.RLIM_INFINITY else None
