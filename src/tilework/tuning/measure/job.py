"""What a worker is asked to measure, as plain text: a loop program, a trace, the name of a machine."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tilework.candidates.candidate import Candidate
from tilework.errors import UsageError
from tilework.loops.interpret import bind_symbols
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram
from tilework.loops.text import program_text
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine, names
from tilework.numerics import Level, numerics
from tilework.schedule.primitives.transform_layout import argument_layouts
from tilework.schedule.schedule import Schedule
from tilework.schedule.trace import Trace, trace_from_json, trace_to_json

Data = Literal["integers", "normal"]
"""What floating arguments hold: small whole numbers, or samples of the standard normal distribution."""

_NO_SYMBOLS: Mapping[str, int] = {}


@dataclass(frozen=True)
class Job:
    """A kernel to be built: the program's text, the trace that is replayed on it first, and where it is to run."""

    program: str
    trace: str = "[]"
    machine: str = "host"
    numerics: Level = "default"
    streaming: tuple[str, ...] = ()
    symbols: Mapping[str, int] = field(default_factory=dict[str, int])
    packed: bool = False
    """Whether an argument is in a layout of its own, so that its data are not those of other schedules."""

    def schedule(self) -> Schedule:
        """The schedule it stands for. Raises `ParseError` and `ScheduleError` for texts that are none."""
        start = Schedule(parse_program(self.program), machine(self.machine), numerics(self.numerics))
        return start.replay(trace_from_json(self.trace))


@dataclass(frozen=True)
class Settings:
    """How a worker measures.

    `seconds`: time for samples, all sides together. `cold`: buffers rotate so that no call finds its own in a cache.
    `memory_limit_bytes`: what a job may ask for beyond what the worker has.
    """

    threads: int | None = None
    seconds: float = 0.5
    cold: bool = False
    data: Data = "integers"
    seed: int = 0
    memory_limit_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.seconds < 3600:
            raise UsageError(1760, f"seconds={self.seconds} is no time to measure for", where="seconds")
        if self.threads is not None and self.threads < 1:
            raise UsageError(1760, f"threads={self.threads} must be 1 or more", where="threads")
        if self.data not in ("integers", "normal"):
            raise UsageError(1760, f"data={self.data!r} must be 'integers' or 'normal'", where="data")
        if self.memory_limit_bytes is not None and self.memory_limit_bytes < 1:
            raise UsageError(1760, "memory_limit_bytes must be 1 or more", where="memory_limit_bytes")


def job_of(subject: Schedule | Candidate, symbols: Mapping[str, int] = _NO_SYMBOLS) -> Job:
    """The job of a schedule or candidate, its program as scheduled.

    Raises `UsageError` 1762 for another kind of value, 1763 for a machine that has no name, `LoopProgramError` 1310 for
    symbols without a value; and what a candidate's `schedule()` raises.
    """
    streaming: frozenset[str] = frozenset()
    schedule: object = subject
    if isinstance(subject, Candidate):
        streaming, schedule = subject.streaming, subject.schedule()
    if not isinstance(schedule, Schedule):
        raise UsageError(1762, f"a {type(subject).__name__} cannot be measured")
    arguments = tuple(a.buffer.name for a in schedule.program.arguments)
    return Job(
        program_text(schedule.program),
        machine=machine_name(schedule),
        numerics=schedule.numerics.level,
        streaming=tuple(sorted(streaming)),
        symbols=bind_symbols(schedule.program, {}, symbols),
        packed=bool(argument_layouts(schedule.trace, arguments)),
    )


def traced_job(
    program: LoopProgram,
    trace: Trace,
    *,
    machine: str = "host",
    numerics: Level = "default",
    symbols: Mapping[str, int] = _NO_SYMBOLS,
) -> Job:
    """The job of a program and a trace that the worker replays: the parent never applies the schedule."""
    arguments = tuple(a.buffer.name for a in program.arguments)
    return Job(
        program_text(program),
        trace_to_json(trace),
        machine,
        numerics,
        symbols=bind_symbols(program, {}, symbols),
        packed=bool(argument_layouts(trace, arguments)),
    )


def machine_name(schedule: Schedule) -> str:
    """The name by which a worker finds the schedule's machine; raises `UsageError` 1763 where there is none."""
    found = schedule.machine
    if found is None:
        return "host"
    if isinstance(found, CpuMachine) and found.name in names() and machine(found.name) == found:
        return found.name
    hint = f"use {', '.join(names())}"
    raise UsageError(1763, "the schedule's machine is none that a worker finds by name", hint=hint)


def to_json(value: Job | Settings) -> dict[str, Any]:
    """A job or settings as what JSON can hold."""
    return json.loads(json.dumps(dataclasses.asdict(value)))


def job_from_json(fields: Mapping[str, Any]) -> Job:
    """Read what `to_json` made of a job."""
    changed: dict[str, Any] = {**fields, "streaming": tuple(fields["streaming"]), "symbols": dict(fields["symbols"])}
    return Job(**changed)


def settings_from_json(fields: Mapping[str, Any]) -> Settings:
    """Read what `to_json` made of settings."""
    return Settings(**fields)
