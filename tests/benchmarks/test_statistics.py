"""Medians, intervals and ratios, against brute force and against the coverage they promise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.harness.statistics import (
    geometric_mean,
    median,
    median_interval,
    paired_differences,
    paired_ratios,
)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 31])
def test_median_is_numpys(count: int) -> None:
    samples = np.random.default_rng(count).standard_normal(count)
    assert median(list(samples)) == np.median(samples)


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median([])
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


@pytest.mark.parametrize("count", range(1, 6))
def test_too_few_samples_have_no_ends(count: int) -> None:
    interval = median_interval([1.0] * count)
    assert (interval.low, interval.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("count", range(6, 17))
def test_the_ends_are_the_narrowest_that_are_sure_enough(count: int) -> None:
    interval = median_interval([float(value) for value in range(count)])
    rank = int(interval.low) + 1
    assert interval.high == count - rank

    def sureness(k: int) -> float:
        """Count the ways of falling below or above the median that the k-th smallest and largest enclose."""
        ways = sum(k <= sum(below) <= count - k for below in itertools.product((0, 1), repeat=count))
        return ways / 2**count

    assert interval.confidence == pytest.approx(sureness(rank))
    assert sureness(rank) >= 0.95
    assert sureness(rank + 1) < 0.95


def test_the_interval_covers_the_true_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(5)
    draws = random.exponential(size=(4000, 31))
    true = math.log(2)
    covered = sum(interval.low <= true <= interval.high for interval in map(median_interval, draws.tolist()))
    promised = median_interval([0.0] * 31).confidence
    assert 0.95 <= promised < 0.98
    assert covered / 4000 == pytest.approx(promised, abs=4 * math.sqrt(promised * (1 - promised) / 4000))


def test_pairs() -> None:
    assert paired_ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]
    assert paired_differences([2.0, 9.0], [1.0, 3.0]) == [1.0, 6.0]
    for refuse in (paired_ratios, paired_differences):
        with pytest.raises(ValueError, match="pairs"):
            refuse([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="positive"):
        paired_ratios([1.0], [0.0])


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0, 2.0]) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="no values"):
        geometric_mean([])
