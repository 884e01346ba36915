"""One engine, one process: it builds what is measured once, then runs blocks of calls on command.

The parent writes one JSON object a line to the child's standard input and reads one back from a pipe of its own, so
that whatever a library prints cannot disturb the talk. Engines in separate processes cannot share thread pools,
caches or allocators, and the parent can let their blocks alternate.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from benchmarks.harness.result import MissingPeerError

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Prepared:
    """What the factory of an engine returns, inside the engine's process."""

    call: Callable[[], object]
    """One measured call."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Version, threads and options, for the record."""
    outputs: Callable[[], Mapping[str, np.ndarray[Any, Any]]] | None = None
    """The values of one call, by name, to compare engines with."""
    select: Callable[[str], object] | None = None
    """Makes `call` and `outputs` those of another case, e.g. of another batch size of one compiled model."""
    close: Callable[[], object] | None = None


@dataclass(frozen=True)
class Engine:
    """How to make an engine: a name, `module:function` of its factory, and the arguments of the factory.

    The factory returns `Prepared`; it raises `MissingPeerError`, or `ImportError` for a library that is not installed.
    `processors` pins the process; `environment` is added to the child's variables (a value of None takes one away).
    """

    name: str
    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    environment: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    processors: tuple[int, ...] | None = None
    python: str = sys.executable


class EngineError(Exception):
    """An engine's process failed; the message holds what it said."""


class Worker:
    """A running engine. Used as a context manager; the process ends with it."""

    def __init__(self, engine: Engine, timeout: float = 600.0) -> None:
        """Start the process and build the engine. Raises `MissingPeerError` or `EngineError`; seconds in `timeout`."""
        self.engine = engine
        self.timeout = timeout
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - a file, lest a talkative library fill a pipe
        read_end, write_end = os.pipe()
        variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
        for name, value in engine.environment.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = value
        self._process = subprocess.Popen(
            [engine.python, "-m", "benchmarks.harness.worker", str(write_end)],
            cwd=ROOT,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            pass_fds=[write_end],
            text=True,
        )
        os.close(write_end)
        self._answers = os.fdopen(read_end)
        try:
            answer = self._ask(
                "build",
                factory=engine.factory,
                arguments=dict(engine.arguments),
                processors=list(engine.processors or ()),
            )
        except BaseException:
            self.close()
            raise
        self.facts: dict[str, Any] = answer["facts"]
        self.build_seconds: float = answer["seconds"]
        self._repeats = 1

    def select(self, case: str) -> None:
        """Let the calls from now on be those of another case of what was built."""
        self._ask("select", case=case)

    def calibrate(self, seconds: float) -> int:
        """Settle, and keep, how many calls a block holds so that it lasts at least `seconds`; this warms up, too."""
        repeats = 1
        while True:
            spent = self._ask("block", repeats=repeats)["seconds"]
            if spent >= seconds:
                break
            repeats = max(repeats + 1, min(repeats * 10, int(repeats * 1.3 * seconds / max(spent, 1e-9))))
        self._repeats = repeats
        return repeats

    def sample(self) -> float:
        """Run one block and return its seconds a call."""
        return self._ask("block", repeats=self._repeats)["seconds"] / self._repeats

    def outputs(self, folder: Path) -> dict[str, np.ndarray[Any, Any]]:
        """Return the values of one call by name; the engine writes them to a file in `folder`."""
        path = folder / f"{self.engine.name}.npz"
        names: list[str] = self._ask("outputs", path=str(path))["names"]
        with np.load(path) as stored:
            return {name: stored[f"output{index}"] for index, name in enumerate(names)}

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the end of the answers tells the same, with the reason
            self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self._process.stdin.flush()
        line = self._line()
        if not line:
            self._process.wait(10)
            self._said.seek(0)
            said = self._said.read()[-4000:]
            raise EngineError(f"{self.engine.name} ended ({self._process.returncode}) at {command}:\n{said}")
        answer: dict[str, Any] = json.loads(line)
        if "missing" in answer:
            raise MissingPeerError(answer["missing"], answer["remedy"])
        if "error" in answer:
            raise EngineError(f"{self.engine.name} failed at {command}:\n{answer['error']}")
        return answer

    def _line(self) -> str:
        ready, _, _ = select.select([self._answers], [], [], self.timeout)
        if not ready:
            self._process.kill()
            raise EngineError(f"{self.engine.name} gave no answer in {self.timeout:.0f} s")
        return self._answers.readline()
