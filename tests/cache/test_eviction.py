"""What goes when a store passes its cap: large entries among themselves, then what is oldest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilework.cache.eviction import LARGE, Kept, oldest, what_goes

CAP = 3200


def entries(*sizes: int) -> list[Kept]:
    return [Kept(Path(f"{number}"), size, float(number)) for number, size in enumerate(sizes)]


def names(found: list[Kept]) -> list[int]:
    return [int(str(kept.path)) for kept in found]


def test_large_entries_do_not_push_out_small_ones() -> None:
    assert LARGE * 100 == CAP
    # small, large, small, large, large: 1,900 of large ones, and half of the cap is 1,600
    assert names(what_goes(entries(90, 500, 90, 600, 800), CAP)) == [1]
    assert names(what_goes(entries(90, 1500, 90, 100), CAP)) == []


def test_small_ones_go_where_they_pass_the_cap_themselves() -> None:
    found = what_goes(entries(*[100] * 40), CAP)
    assert names(found) == list(range(40 - 25))  # 2,500 of the 2,560 that are four fifths
    assert what_goes(entries(*[100] * 32), CAP) == []


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_keeps_to_the_cap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    every = entries(*(int(size) for size in rng.choice([1, 50, 100, 101, 400, 1600], 60)))
    goes = what_goes(every, CAP)
    left = [kept for kept in every if kept not in goes]
    assert len(goes) == len(set(names(goes)))
    assert sum(kept.bytes for kept in left) <= CAP
    assert sum(kept.bytes for kept in left if kept.bytes > 100) <= CAP // 2
    small = [kept for kept in every if kept.bytes <= 100]
    if sum(kept.bytes for kept in small) <= CAP // 2:
        assert not set(names(goes)) & set(names(small))


def test_the_oldest_go_first() -> None:
    assert names(oldest(entries(5, 5, 5), 10)) == [0]
    assert names(oldest(entries(5, 5, 5), 0)) == [0, 1, 2]
    assert oldest([], 0) == []
