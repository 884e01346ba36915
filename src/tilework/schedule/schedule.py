"""`Schedule`: an immutable value of program, machine, numerics and trace. Every primitive returns a new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tilework.errors import ScheduleError, UsageError
from tilework.loops.program import LoopProgram
from tilework.numerics import Numerics, numerics
from tilework.schedule.outside import Outside
from tilework.schedule.primitive import Machine, Primitive, Setting
from tilework.schedule.trace import Trace, primitive_named, primitive_names
from tilework.schedule.verdict import IllegalSchedule, Verdict

DEFAULT = numerics("default")
"""The numerics contract of a schedule that names none."""


@dataclass(frozen=True)
class Handle:
    """A loop or statement as it was after `step` steps; `Schedule.at` says what it has become."""

    name: str
    step: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """How a computation runs. `schedule.split("i", 8)` checks and applies a primitive, and returns the new schedule.

    Raises `IllegalSchedule` when a step is illegal or cannot be decided, `ScheduleError` 1501 for unknown names.
    """

    program: LoopProgram
    machine: Machine | None = None
    numerics: Numerics = DEFAULT
    trace: Trace = ()
    forwards: tuple[dict[str, tuple[str, ...]], ...] = ()
    """Per step, where the names it changed went."""
    outside: Outside | None = None
    """What is around, where the program is one nest of a larger one (`schedule/nests.py`)."""

    @cached_property
    def setting(self) -> Setting:
        """What steps are checked against."""
        return Setting(self.program, self.numerics, self.machine)

    def check(self, step: Primitive) -> Verdict:
        """The verdict on a step, as data."""
        return self._check(step, self.setting)

    def _check(self, step: Primitive, setting: Setting) -> Verdict:
        if self.outside is not None:
            self.outside.allow(step)
        return step.check(setting)

    def apply(self, step: Primitive) -> Schedule:
        """Check a step and apply it."""
        setting = self.setting
        verdict = self._check(step, setting)
        if not verdict.legal:
            raise IllegalSchedule(str(step), verdict, self.program)
        return self._applied(step, setting)

    def attempt(self, step: Primitive) -> Schedule | None:
        """As `apply`, but None where the step is not legal."""
        setting = self.setting
        return self._applied(step, setting) if self._check(step, setting).legal else None

    def _applied(self, step: Primitive, setting: Setting) -> Schedule:
        done = step.apply(setting)
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
        names: tuple[str, ...] = (handle.name,)
        for forward in self.forwards[handle.step :]:
            names = tuple(new for name in names for new in forward.get(name, (name,)))
        return names

    def replay(self, trace: Trace) -> Schedule:
        """Apply every step of a trace; the error of the first that does not apply names its position."""
        schedule = self
        for position, step in enumerate(trace):
            try:
                schedule = schedule.apply(step)
            except ScheduleError as error:
                raise ScheduleError(
                    1504, f"step {position} does not apply: {error.message}", hint=error.hint
                ) from error
        return schedule
