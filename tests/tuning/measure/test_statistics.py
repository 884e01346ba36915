"""Medians and order-statistic intervals, against brute force and against the coverage they promise; turns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tilework.errors import UsageError
from tilework.tuning.measure.pairing import turns
from tilework.tuning.measure.statistics import difference_interval, median, median_interval, ratio_interval


def test_medians() -> None:
    assert median([3.0, 1.0, 2.0]) == 2
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    for refuse in (median, median_interval):
        with pytest.raises(UsageError, match="TW1760"):
            refuse([])


@pytest.mark.parametrize("count", [1, 2, 3, 10, 31])
def test_median_is_numpys(count: int) -> None:
    samples = np.random.default_rng(count).standard_normal(count)
    assert median(list(samples)) == np.median(samples)


def test_the_interval_encloses_as_often_as_it_says() -> None:
    """Over many draws from a skewed distribution, the true median lies outside in no more than 5 % of cases."""
    random = np.random.default_rng(7)
    draws = random.exponential(size=(2000, 25))
    inside = [math.log(2) in median_interval(list(row)) for row in draws]
    assert 0.945 <= np.mean(inside) <= 0.975
    found = median_interval(list(draws[0]))
    assert found.confidence >= 0.95
    assert found.low <= found.middle <= found.high


def test_too_few_samples_say_nothing() -> None:
    for count in range(1, 6):
        found = median_interval([1.0] * count)
        assert (found.low, found.high) == (-math.inf, math.inf)
    assert median_interval([1.0] * 6).high == 1


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


def test_ratios_are_of_pairs() -> None:
    """A machine that slows down halfway disturbs medians, not ratios."""
    lower = [1.0] * 10 + [5.0] * 11
    found = ratio_interval([2 * value for value in lower], lower)
    assert (found.low, found.middle, found.high) == (2, 2, 2)
    for upper, other in (([1.0], [1.0, 2.0]), ([1.0], [0.0])):
        with pytest.raises(UsageError, match="TW1760"):
            ratio_interval(upper, other)


def test_differences_are_of_pairs() -> None:
    lower = [1.0] * 10 + [5.0] * 11
    found = difference_interval([value + 0.5 for value in lower], lower)
    assert (found.low, found.middle, found.high) == (0.5, 0.5, 0.5)
    with pytest.raises(UsageError, match="TW1760"):
        difference_interval([1.0], [1.0, 2.0])


def test_each_side_is_first_as_often_as_the_others() -> None:
    assert list(turns(2, 3)) == [(0, 1), (1, 0), (0, 1)]
    assert list(turns(1, 2)) == [(0,), (0,)]
    assert [order[0] for order in turns(3, 6)] == [0, 1, 2, 0, 1, 2]
    assert all(sorted(order) == [0, 1, 2] for order in turns(3, 6))
