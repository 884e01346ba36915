"""What a worker is asked to measure, as plain text: a loop program, a trace, the name of a machine."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal

from tilework.candidates.candidate import Candidate
from tilework.cost.accesses import bound
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.interpret import bind_symbols
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram
from tilework.loops.text import program_text
from tilework.loops.verify import verify
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine, names
from tilework.numerics import Level, numerics
from tilework.runtime.processors import MOST_THREADS
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
        check_seconds("seconds", self.seconds, 3600)
        if self.threads is not None:
            check_count("threads", self.threads, MOST_THREADS)
        if self.data not in ("integers", "normal"):
            raise UsageError(1760, f"data={self.data!r} must be 'integers' or 'normal'", where="data")
        if not isinstance(self.cold, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(1760, f"cold={self.cold!r} must be True or False", where="cold")
        if self.memory_limit_bytes is not None:
            check_count("memory_limit_bytes", self.memory_limit_bytes)


def check_seconds(name: str, value: object, most: float) -> None:
    """Raise `UsageError` 1760 unless the setting is a time above 0 and below `most` seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < most:
        hint = f"give a number of seconds above 0 and below {most:g}"
        raise UsageError(1760, f"{name}={value!r} is no time to measure for", where=name, hint=hint)


def check_count(name: str, value: object, most: int | None = None) -> None:
    """Raise `UsageError` 1760 unless the setting is a whole number from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or (most is not None and value > most):
        hint = "give a whole number of 1 or more" + (f", at most {most}" if most is not None else "")
        raise UsageError(1760, f"{name}={value!r} makes no sense", where=name, hint=hint)


def _values(program: LoopProgram, symbols: Mapping[str, int]) -> dict[str, int]:
    """The values of the program's own symbols; others may be given, for the other side of a pair."""
    found = bind_symbols(program, {}, symbols)
    return {symbol.name: found[symbol.name] for symbol in program.symbols}


def job_of(subject: Schedule | Candidate, symbols: Mapping[str, int] = _NO_SYMBOLS) -> Job:
    """The job of a schedule or candidate, its program as scheduled.

    Raises `UsageError` 1762 for another kind of value, 1763 for a machine that has no name, `LoopProgramError` 1310 for
    symbols without a value, `VerificationError` for a program that is wrong (in general, or at these sizes, as an index
    out of bounds), and what a candidate's `schedule()` raises.
    """
    streaming: frozenset[str] = frozenset()
    schedule: object = subject
    if isinstance(subject, Candidate):
        streaming, schedule = subject.streaming, subject.schedule()
    if not isinstance(schedule, Schedule):
        raise UsageError(1762, f"a {type(subject).__name__} cannot be measured")
    schedule = schedule.started()
    values = _values(schedule.program, symbols)
    if schedule.origin is not None and values:
        verify(bound(schedule.origin, values))  # at these sizes all accesses must be inside their buffers
    arguments = tuple(a.buffer.name for a in schedule.program.arguments)
    return Job(
        program_text(schedule.program),
        machine=machine_name(schedule),
        numerics=schedule.numerics.level,
        streaming=tuple(sorted(streaming)),
        symbols=values,
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
        symbols=_values(program, symbols),
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
