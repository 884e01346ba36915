"""How many processors this process may use: affinity, control group quota, environment, explicit setting."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from tilework import environment
from tilework.errors import UsageError

MOST_THREADS = 1024
"""More threads than this are taken for a mistake."""


def thread_count(setting: int | None = None) -> int:
    """The number of threads to run with, the caller's own included.

    `setting` wins, then `TILEWORK_NUM_THREADS`, then `available_processors()`.

    Raises:
        UsageError: 1002 for fewer than 1 or more than `MOST_THREADS`.
    """
    given, where = "threads", "threads"
    wanted = setting
    if wanted is None:
        wanted = environment.read(environment.NUM_THREADS)
        given, where = environment.NUM_THREADS.name, f"environment variable {environment.NUM_THREADS.name}"
    if wanted is None:
        return min(available_processors(), MOST_THREADS)
    if not 1 <= wanted <= MOST_THREADS:
        raise UsageError(
            1002, f"{given}={wanted}: the number of threads lies between 1 and {MOST_THREADS}", where=where
        )
    return wanted


def available_processors(root: Path = Path("/")) -> int:
    """Processors in this process's affinity mask, no more than its control groups' quota rounded up; at least 1.

    `root` stands in for the file system's root.
    """
    try:
        processors = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        processors = os.cpu_count() or 1
    allowed = quota(root)
    return max(1, processors if allowed is None else min(processors, math.ceil(allowed)))


def quota(root: Path = Path("/")) -> float | None:
    """The least quota of this process's control groups and of all groups around them, in processors; None without one.

    Source: Linux kernel documentation, "Control Group v2" (cpu.max) and "CFS Bandwidth Control" (cpu.cfs_quota_us).
    """
    return min((one for folder in control_groups("cpu", root) for one in _quota(folder)), default=None)


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """The folders that this process's control group of a controller, and all groups around it, may have."""
    groups = _read(root / "proc/self/cgroup")
    mounts = root / "sys/fs/cgroup"
    for line in groups.splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0" and not controllers:
            folders = [mounts, mounts / "unified"]
        elif controller in controllers.split(","):
            folders = [mounts / controllers, mounts / controller]
        else:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        # In a container the path may name groups that are not mounted; the mount's root is then its own group.
        for folder in folders:
            for depth in range(len(parts), -1, -1):
                yield folder.joinpath(*parts[:depth])


def _quota(group: Path) -> Iterator[float]:
    time, _, period = _read(group / "cpu.max").strip().partition(" ")
    if not time:
        time, period = _read(group / "cpu.cfs_quota_us").strip(), _read(group / "cpu.cfs_period_us").strip()
    try:
        if int(time) > 0 and int(period) > 0:
            yield int(time) / int(period)
    except ValueError:
        return  # "max", or no quota here


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
