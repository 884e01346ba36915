"""`Measurement`: what came of measuring a schedule, times or the reason why there are none."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from tilework.fast_dataclass import dataclass
from tilework.tuning.measure.statistics import Interval, median, median_interval, ratio_interval

Outcome = Literal["measured", "refused", "faulted", "crashed", "timed_out", "out_of_memory", "failed"]
"""`refused`: no kernel can be built (`code` says why). `faulted`: the kernel reported a bad access. `crashed`: the
worker died by a signal. `timed_out`, `out_of_memory`: past the limits. `failed`: the worker had an error of its own."""

ENOUGH = 21
"""Undisturbed rounds that are enough to leave out the others (which are kept among the raw samples)."""

Side = Literal["subject", "against"]


@dataclass(frozen=True)
class Kernel:
    """Facts of a kernel that was built: seconds from text to loaded code, bytes of its object, calls a sample."""

    compile_seconds: float
    code_bytes: int
    calls: int = 0


@dataclass(frozen=True)
class Measurement:
    """Seconds a call, sample by sample; the i-th samples of both sides were taken next to each other.

    `side` is whose outcome it is where it is not `measured`. `largest_difference` is between the results of both sides
    on the same data (None where their arguments differ in form): 0 where they agree in every bit or are both NaN.
    """

    outcome: Outcome
    seconds: tuple[float, ...] = ()
    against_seconds: tuple[float, ...] = ()
    reason: str = ""
    code: int | None = None
    side: Side = "subject"
    kernel: Kernel | None = None
    against: Kernel | None = None
    largest_difference: float | None = None
    sets: int = 1
    """Sets of buffers that the calls rotated through."""
    disturbed: tuple[bool, ...] = ()
    """For each round of samples, whether another process took a processor away meanwhile."""

    @property
    def ok(self) -> bool:
        """Whether there are times."""
        return self.outcome == "measured"

    @cached_property
    def median(self) -> float:
        """The median of the samples, in seconds. Raises `UsageError` 1760 where there are none.

        Medians and intervals are over the rounds that nothing disturbed, where those are enough.
        """
        return median(self._calm(self.seconds))

    @cached_property
    def interval(self) -> Interval:
        """The median with its 95 % interval, in seconds."""
        return median_interval(self._calm(self.seconds))

    @cached_property
    def ratio(self) -> Interval:
        """The median of the paired ratios of this to `against`, with its 95 % interval; below 1 is faster."""
        return ratio_interval(self._calm(self.seconds), self._calm(self.against_seconds))

    def _calm(self, samples: tuple[float, ...]) -> tuple[float, ...]:
        """The samples of undisturbed rounds; all of them where fewer than `ENOUGH` rounds were undisturbed."""
        if len(samples) != len(self.disturbed) or self.disturbed.count(False) < ENOUGH:
            return samples
        return tuple(value for value, bad in zip(samples, self.disturbed, strict=True) if not bad)

    def __str__(self) -> str:
        if not self.ok:
            whose = "" if self.side == "subject" else " (what it was measured against)"
            code = f" [TW{self.code}]" if self.code is not None else ""
            return f"{self.outcome.replace('_', ' ')}{whose}{code}: {self.reason}"
        text = f"{_time(self.median)} a call"
        if len(self.seconds) > 5:
            text += f" ({_time(self.interval.low)} to {_time(self.interval.high)}, {len(self.seconds)} samples)"
        if self.against_seconds:
            found = self.ratio
            text += f", {found.middle:.4f} ({found.low:.4f} to {found.high:.4f}) of the other's time"
        return text


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
