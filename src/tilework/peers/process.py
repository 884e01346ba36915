"""The parent's side of an engine: a process that it opens a model in, and asks for outputs and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tilework import errors
from tilework.errors import RunError, TileworkError
from tilework.fast_dataclass import dataclass
from tilework.peers.arrays import Array, load
from tilework.peers.engine import OURS, Task
from tilework.tuning.measure.process import WorkerProcess

MODULE = "tilework.peers.worker"
PATIENCE = 900.0
"""Seconds that an engine may take to answer anything."""


class EngineFailedError(Exception):
    """A peer cannot do what it is asked; `missing` where it is not installed."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.missing = missing


class OurFaultError(Exception):
    """An exception that nobody foresaw, in Tilework's own process; its notes hold that process's trace."""


@dataclass(frozen=True)
class Facts:
    """What is known of an engine once its model is open: seconds to import the library, to open the model (compile it,
    make a session), and of the first call; `imported_bytes` is the peak of its memory before it opened the model.
    """

    version: str
    import_seconds: float
    open_seconds: float
    first_seconds: float
    imported_bytes: int | None
    facts: Mapping[str, Any]


class EngineProcess:
    """An engine in a process of its own, with a model that is open. A context manager, whose end is the process's.

    Every method raises `EngineFailedError` where a peer fails, and Tilework's own error where Tilework does;
    `OurFaultError` for one that nobody foresaw.
    """

    def __init__(self, name: str, task: Task, arrays: Path, described: Sequence[Sequence[str]]) -> None:
        """Start the process and open the model. The inputs are in the file `arrays`, as `arrays.save` wrote it."""
        self.name = name
        self._process = WorkerProcess(MODULE)
        self._calls = 1
        self._expected = 0.0
        try:
            found = self._ask(
                "open", engine=name, model=task.model, arrays=str(arrays), described=list(described),
                threads=task.threads, shapes={n: list(s) for n, s in task.shapes.items()}, numerics=task.numerics,
                machine=task.machine, package=task.package,
            )  # fmt: skip
        except BaseException:
            self._process.close()
            raise
        self.facts = Facts(**found)

    def outputs(self, path: Path) -> dict[str, Array]:
        """The outputs of one call by name; `path` is a file that they may be written to."""
        found = self._ask("outputs", path=str(path))
        return load(path, found["described"])

    def calibrate(self, seconds: float) -> float:
        """Settle how many calls a sample holds so that it lasts so long; returns the seconds of one call."""
        found = self._ask("calibrate", seconds=seconds)
        self._calls, self._expected = found["calls"], found["seconds"]
        return self._expected

    @property
    def block_seconds(self) -> float:
        """About how long a sample takes."""
        return self._calls * self._expected

    def sample(self) -> float:
        """Seconds a call, over one block of calls."""
        return self._ask("sample", calls=self._calls, expected=self._expected)["seconds"]

    def peak_bytes(self) -> int | None:
        """The most resident memory that its process ever had."""
        return self._ask("memory")["peak_bytes"]

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        found = self._process.ask({"do": do, **arguments}, PATIENCE)
        outcome = found.pop("outcome")
        if outcome == "done":
            return found
        if self.name != OURS:
            raise EngineFailedError(_line(found["reason"]), missing=outcome == "missing")
        if outcome == "refused":
            raise _told(found)
        if outcome == "out_of_memory":
            raise errors.OutOfMemoryError(1710, f"it was ended for want of memory: {found['reason']}")
        if outcome == "failed":  # a fault of ours, as it would be in this process
            fault = OurFaultError(found["reason"])
            fault.add_note(found["trace"])
            raise fault
        raise RunError(1766, f"Tilework's own process failed: {found['reason']}")


def _told(found: Mapping[str, Any]) -> TileworkError:
    """The error that a child told of."""
    kind = getattr(errors, found["kind"], RunError)
    if not (isinstance(kind, type) and issubclass(kind, TileworkError)) or kind is errors.VerificationError:
        kind = TileworkError
    return kind(found["code"], found["message"], where=found["where"], hint=found["hint"])


def _line(reason: str) -> str:
    return " ".join(reason.split())[:400]
