"""`compare_engines`: a model run by several engines in turn, each in a process of its own.

The times of one round are taken next to each other and only their ratios are judged, so that what disturbs the machine
disturbs both sides of a pair.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilework.errors import FileFormatError
from tilework.fast_dataclass import dataclass
from tilework.peers.arrays import Array, save
from tilework.peers.check import Checked
from tilework.peers.engine import OURS, Task
from tilework.peers.outputs import compare
from tilework.peers.process import EngineFailedError, EngineProcess, Facts
from tilework.tuning.measure.pairing import turns
from tilework.tuning.measure.statistics import Interval, median_interval, ratio_interval

ROUNDS, LEAST_ROUNDS = 31, 7
"""Rounds where nobody says how many: the first, or fewer where they would take longer than `BUDGET_SECONDS`."""
BUDGET_SECONDS = 60.0
BLOCK_SECONDS = 0.02
SETTLE_SECONDS = 0.06
"""Pause before a block of another engine: the last one's idle threads may still spin (ONNX Runtime's do for 40 ms)."""

Tell = Callable[[str], None]


def _silent(text: str) -> None:
    """Who wants to hear nothing."""


@dataclass(frozen=True)
class Ran:
    """One engine: what it told when it opened the model, its samples (seconds a call), and the peak of its memory."""

    name: str
    facts: Facts
    seconds: tuple[float, ...]
    peak_bytes: int | None

    @property
    def interval(self) -> Interval:
        """The median with its 95 % interval, in seconds."""
        return median_interval(self.seconds)


@dataclass(frozen=True)
class Comparison:
    """Ours first, then the peers. The i-th samples of all were taken next to each other."""

    engines: tuple[Ran, ...]
    checked: tuple[Checked, ...]
    """Our outputs beside each peer's, also of those that are left out."""

    @property
    def ours(self) -> Ran:
        return self.engines[0]

    def ratio(self, peer: Ran) -> Interval:
        """The median of our times over a peer's, with its 95 % interval; below 1 we are faster."""
        return ratio_interval(self.ours.seconds, peer.seconds)


def compare_engines(
    task: Task,
    peers: Sequence[str],
    *,
    rounds: int | None = None,
    files: Mapping[str, Path] | None = None,
    tell: Tell = _silent,
) -> Comparison:
    """Let Tilework and the peers of these names open the model, compare their outputs, and time them.

    `files` are those that peers open, by name, where it is not the task's model. `tell` hears what is being done. A
    peer that fails is left out and named. Raises what Tilework raises for the model or its inputs, `RunError` 1766
    where its process dies, 1761 where no process can be started.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tilework-")))
        arrays = folder / "inputs.npz"
        try:
            described = save(arrays, task.inputs)
        except OSError as problem:
            raise FileFormatError(1901, f"{arrays} cannot be written: {problem.strerror}", where=str(folder)) from None
        running: list[EngineProcess] = []
        skipped: dict[str, str] = {}
        results: dict[str, dict[str, Array]] = {}
        tasks = {name: replace(task, model=str(file), package=False) for name, file in (files or {}).items()}
        for name in (OURS, *peers):
            tell(f"{name} opens the model")
            one: EngineProcess | None = None
            try:
                one = stack.enter_context(EngineProcess(name, tasks.get(name, task), arrays, described))
                results[name] = one.outputs(folder / f"{name}.npz")
                one.calibrate(BLOCK_SECONDS)
            except EngineFailedError as error:
                skipped[name] = error.reason
                if one is not None:
                    one.close()
                continue
            running.append(one)
        samples = _alternate(running, rounds, skipped, tell)
        found = tuple(
            Ran(one.name, one.facts, tuple(samples[one.name]), _peak(one)) for one in running if one.name in samples
        )
    checked = [
        Checked(one, skipped=skipped[one]) if one in skipped else Checked(one, compare(results[OURS], results[one]))
        for one in peers
    ]
    return Comparison(found, tuple(checked))


def _alternate(
    running: Sequence[EngineProcess], rounds: int | None, skipped: dict[str, str], tell: Tell
) -> dict[str, list[float]]:
    """Samples by engine, round after round; a peer that fails meanwhile is skipped."""
    settle = SETTLE_SECONDS if len(running) > 1 else 0.0
    if rounds is None:
        one_round = sum(one.block_seconds + settle for one in running)
        rounds = max(LEAST_ROUNDS, min(ROUNDS, int(BUDGET_SECONDS / max(one_round, 1e-9))))
    samples: dict[str, list[float]] = {one.name: [] for one in running}
    for number, order in enumerate(turns(len(running), rounds)):
        tell(f"round {number + 1} of {rounds}")
        for one in (running[side] for side in order):
            if one.name not in samples:
                continue
            time.sleep(settle)
            try:
                samples[one.name].append(one.sample())
            except EngineFailedError as error:
                skipped[one.name] = error.reason
                del samples[one.name]
    return samples


def _peak(one: EngineProcess) -> int | None:
    try:
        return one.peak_bytes()
    except EngineFailedError:  # it has no more to say, and its times stand
        return None
