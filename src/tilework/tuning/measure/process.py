"""The parent's side of a worker process: it asks, waits no longer than it wants to, and outlives whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any

from tilework.errors import RunError

START_SECONDS = 60.0
"""A worker that has not said it is ready by then never will."""
_MEMORY_WORDS = ("bad_alloc", "out of memory", "Cannot allocate memory", "MemoryError")
KERNELS = "tilework.tuning.measure.worker"
"""The module whose `main` measures kernels."""


class WorkerProcess:
    """A fresh interpreter that measures what `module` serves (see `serving`). Never forked: the parent may have threads
    and a JIT.

    Threads: one at a time may call `ask`.
    """

    def __init__(self, module: str = KERNELS) -> None:
        """Start the process and wait until it is ready. Raises `RunError` 1761 where it cannot be."""
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        answers, answers_end = os.pipe()
        life, self._life = os.pipe()
        program = f"import sys; sys.path.insert(0, sys.argv.pop()); from {module} import main; main()"
        root = str(Path(__file__).resolve().parents[3])
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program, str(answers_end), str(life), root],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=[answers_end, life],
                start_new_session=True,
            )
        except OSError as problem:
            for descriptor in (answers, self._life):
                os.close(descriptor)
            self._said.close()
            raise RunError(1761, f"no worker process could be started: {problem}") from problem
        finally:
            os.close(answers_end)
            os.close(life)
        self._answers = answers
        self._unread = b""
        try:
            ready = self._line(monotonic() + START_SECONDS)
        except BaseException:  # Ctrl-C while it starts
            self.kill()
            raise
        if ready is None or not ready.get("ready"):
            said = self.last_words()
            self.close()
            raise RunError(1761, f"a worker process did not start: {said or 'it said nothing'}")

    @property
    def alive(self) -> bool:
        """Whether it can be asked something."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def ask(self, message: dict[str, Any], limit_seconds: float) -> dict[str, Any]:
        """Its answer to a message: always one, with `outcome`. A worker that crashed or hung is gone afterwards, and so
        is one whose answer nobody waited for (Ctrl-C).
        """
        try:
            return self._ask(message, limit_seconds)
        except BaseException:
            self.kill()
            raise

    def _ask(self, message: dict[str, Any], limit_seconds: float) -> dict[str, Any]:
        deadline = monotonic() + limit_seconds
        where: dict[str, Any] = {"phase": "read", "side": 0}
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return {**self._end_of(where), **where}
        while True:
            line = self._line(deadline)
            if line is None and self._silent:
                self.kill()
                reason = f"it was not done after {limit_seconds:g} s (at: {where['phase']})"
                return {"outcome": "timed_out", "reason": reason, "code": None, **where}
            if line is None:
                return {**self._end_of(where), **where}
            if "outcome" in line:
                return line
            where = line

    def _end_of(self, where: dict[str, Any]) -> dict[str, Any]:
        """What the end of the process means."""
        try:
            status = self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        said = self.last_words()
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        reason = f"the worker ended with {name} (at: {where['phase']})" + (f": {said}" if said else "")
        memory = status == -signal.SIGKILL or any(word in said for word in _MEMORY_WORDS)
        self.close()
        return {"outcome": "out_of_memory" if memory else "crashed", "reason": reason, "code": None}

    def last_words(self) -> str:
        """The end of what it wrote to its standard error, on one line."""
        if self._said.closed:
            return ""
        self._said.seek(0)
        return " ".join(self._said.read()[-2000:].split())[-400:]

    def _line(self, deadline: float) -> dict[str, Any] | None:
        """The next line; None at the end of its output, or (with `_silent` set) at the deadline."""
        self._silent = False
        while b"\n" not in self._unread:
            left = deadline - monotonic()
            ready = select.select([self._answers], [], [], max(0.0, left))[0] if left > 0 else []
            if not ready:
                self._silent = True
                return None
            part = os.read(self._answers, 1 << 16)
            if not part:
                return None
            self._unread += part
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def kill(self) -> None:
        """End the process and everything it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.close()

    def close(self) -> None:
        """End the process. Closing twice is allowed."""
        if self._said.closed:
            return
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        os.close(self._life)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._answers)
        self._said.close()
