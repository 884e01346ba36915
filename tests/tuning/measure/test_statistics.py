"""Medians and order-statistic intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilework.errors import UsageError
from tilework.tuning.measure.statistics import median, median_interval, ratio_interval


def test_medians() -> None:
    assert median([3.0, 1.0, 2.0]) == 2
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    with pytest.raises(UsageError, match="TW1760"):
        median([])


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
    found = median_interval([1.0, 1.0, 1.0, 1.0, 1.0])
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert median_interval([1.0] * 6).high == 1


def test_ratios_are_of_pairs() -> None:
    """A machine that slows down halfway disturbs medians, not ratios."""
    lower = [1.0] * 10 + [5.0] * 11
    found = ratio_interval([2 * value for value in lower], lower)
    assert (found.low, found.middle, found.high) == (2, 2, 2)
    for upper, other in (([1.0], [1.0, 2.0]), ([1.0], [0.0])):
        with pytest.raises(UsageError, match="TW1760"):
            ratio_interval(upper, other)
