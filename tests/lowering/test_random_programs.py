"""Machine code and interpreter agree, bit for bit, on random programs with random schedules."""

from __future__ import annotations

import pytest

from tests.lowering.native import assert_same
from tests.lowering.random_programs import draw


@pytest.mark.parametrize("seed", range(60))
def test_default(seed: int) -> None:
    found = draw(seed)
    assert_same(found.program, found.arrays, found.symbols)


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_strict(seed: int) -> None:
    found = draw(seed)
    assert_same(found.program, found.arrays, found.symbols, level="strict")


@pytest.mark.parametrize("seed", range(2000, 2030))
def test_checked(seed: int) -> None:
    found = draw(seed)
    assert_same(found.program, found.arrays, found.symbols, checked=True)


def test_one_object_serves_every_extent() -> None:
    from tests.lowering.native import Native

    seeds = 0
    for seed in range(100, 116):
        first = draw(seed)
        if not first.symbols:
            continue
        seeds += 1
        native = Native(first.program)
        assert_same(first.program, first.arrays, first.symbols, native=native)
        assert_same(first.program, first.arrays, first.symbols, native=native, offset=32)
    assert seeds > 3
