"""Every error of Tilework: one tree of exceptions, each with a numbered code of the table in `tilework.error_codes`.

An error says what is wrong, where (the user's own operator, dimension, line or argument) and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilework.error_codes import CODES
from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class Fault:
    """One fault that a verifier found: its code, where it is, and what is wrong there."""

    code: int
    where: str
    message: str

    def __str__(self) -> str:
        return f"[TW{self.code}] {self.where}: {self.message}"


class TileworkError(Exception):
    """Base of every error that Tilework raises on purpose.

    `code` is a key of `CODES`; `where` names the user's own operator, dimension, line or argument;
    `hint` says what to do (the code's general remedy where none is given).
    """

    def __init__(self, code: int, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(code, message, where, hint)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint or (CODES[code].remedy if code in CODES else "")

    def __str__(self) -> str:
        lines = [f"[TW{self.code}] {self.message}"]
        if self.where:
            lines.append(f"  at: {self.where}")
        if self.hint:
            lines.append(f"  do: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.code, self.message, self.where, self.hint, dict(self.__dict__)))


def _rebuild(
    kind: type[TileworkError], code: int, message: str, where: str, hint: str, state: dict[str, object]
) -> TileworkError:
    error = kind.__new__(kind)
    TileworkError.__init__(error, code, message, where=where, hint=hint)
    error.__dict__.update(state)
    return error


class UsageError(TileworkError):
    """A wrong name, option or setting."""


class MissingPackageError(TileworkError):
    """An optional dependency is not installed."""


class FrontendError(TileworkError):
    """A model that cannot be read or that uses something unsupported; `faults` lists every one found.

    `decided_by`: names of the inputs whose values, if they were known, might leave nothing to say.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        where: str = "",
        hint: str = "",
        faults: Iterable[Fault] = (),
        decided_by: Iterable[str] = (),
    ) -> None:
        super().__init__(code, message, where=where, hint=hint)
        self.faults = tuple(faults)
        self.decided_by = tuple(decided_by)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  - {fault}" for fault in self.faults)])


class VerificationError(TileworkError):
    """A program broke the rules of its form; `faults` holds every fault found, not just the first."""

    def __init__(self, subject: str, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        self.subject = subject
        text = f"{subject} has {len(self.faults)} fault{'s' if len(self.faults) != 1 else ''}"
        code = self.faults[0].code if self.faults else 1001
        super().__init__(code, "\n  - ".join([text, *map(str, self.faults)]))


class GraphError(TileworkError):
    """A graph operation cannot be done."""


class ParseError(TileworkError):
    """A text form of a program cannot be read; `where` gives line and column."""


class LoopProgramError(TileworkError):
    """A loop program or a computation in index notation is wrong."""


class PlanError(TileworkError):
    """A plan is wrong, or memory cannot be planned."""


class ScheduleError(TileworkError):
    """A schedule step cannot be done."""


class CodegenError(TileworkError):
    """A loop program cannot be turned into code for this machine."""


class CallError(TileworkError, ValueError):
    """An executable was called with arguments it cannot take."""


class OutOfMemoryError(CallError, MemoryError):
    """A call asks for more memory than its limit, or than the machine can give."""


class CallTimeoutError(TileworkError, TimeoutError):
    """A pending call was not done in the time that its result was waited for."""


class RunError(TileworkError, RuntimeError):
    """Compiled code reported a fault while it ran; the call's outputs are dropped."""


class FileFormatError(TileworkError):
    """A file is damaged, foreign, or cannot be written."""
