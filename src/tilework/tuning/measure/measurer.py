"""`measure`, and the `Measurer` behind it: one worker for many jobs, started anew after a crash."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from tilework.candidates.candidate import Candidate
from tilework.errors import ScheduleError, UsageError
from tilework.schedule.schedule import Schedule
from tilework.tuning.measure.job import Data, Job, Settings, check_seconds, job_of, to_json
from tilework.tuning.measure.measurement import Kernel, Measurement, Outcome, Side
from tilework.tuning.measure.process import WorkerProcess

Subject = Schedule | Candidate | Job
LIMIT_SECONDS = 30.0
"""Usual limit for building and timing, of both sides together."""

_NO_SYMBOLS: Mapping[str, int] = {}


def measure(
    subject: Subject,
    *,
    against: Subject | None = None,
    symbols: Mapping[str, int] = _NO_SYMBOLS,
    threads: int | None = None,
    seconds: float = 0.5,
    limit_seconds: float = LIMIT_SECONDS,
    cold: bool = False,
    data: Data = "integers",
    measurer: Measurer | None = None,
) -> Measurement:
    """How long a schedule or candidate takes on this machine, alone or in pairs with another.

    A child process builds it, runs it on prepared buffers (64-byte aligned, filled by `data`) and samples it for
    `seconds`, alternating with `against`. `symbols` gives the value of every symbol of both. `threads`: those of
    parallel loops (None: as many as the process may use). `cold`: calls rotate through so many buffers that none is in
    a cache. After `limit_seconds` the child is ended. `measurer` is a worker to use again; without one, a worker is
    started.

    A kernel that is refused, crashes, hangs or eats the memory is an outcome of the measurement, never an exception.

    Raises:
        UsageError: 1760 settings that make no sense, 1762 what cannot be measured, 1763 a machine without a name.
        LoopProgramError: 1310 a symbol without a value.
        VerificationError: 13xx a program that is wrong in itself, or at these sizes, such as an index out of bounds.
        RunError: 1761 no worker can be started.
    """
    settings = Settings(threads, seconds, cold, data)
    if measurer is not None:
        if not isinstance(measurer, Measurer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(1760, f"a {type(measurer).__name__} measures nothing", where="measurer")
        return measurer.measure(
            subject, against=against, symbols=symbols, settings=settings, limit_seconds=limit_seconds
        )
    with Measurer() as own:
        return own.measure(subject, against=against, symbols=symbols, settings=settings, limit_seconds=limit_seconds)


class Measurer:
    """Measures jobs in one worker process, which starts with the first and is replaced when a job ends it.

    Threads: any may call `measure`; jobs run one after another, so that none disturbs another.
    """

    def __init__(self) -> None:
        self._worker: WorkerProcess | None = None
        self._lock = threading.Lock()
        self._closed = False
        self.started = 0
        """Workers started so far."""

    def measure(
        self,
        subject: Subject,
        *,
        against: Subject | None = None,
        symbols: Mapping[str, int] = _NO_SYMBOLS,
        settings: Settings | None = None,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> Measurement:
        """Measure one job, or two in pairs; see `measure`."""
        check_seconds("limit_seconds", limit_seconds, 1e6)
        jobs: list[Job] = []
        sides: tuple[Side, Side] = ("subject", "against")
        for side, one in zip(sides, (subject, against), strict=True):
            if one is None and side == "against":
                continue
            try:
                jobs.append(one if isinstance(one, Job) else job_of(cast("Schedule | Candidate", one), symbols))
            except ScheduleError as refused:  # a candidate whose schedule does not apply
                return Measurement("refused", reason=refused.message, code=refused.code, side=side)
        _check_symbols(jobs, symbols)
        chosen = settings if settings is not None else Settings()
        message = {"jobs": [to_json(job) for job in jobs], "settings": to_json(chosen)}
        with self._lock:
            found = self._ready().ask(message, limit_seconds)
        return measurement_of(found)

    def _ready(self) -> WorkerProcess:
        if self._closed:
            raise UsageError(1760, "this measurer is closed")
        if self._worker is None or not self._worker.alive:
            if self._worker is not None:
                self._worker.close()
            self._worker = WorkerProcess()
            self.started += 1
        return self._worker

    def close(self) -> None:
        """End the worker. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.close()
                self._worker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_symbols(jobs: Sequence[Job], symbols: Mapping[str, int]) -> None:
    """Raise `UsageError` 1760 for a value that no job has a symbol for."""
    known = dict.fromkeys(name for job in jobs for name in job.symbols)
    unknown = [name for name in symbols if name not in known]
    if unknown:
        hint = f"the symbols are: {', '.join(known) or 'none'}"
        raise UsageError(1760, f"there is no symbol {', '.join(map(repr, unknown))}", where="symbols", hint=hint)


def measurement_of(found: Mapping[str, Any]) -> Measurement:
    """A worker's answer as a value."""
    outcome: Outcome = found["outcome"]
    if outcome != "measured":
        side: Side = "against" if found.get("side") == 1 else "subject"
        return Measurement(outcome, reason=found["reason"], code=found["code"], side=side)
    seconds: list[list[float]] = found["seconds"]
    kernels = [Kernel(**facts) for facts in found["kernels"]]
    paired = len(seconds) > 1
    return Measurement(
        "measured",
        tuple(seconds[0]),
        tuple(seconds[1]) if paired else (),
        kernel=kernels[0],
        against=kernels[1] if paired else None,
        largest_difference=found["difference"],
        sets=found["sets"],
        disturbed=tuple(found["disturbed"]),
    )
