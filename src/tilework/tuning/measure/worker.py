"""The child process that measures: answers lines of JSON until its parent goes away.

Every job is answered by lines `{"phase": ..., "side": ...}` and then one with `outcome`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilework.errors import OutOfMemoryError, RunError, TileworkError
from tilework.tuning.measure.bench import Bench
from tilework.tuning.measure.job import Settings, job_from_json, settings_from_json
from tilework.tuning.measure.serving import serve

_USUAL_ROOM = 8 << 30
"""Bytes a job may ask for where the operating system does not say how many there are."""


def room_bytes(settings: Settings) -> int:
    """Bytes that a job may ask for."""
    if settings.memory_limit_bytes is not None:
        return settings.memory_limit_bytes
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(found["MemAvailable"].split()[0]) * 1024 * 4 // 5
    except (OSError, KeyError, ValueError, IndexError):
        return _USUAL_ROOM


def limit_memory(room: int) -> None:
    """Let the process map so many bytes more than it has; beyond, it gets no memory instead of the whole machine's."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = pages * resource.getpagesize() + room
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
    except (ImportError, OSError, ValueError):
        return  # an operating system without such limits


def answer(bench: Bench, message: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Do what a message asks; whatever goes wrong is an answer too."""
    where = {"phase": "read", "side": 0}

    def phase(name: str, side: int) -> None:
        where.update(phase=name, side=side)
        say(dict(where))

    try:
        settings = settings_from_json(message["settings"])
        room = room_bytes(settings)
        limit_memory(room)
        jobs = [job_from_json(fields) for fields in message["jobs"]]
        return {"outcome": "measured", **bench.measure(jobs, settings, room, phase)}
    except (MemoryError, OutOfMemoryError) as error:
        return {"outcome": "out_of_memory", "reason": str(error) or "no memory was left", "code": 1710, **where}
    except RunError as error:
        return {"outcome": "faulted", "reason": _sentence(error), "code": error.code, **where}
    except TileworkError as error:
        return {"outcome": "refused", "reason": _sentence(error), "code": error.code, **where}
    except Exception:  # noqa: BLE001 - the parent is told, whatever it is
        return {"outcome": "failed", "reason": traceback.format_exc(limit=-4).strip(), "code": None, **where}


def _sentence(error: TileworkError) -> str:
    return error.message + (f" (at {error.where})" if error.where else "")


def main() -> None:
    """Answer until the parent closes the pipe."""
    bench = Bench()
    serve(lambda message, say: answer(bench, message, say))
