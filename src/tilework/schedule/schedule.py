"""`Schedule`: an immutable value of program, machine, numerics and trace. Every primitive returns a new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from tilework.errors import ScheduleError, UsageError
from tilework.fast_dataclass import dataclass
from tilework.loops.program import LoopProgram
from tilework.loops.verify import verify
from tilework.machine.finder import machine as machine_named
from tilework.machine.finder import names as machine_names
from tilework.numerics import Level, Numerics
from tilework.numerics import numerics as numerics_named
from tilework.schedule.outside import Outside
from tilework.schedule.primitive import Machine, Primitive, Setting
from tilework.schedule.trace import Trace, primitive_named, primitive_names
from tilework.schedule.verdict import IllegalSchedule, Verdict

DEFAULT = numerics_named("default")
"""The numerics contract of a schedule that names none."""


@dataclass(frozen=True)
class Handle:
    """A loop or statement as it was after `step` steps; `Schedule.at` says what it has become."""

    name: str
    step: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """How a computation runs. `schedule.split("i", 8)` checks and applies a primitive, and returns the new schedule.

    `numerics` may be a word (`"strict"`, `"default"`, `"fast"`), `machine` a name (`"host"`, `"x86-64-v3"`) or nothing:
    the steps then suit any machine. The first step verifies the program.

    Raises `IllegalSchedule` when a step is illegal or cannot be decided, `ScheduleError` 1501 for unknown names,
    `VerificationError` for a program that is wrong in itself, such as one that reads outside a buffer.
    """

    program: LoopProgram
    machine: Machine | None
    numerics: Numerics
    trace: Trace
    forwards: tuple[dict[str, tuple[str, ...]], ...]
    """Per step, where the names it changed went."""
    outside: Outside | None
    """What is around, where the program is one nest of a larger one (`schedule/nests.py`)."""
    origin: LoopProgram | None
    """The program before the first step, once it is known to be sound; see `started`."""

    def __init__(
        self,
        program: LoopProgram,
        machine: Machine | str | None = None,
        numerics: Numerics | Level = DEFAULT,
        trace: Trace = (),
        forwards: tuple[dict[str, tuple[str, ...]], ...] = (),
        outside: Outside | None = None,
        origin: LoopProgram | None = None,
    ) -> None:
        """A schedule of a program without steps (the other arguments are for those who know the program is sound).

        Raises:
            ScheduleError: 1523 for what is no loop program.
            UsageError: 1002 for numerics or a machine that are none, 1620 for an unknown machine.
        """
        setting: dict[str, object] = {
            "program": _program(program),
            "machine": _machine(machine),
            "numerics": _numerics(numerics),
            "trace": trace,
            "forwards": forwards,
            "outside": outside,
            "origin": origin,
        }
        for name, value in setting.items():
            object.__setattr__(self, name, value)

    def started(self) -> Schedule:
        """The same schedule, its program verified: the steps, and whoever runs the code, rely on that.

        Raises `VerificationError` with every fault of the program (an index out of bounds, a name without meaning).
        """
        return self if self.origin is not None else self._verified

    @cached_property
    def _verified(self) -> Schedule:
        verify(self.program)
        return replace(self, origin=self.program)

    @cached_property
    def setting(self) -> Setting:
        """What steps are checked against."""
        return Setting(self.program, self.numerics, self.machine)

    def check(self, step: Primitive) -> Verdict:
        """The verdict on a step, as data."""
        if self.origin is None:
            return self.started().check(step)
        if not _is_step(step):
            raise ScheduleError(
                1505, f"{step!r} is no step of a schedule",
                hint='call the primitive, as in schedule.split("i", 8), or give a primitive, as in Split("i", 8)',
            )  # fmt: skip
        if self.outside is not None:
            self.outside.allow(step)
        return step.check(self.setting)

    def apply(self, step: Primitive) -> Schedule:
        """Check a step and apply it."""
        if self.origin is None:
            return self.started().apply(step)
        verdict = self.check(step)
        if not verdict.legal:
            raise IllegalSchedule(str(step), verdict, self.program)
        return self._applied(step)

    def attempt(self, step: Primitive) -> Schedule | None:
        """As `apply`, but None where the step is not legal."""
        if self.origin is None:
            return self.started().attempt(step)
        return self._applied(step) if self.check(step).legal else None

    def _applied(self, step: Primitive) -> Schedule:
        done = step.apply(self.setting)
        if self.outside is not None:
            self.outside.allow_names(done.program)
        return replace(
            self, program=done.program, trace=(*self.trace, step), forwards=(*self.forwards, dict(done.forwards))
        )

    def __getattr__(self, name: str) -> Callable[..., Schedule]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            kind = primitive_named(name)
        except UsageError:
            there = ", ".join(primitive_names())
            raise AttributeError(f"a schedule has no {name!r}; primitives: {there}") from None

        def step(*arguments: Any, **named: Any) -> Schedule:
            try:
                primitive = kind(*arguments, **named)
            except TypeError as error:
                raise ScheduleError(1501, f"{name}: {error}") from None
            return self.apply(primitive)

        return step

    def handle(self, name: str) -> Handle:
        """A handle on a loop or statement of the present program."""
        if name not in self.setting.names():
            self.setting.statement(name)
        return Handle(name, len(self.trace))

    def at(self, handle: Handle) -> tuple[str, ...]:
        """The names that a handle stands for now (several after a split, none when the node is gone)."""
        if not _is_handle(handle):
            raise ScheduleError(1505, f"{handle!r} is no handle", hint='make one first: handle = schedule.handle("i")')
        names: tuple[str, ...] = (handle.name,)
        for forward in self.forwards[handle.step :]:
            names = tuple(new for name in names for new in forward.get(name, (name,)))
        return names

    def replay(self, trace: Trace) -> Schedule:
        """Apply every step of a trace; the error of the first that does not apply names its position."""
        if not _is_sequence(trace):
            raise ScheduleError(1505, f"{trace!r} is no trace", hint="give the trace of a schedule: other.trace")
        schedule = self
        for position, step in enumerate(trace):
            try:
                schedule = schedule.apply(step)
            except ScheduleError as error:
                raise ScheduleError(
                    1504, f"step {position} does not apply: {error.message}", hint=error.hint
                ) from error
        return schedule


# People may pass what no type checker saw: the annotations are not believed where a value enters.
def _program(value: object) -> LoopProgram:
    if isinstance(value, LoopProgram):
        return value
    hint = "give a loop program; loop_program(computation(...)) makes one of a computation (see tilework.compute)"
    raise ScheduleError(1523, f"a {type(value).__name__} is no loop program", hint=hint)


def _numerics(value: Numerics | str) -> Numerics:
    if isinstance(value, Numerics):
        return value
    return numerics_named(value)


def _machine(value: object) -> Machine | None:
    if isinstance(value, str):
        return machine_named(value)
    if value is None or (hasattr(value, "vector_bits") and hasattr(value, "vector_registers")):
        return cast("Machine | None", value)
    hint = f"give a name ({', '.join(machine_names())}), a machine, or nothing"
    raise UsageError(1002, f"machine={value!r} makes no sense", where="machine", hint=hint)


def _is_step(value: object) -> bool:
    return isinstance(value, Primitive)


def _is_handle(value: object) -> bool:
    return isinstance(value, Handle)


def _is_sequence(value: object) -> bool:
    return isinstance(value, (tuple, list))
