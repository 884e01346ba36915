"""The life of a whole process, timed: from the moment it is started to its end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import perf_counter


def process_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command to its end, its output thrown away, and return the seconds it took.

    Raises `RuntimeError` where it does not exit with 0.
    """
    quiet = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1)]
    start = perf_counter()
    child = os.posix_spawn(command[0], list(command), dict(environment), file_actions=quiet)
    _, status = os.waitpid(child, 0)
    seconds = perf_counter() - start
    if os.waitstatus_to_exitcode(status) != 0:
        raise RuntimeError(f"{' '.join(command)} exited with {os.waitstatus_to_exitcode(status)}")
    return seconds
