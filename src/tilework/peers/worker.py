"""The child process in which an engine lives: opens a model, runs blocks of calls, writes outputs to files."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from tilework.errors import TileworkError
from tilework.peers.engine import Opened, Task, engine_named
from tilework.tuning.measure.serving import Say, serve

LONG_CALL = 0.25
"""Seconds from which a call needs no other before it that wakes threads and fills caches."""


class Resident:
    """One engine with one model."""

    def __init__(self) -> None:
        self._opened: Opened | None = None

    def open(self, message: dict[str, Any], say: Say) -> dict[str, Any]:
        """Import the library, open the model, and call it once; each is timed by itself."""
        from tilework.peers.arrays import load

        engine = engine_named(message["engine"])
        arrays = load(Path(message["arrays"]), message["described"])
        task = Task(
            message["model"], arrays, message["threads"], {n: tuple(s) for n, s in message["shapes"].items()},
            message["numerics"], message["machine"], message["package"],
        )  # fmt: skip
        say({"phase": "import", "side": 0})
        start = perf_counter()
        version = engine.load(task)
        imported = perf_counter()
        before = peak_bytes()
        say({"phase": "open", "side": 0})
        begun = perf_counter()
        self._opened = engine.open(task)
        opened = perf_counter()
        say({"phase": "run", "side": 0})
        self._opened.call()
        called = perf_counter()
        return {
            "version": version,
            "import_seconds": imported - start,
            "open_seconds": opened - begun,
            "first_seconds": called - opened,
            "imported_bytes": before,
            "facts": dict(self._opened.facts()),
        }

    def outputs(self, message: dict[str, Any], say: Say) -> dict[str, Any]:  # noqa: ARG002
        """Write the outputs of one call to a file."""
        from tilework.peers.arrays import flattened, save

        opened = self._ready()
        values = opened.call()
        named = zip(opened.names(), values, strict=True)
        found = dict(pair for name, value in named for pair in flattened(name, value))
        return {"described": save(Path(message["path"]), found)}

    def calibrate(self, message: dict[str, Any], say: Say) -> dict[str, Any]:  # noqa: ARG002
        """How many calls last as long as a block should, and the seconds of one; this warms up, too."""
        wanted, calls = float(message["seconds"]), 1
        while True:
            spent = self._block(calls)
            if spent >= wanted:
                return {"calls": calls, "seconds": spent / calls}
            calls = max(calls + 1, min(calls * 10, int(calls * 1.3 * wanted / max(spent, 1e-9))))

    def sample(self, message: dict[str, Any], say: Say) -> dict[str, Any]:  # noqa: ARG002
        """Seconds a call over one block of calls."""
        calls = int(message["calls"])
        if message["expected"] < LONG_CALL:
            self._ready().call()  # wakes threads, and brings back what other engines put out of the caches
        return {"seconds": self._block(calls) / calls}

    def memory(self, message: dict[str, Any], say: Say) -> dict[str, Any]:  # noqa: ARG002
        """The most memory that the process ever had."""
        return {"peak_bytes": peak_bytes()}

    def _block(self, calls: int) -> float:
        call: Callable[[], object] = self._ready().call
        gc.disable()
        try:
            start = perf_counter()
            for _ in range(calls):
                call()
            return perf_counter() - start
        finally:
            gc.enable()

    def _ready(self) -> Opened:
        if self._opened is None:
            raise RuntimeError("no model was opened")
        return self._opened

    def answer(self, message: dict[str, Any], say: Say) -> dict[str, Any]:
        """Do what a message asks; whatever goes wrong is an answer too."""
        steps = {
            "open": self.open, "outputs": self.outputs, "calibrate": self.calibrate, "sample": self.sample,
            "memory": self.memory,
        }  # fmt: skip
        try:
            return {"outcome": "done", **steps[message["do"]](message, say)}
        except ModuleNotFoundError as error:
            if message["do"] == "open" and error.name == engine_named(message["engine"]).module:
                return {"outcome": "missing", "reason": f"{error.name} is not installed", "code": None}
            return _failed(error)
        except TileworkError as error:
            told = {"code": error.code, "message": error.message, "where": error.where, "hint": error.hint}
            return {"outcome": "refused", "kind": type(error).__name__, "reason": str(error), **told}
        except Exception as error:  # noqa: BLE001 - the parent is told, whatever it is
            return _failed(error)


def _failed(error: BaseException) -> dict[str, Any]:
    words = " ".join(str(error).split())
    reason = f"{type(error).__name__}: {words[:400]}".rstrip(": ")
    return {"outcome": "failed", "reason": reason, "code": None, "trace": traceback.format_exc()}


def peak_bytes() -> int | None:
    """The most resident memory that this process ever had; None where the operating system does not say.

    Not `getrusage`, whose maximum is inherited from the process that started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def main() -> None:
    """Answer until the parent closes the pipe."""
    serve(Resident().answer)
