"""Paired, alternating samples: what disturbs the machine disturbs both sides of a pair."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.harness.engine import Engine, Worker
from tilework.tuning.measure.pairing import turns
from tilework.tuning.measure.statistics import Interval, difference_interval, median, ratio_interval

ROUNDS = 31
QUICK_ROUNDS = 15
SETTLE_SECONDS = 0.06
"""Pause before a block of an engine: another one's idle workers may still spin (ONNX Runtime's do for some 40 ms)."""


@dataclass(frozen=True)
class Samples:
    """Seconds by name; the i-th samples of all names were taken next to each other."""

    seconds: Mapping[str, Sequence[float]]
    facts: Mapping[str, Any]

    def median(self, name: str) -> float:
        """Return the median of one name, in seconds."""
        return median(self.seconds[name])

    def ratio(self, upper: str, lower: str) -> Interval:
        """Return the median of the paired ratios upper / lower, with its 95 % interval."""
        return ratio_interval(self.seconds[upper], self.seconds[lower])

    def difference(self, upper: str, lower: str) -> Interval:
        """Return the median of the paired differences upper - lower in seconds, with its 95 % interval."""
        return difference_interval(self.seconds[upper], self.seconds[lower])


def alternate(samplers: Mapping[str, Callable[[], float]], rounds: int) -> Samples:
    """Take one sample of each, round after round, each round starting with the next one."""
    names = list(samplers)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for order in turns(len(names), rounds):
        for name in (names[side] for side in order):
            seconds[name].append(samplers[name]())
    return Samples(seconds, {})


def measure(
    engines: Sequence[Engine],
    *,
    rounds: int = ROUNDS,
    block_seconds: float = 0.02,
    check: Callable[[Mapping[str, Worker]], None] | None = None,
    between: Mapping[str, Callable[[], float]] | None = None,
) -> Samples:
    """Build every engine in a process of its own and let blocks of calls alternate.

    `check` sees the workers before the timing (to compare their outputs). `between` adds samplers of this process to
    the rotation, e.g. a yardstick of memory bandwidth. Raises `MissingPeerError` where an engine cannot be built.
    """
    with contextlib.ExitStack() as stack:
        workers = {engine.name: stack.enter_context(Worker(engine)) for engine in engines}
        if check is not None:
            check(workers)
        return measure_workers(workers, rounds=rounds, block_seconds=block_seconds, between=between)


def measure_workers(
    workers: Mapping[str, Worker],
    *,
    rounds: int = ROUNDS,
    block_seconds: float = 0.02,
    between: Mapping[str, Callable[[], float]] | None = None,
) -> Samples:
    """Let blocks of calls of engines that are built already alternate; `between` as in `measure`."""
    calls = {name: worker.calibrate(block_seconds) for name, worker in workers.items()}

    def settled(sample: Callable[[], float]) -> float:
        time.sleep(SETTLE_SECONDS)
        return sample()

    takers = {**{name: worker.sample for name, worker in workers.items()}, **(between or {})}
    samplers = {name: partial(settled, sample) for name, sample in takers.items()}
    start = time.perf_counter()
    samples = alternate(samplers, rounds)
    facts = {
        name: {**worker.facts, "build seconds": worker.build_seconds, "calls a block": calls[name]}
        for name, worker in workers.items()
    }
    return Samples(samples.seconds, {"engines": facts, "timed seconds": time.perf_counter() - start})
