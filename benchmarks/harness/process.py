"""The life of a process, timed: from the moment it is started to its end, or to the first thing it says."""

from __future__ import annotations

import os
import tempfile
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


def first_word_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command to its end and return the seconds from its start to the first byte on its standard output.

    Raises `RuntimeError`, with what it wrote to standard error, where it says nothing or does not exit with 0.
    """
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as said:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, write_end, 1),
            (os.POSIX_SPAWN_DUP2, said.fileno(), 2),
        ]
        try:
            start = perf_counter()
            child = os.posix_spawn(command[0], list(command), dict(environment), file_actions=actions)
            os.close(write_end)
            first = os.read(read_end, 1)
            seconds = perf_counter() - start
            while os.read(read_end, 65536):
                pass
        finally:
            os.close(read_end)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != 0 or not first:
            said.seek(0)
            problem = said.read().decode(errors="replace").strip()[-2000:]
            raise RuntimeError(f"{' '.join(command)} exited with {os.waitstatus_to_exitcode(status)}:\n{problem}")
    return seconds
