"""Medians and their intervals, free of any distribution.

The interval of a median is between two order statistics: the number of samples below the true median is binomial
with p = 1/2, so the k-th smallest and k-th largest of n samples enclose it with a probability known exactly
(David and Nagaraja, Order Statistics, 3rd ed., section 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median with the two ends that enclose the true one, and the probability that they do."""

    low: float
    middle: float
    high: float
    confidence: float
    count: int

    def scaled(self, factor: float) -> Interval:
        """The same in other units: everything times a positive factor."""
        return Interval(self.low * factor, self.middle * factor, self.high * factor, self.confidence, self.count)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def median(samples: Sequence[float]) -> float:
    """The median. Raises `UsageError` 1760 for no samples."""
    if not samples:
        raise UsageError(1760, "no samples were taken, so they have no median")
    ordered = sorted(samples)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def median_interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The median and the narrowest pair of order statistics that encloses the true one surely enough.

    With fewer than six samples no pair reaches 95 %: the ends are then minus and plus infinity, so that no claim can
    hold by too few samples. Raises `UsageError` 1760 for none.
    """
    ordered = sorted(samples)
    count = len(ordered)
    middle = median(ordered)
    outside = 0.0  # the probability that the true median is below the k-th smallest
    best: tuple[int, float] | None = None
    for rank in range(1, count // 2 + 1):
        outside += math.comb(count, rank - 1) / 2**count
        if 1 - 2 * outside < confidence:
            break
        best = (rank, 1 - 2 * outside)
    if best is None:
        return Interval(-math.inf, middle, math.inf, 1.0, count)
    rank, sure = best
    return Interval(ordered[rank - 1], middle, ordered[count - rank], sure, count)


def ratio_interval(upper: Sequence[float], lower: Sequence[float]) -> Interval:
    """The median of the paired ratios upper[i] / lower[i]. Raises `UsageError` 1760 where there are no pairs."""
    if len(upper) != len(lower) or not all(value > 0 for value in lower):
        raise UsageError(1760, f"{len(upper)} and {len(lower)} samples are not pairs of positive times")
    return median_interval([a / b for a, b in zip(upper, lower, strict=True)])


def difference_interval(upper: Sequence[float], lower: Sequence[float]) -> Interval:
    """The median of the paired differences upper[i] - lower[i]. Raises `UsageError` 1760 where there are no pairs."""
    if len(upper) != len(lower):
        raise UsageError(1760, f"{len(upper)} and {len(lower)} samples are not pairs")
    return median_interval([a - b for a, b in zip(upper, lower, strict=True)])
