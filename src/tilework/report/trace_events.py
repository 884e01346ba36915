"""Calls and the stages of a compilation as trace events, which Perfetto and `chrome://tracing` draw.

Source: "Trace Event Format" of the Chromium project, JSON object form: complete events (`X`), and metadata (`M`) that
name processes and threads. Times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from tilework.fast_dataclass import dataclass, field
from tilework.runtime.ports import StepTime
from tilework.runtime.profile import Profile, evaluated
from tilework.version import __version__

Event: TypeAlias = "dict[str, Any]"

_COMPILE, _CALLS = 1, 2
"""Numbers of the two processes that are shown."""
_MICROSECONDS = 1e6


@dataclass
class _Threads:
    """Numbers of the threads that are shown, by process and name, in the order in which they come up."""

    numbers: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])

    def __call__(self, process: int, name: str) -> int:
        return self.numbers.setdefault((process, name), len(self.numbers) + 1)


def trace_text(profile: Profile, title: str = "") -> str:
    """The trace of a profile's calls as a JSON document; its text is ASCII, whatever the names of a model are."""
    return json.dumps(trace(profile, title), allow_nan=False, separators=(",", ":")) + "\n"


def trace(profile: Profile, title: str = "") -> dict[str, Any]:
    """The trace of a profile's calls: the stages of the compilation one after another, then every call that was timed,
    as a whole or step by step (a thread for each queue of the plan). `title` is what the model is called.

    Events are in the order of their times, and every duration is real; between the compilation and the first call there
    is a gap of no meaning, and stages that overlapped are drawn one after another.
    """
    threads = _Threads()
    events = sorted(_events(profile, threads), key=lambda event: (event["ts"], -event["dur"]))
    names = {_COMPILE: "compilation", _CALLS: f"calls of {title or profile.name}"}
    shown = sorted({process for process, _ in threads.numbers})
    metadata = [
        *(_metadata("process_name", process, 0, names[process]) for process in shown),
        *(_metadata("thread_name", process, number, name) for (process, name), number in threads.numbers.items()),
    ]
    facts = {
        "tilework": __version__, "model": title or profile.name, "machine": profile.machine,
        "threads": profile.threads, "sizes": dict(profile.sizes), "numerics": profile.explanation.numerics,
    }  # fmt: skip
    return {"traceEvents": [*metadata, *events], "displayTimeUnit": "ms", "otherData": facts}


def _metadata(kind: str, process: int, thread: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "ts": 0, "pid": process, "tid": thread, "args": {"name": name}}


def _complete(name: str, process: int, thread: int, ts: float, dur: float, args: Mapping[str, Any]) -> Event:
    return {
        "name": name, "cat": "tilework", "ph": "X", "ts": round(ts, 3), "dur": round(max(dur, 0.0), 3), "pid": process,
        "tid": thread, "args": dict(args),
    }  # fmt: skip


def _events(profile: Profile, threads: _Threads) -> Iterator[Event]:
    clock = 0.0
    for stage, milliseconds in profile.explanation.compile_milliseconds:
        yield _complete(stage, _COMPILE, threads(_COMPILE, "stages"), clock, milliseconds * 1e3, {})
        clock += milliseconds * 1e3
    if not profile.timeline:
        return
    shift = clock - profile.timeline[0].start * _MICROSECONDS
    regions = {region.name: region for region in profile.explanation.regions}
    for number, call in enumerate(profile.timeline):
        whole = call.steps is None
        kind = "whole calls" if whole else "calls step by step"
        ts = call.start * _MICROSECONDS + shift
        words = {"call": number, "run": "as a whole" if whole else "step by step"}
        yield _complete(f"call {number}", _CALLS, threads(_CALLS, kind), ts, call.seconds * _MICROSECONDS, words)
        for step in call.steps or ():
            args = {"kind": step.kind, "origin": step.origin}
            region = regions.get(step.name)
            if region is not None:
                args |= {"operators": ", ".join(region.operators), "algorithm": region.algorithm}
                args |= _counts(step, evaluated(region.flops, step.sizes), evaluated(region.bytes, step.sizes))
            at = step.start * _MICROSECONDS + shift
            thread = threads(_CALLS, f"queue {step.queue}")
            yield _complete(step.name, _CALLS, thread, at, step.seconds * _MICROSECONDS, args)


def _counts(step: StepTime, flops: int | None, moved: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, count in (("flops", flops), ("bytes", moved)):
        if count is not None:
            found[name] = count
            if step.seconds > 0:
                found[f"G{name} a second"] = round(count / step.seconds / 1e9, 3)
    return found
