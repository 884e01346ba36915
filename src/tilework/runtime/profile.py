"""`Profile`: how long each step of a call takes, beside what a call as a whole takes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass, field
from tilework.plan.explanation import Explanation, RegionExplanation
from tilework.plan.plan import Plan
from tilework.plan.steps import CopyStep
from tilework.runtime.ports import StepKind, StepTime
from tilework.runtime.settings import whole_number

if TYPE_CHECKING:
    from tilework.runtime.callable_model import CallableModel

_NAME = 40
"""Characters of a step's name in text."""


@dataclass(frozen=True)
class StepProfile:
    """A step over some calls. One that holds a region has the region's name.

    `seconds` is the median over the calls of what all its runs in a call take together; it runs `runs` times in a call
    (several times inside a loop). `flops` and `bytes` are of a call too: floating-point operations, and bytes across
    the region's boundary; None where they are not known. `share` is that of the time of all steps.
    """

    name: str
    origin: str
    kind: StepKind
    operators: tuple[str, ...]
    seconds: float
    runs: int
    flops: int | None
    bytes: int | None
    share: float

    @property
    def flops_per_second(self) -> float | None:
        """Operations a second, where they are known."""
        return self.flops / self.seconds if self.flops is not None and self.seconds > 0 else None

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes a second, where they are known."""
        return self.bytes / self.seconds if self.bytes is not None and self.seconds > 0 else None


@dataclass(frozen=True)
class TimedCall:
    """One call: when it began on the clock of `time.perf_counter`, what it took in seconds, and its `steps` (None: it
    was run as a whole).
    """

    start: float
    seconds: float
    steps: tuple[StepTime, ...] | None = None


@dataclass(frozen=True)
class Profile:
    """How long the steps of a call take, at the sizes that the call had.

    `steps` are in the order in which they first ran. `timeline` has every call that was timed, those as a whole and
    those step by step in turn. `outputs` are those of the last call, `plans` and `explanation` those of the code that
    served the calls.
    """

    name: str
    machine: str
    threads: int
    sizes: Mapping[str, int]
    steps: tuple[StepProfile, ...]
    timeline: tuple[TimedCall, ...] = field(repr=False)
    outputs: tuple[Any, ...] = field(repr=False, compare=False)
    plans: tuple[Plan, ...] = field(repr=False, compare=False)
    explanation: Explanation = field(repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """The time of all steps of a call: the sum of their medians."""
        return sum(step.seconds for step in self.steps)

    @cached_property
    def call_seconds(self) -> float:
        """The median time of a call as a whole."""
        return _median([call.seconds for call in self.timeline if call.steps is None])

    @property
    def calls(self) -> int:
        """How many calls were run step by step."""
        return sum(1 for call in self.timeline if call.steps is not None)

    @property
    def slowest(self) -> tuple[StepProfile, ...]:
        """The steps, those that take longest first."""
        return tuple(sorted(self.steps, key=lambda step: -step.seconds))

    @property
    def by_step(self) -> Mapping[str, float]:
        """Seconds by the name of the step, which is that of its region in `explain()`; the longest first."""
        found: dict[str, float] = {}
        for step in self.slowest:
            found[step.name] = found.get(step.name, 0.0) + step.seconds
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def __str__(self) -> str:
        threads = f"{self.threads} {'thread' if self.threads == 1 else 'threads'}"
        steps = f"{len(self.steps)} {'step' if len(self.steps) == 1 else 'steps'}, {self.seconds * 1e3:.4g} ms"
        whole = f"a call as a whole {self.call_seconds * 1e3:.4g} ms"
        lines = [f"{steps}; {whole} (medians of {self.calls}; {self.name} on {self.machine}, {threads})"]
        for step in self.slowest:
            name = step.name if len(step.name) <= _NAME else step.name[: _NAME - 1] + "…"
            rates = ((step.flops_per_second, "GFLOP/s"), (step.bytes_per_second, "GB/s"))
            told = "".join(f"{rate / 1e9:10.3g} {unit}" if rate else " " * (11 + len(unit)) for rate, unit in rates)
            line = f"  {step.share:6.1%} {step.seconds * 1e3:10.4g} ms{told}  {name}: {', '.join(step.operators)}"
            lines.append(line.rstrip(": "))
        return "\n".join(lines)


def profiled(model: CallableModel, arrays: Sequence[Any], named: Mapping[str, Any], calls: object) -> Profile:
    """The profile of calls with these arguments. Raises `UsageError` 1002 for `calls`, and as a call."""
    count = whole_number("calls", calls, "calls")
    last = model.stepped(*arrays, **named)
    served = last.served_by
    timeline: list[TimedCall] = []
    for _ in range(count):
        start = time.perf_counter()
        served(*arrays, **named)
        timeline.append(TimedCall(start, time.perf_counter() - start))
        start = time.perf_counter()
        last = served.stepped(*arrays, **named)
        timeline.append(TimedCall(start, time.perf_counter() - start, last.times))
    explanation = served.explain()
    stepped = [call.steps for call in timeline if call.steps is not None]
    sizes: dict[str, int] = {}
    for step in stepped[-1]:
        sizes.update(step.sizes)
    return Profile(
        explanation.name, explanation.machine, served.threads, sizes, _steps(stepped, explanation, served.plans),
        tuple(timeline), last.outputs, served.plans, explanation,
    )  # fmt: skip


_Key = tuple[str, str, StepKind]


def _steps(
    calls: Sequence[tuple[StepTime, ...]], explanation: Explanation, plans: Sequence[Plan]
) -> tuple[StepProfile, ...]:
    """What each step takes; one that ran in some of the calls only took no time in the others."""
    samples: dict[_Key, list[float]] = {}
    for position, times in enumerate(calls):
        for step in times:
            samples.setdefault(_key(step), [0.0] * len(calls))[position] += step.seconds
    seconds = {key: _median(found) for key, found in samples.items()}
    whole = sum(seconds.values())
    last = calls[-1]
    runs = Counter(map(_key, last))
    counts = _counts(last, explanation, plans)
    operators = {region.name: region.operators for region in explanation.regions}
    return tuple(
        StepProfile(
            key[0], key[1], key[2], operators.get(key[0], ()), taken, runs[key],
            *counts.get(key, (None, None)), taken / whole if whole else 0.0,
        )
        for key, taken in seconds.items()
    )  # fmt: skip


def _key(step: StepTime) -> _Key:
    return step.name, step.origin, step.kind


def _counts(
    times: Sequence[StepTime], explanation: Explanation, plans: Sequence[Plan]
) -> dict[_Key, tuple[int | None, int | None]]:
    """Operations and bytes of all runs of each step in a call, at the sizes that each run saw."""
    known: dict[str, tuple[Dim | None, Dim | None]] = dict(_copies(plans))
    known |= {region.name: _work(region) for region in explanation.regions}
    found: dict[_Key, tuple[int | None, int | None]] = {}
    for step in times:
        key = _key(step)
        here = tuple(evaluated(count, step.sizes) for count in known.get(step.name, (None, None)))
        before = found.get(key, (0, 0))
        found[key] = _sum(before[0], here[0]), _sum(before[1], here[1])
    return found


def _work(region: RegionExplanation) -> tuple[Dim | None, Dim | None]:
    return region.flops, region.bytes


def _copies(plans: Sequence[Plan]) -> Iterator[tuple[str, tuple[Dim, Dim]]]:
    """What copies read and write."""
    for plan in plans:
        for _, step in plan.walk():
            if isinstance(step, CopyStep):
                yield step.name, (Dim(), plan.buffer_named[step.source].bytes * 2)


def evaluated(count: Dim | None, sizes: Mapping[str, int]) -> int | None:
    """The count at these sizes; None where it needs others, or what data decide."""
    if count is None or any(name not in sizes for name in count.names()) or count.loads():
        return None
    return int(count.evaluate(sizes))


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _median(samples: Sequence[float]) -> float:
    from statistics import median  # takes longer to import than the rest of this module

    return median(samples)
