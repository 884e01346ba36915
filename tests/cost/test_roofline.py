"""The roofline: what bounds work and traffic."""

from __future__ import annotations

import pytest

from tilework.cost.counts import Work
from tilework.cost.roofline import Roofline, assumed, predict, scaled
from tilework.cost.traffic import Traffic
from tilework.machine.finder import machine

ROOF = Roofline(100e9, {"L1": 400e9, "L2": 100e9, "memory": 10e9}, "probed")


def moved(source: str, fetched: int, written: int = 0) -> Traffic:
    return Traffic(source, {"x": fetched}, {"x": written} if written else {})


@pytest.mark.parametrize(
    ("flops", "found", "bound", "seconds"),
    [
        (1000, (moved("L1", 100), moved("memory", 10)), "compute", 1e-8),
        (1000, (moved("L1", 8000), moved("memory", 10)), "L1", 2e-8),
        (1000, (moved("L1", 100), moved("memory", 1000, 1000)), "memory", 2e-7),
        (0, (moved("L2", 100),), "L2", 1e-9),
        (0, (), "nothing", 0),
    ],
)
def test_bounds(flops: int, found: tuple[Traffic, ...], bound: str, seconds: float) -> None:
    prediction = predict(Work(flops=flops), found, ROOF)
    assert prediction.bound == bound
    assert prediction.seconds == pytest.approx(seconds)
    assert prediction.seconds == max(prediction.parts.values())


def test_work_of_other_kinds_counts_too() -> None:
    assert predict(Work(transcendentals=100), (), ROOF).seconds == pytest.approx(2e-8)
    assert predict(Work(integer_operations=1000), (), ROOF).seconds == pytest.approx(1e-8)
    assert predict(Work(flops=1000), (), ROOF, bits=64).seconds == pytest.approx(2e-8)
    assert ROOF.peak(16) == ROOF.peak(32) == 2 * ROOF.peak(64)


def test_attainable_is_a_roof_and_a_slope() -> None:
    assert ROOF.attainable(1000, moved("memory", 1000), 32) == pytest.approx(10e9)
    assert ROOF.attainable(1000, moved("memory", 10), 32) == ROOF.flops_per_second
    assert ROOF.attainable(1000, Traffic("memory", {}, {}), 32) == ROOF.flops_per_second


def test_levels_that_are_not_known_are_as_fast_as_the_next() -> None:
    assert ROOF.bandwidth("L3") == ROOF.bandwidth("memory") == 10e9
    assert Roofline(1e9, {"L1": 5.0}, "probed").bandwidth("memory") == 5


@pytest.mark.parametrize("name", ["host", "x86-64-v4", "x86-64-v3", "aarch64"])
def test_assumed_rooflines(name: str) -> None:
    target = machine(name)
    found = assumed(target)
    assert found.origin == "assumed"
    assert found.flops_per_second == 2 * target.fma_pipes * target.lanes(32) * 3e9
    rates = [found.bandwidth(source) for source in ("L1", "L2", "L3", "memory")]
    assert rates == sorted(rates, reverse=True)
    many = scaled(found, 8)
    assert many.flops_per_second == assumed(target, 8).flops_per_second == 8 * found.flops_per_second
    assert many.bandwidth("memory") == 4 * found.bandwidth("memory")
