"""A signal during a call ends it soon, whatever the plan does, and the executable can be called again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.executable.building import F32, N
from tests.executable.test_hand_written_plans import counting_plan
from tilework.compiler.compile import compile_graph
from tilework.dims import dim
from tilework.ops.builder import GraphBuilder
from tilework.runtime.executable import Executable

SOON = 0.2
"""Seconds between a signal and the exception, by the house's promise."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], list[float]]]:
    """Sends SIGALRM after some seconds, which raises KeyboardInterrupt; the list gets the time at which it came."""
    came: list[float] = []

    def handler(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)

    def start(seconds: float) -> list[float]:
        came.append(time.monotonic() + seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return came

    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def long_plan() -> Executable:
    """Many steps of some milliseconds each."""
    builder = GraphBuilder("long", [N])
    value = builder.input("x", F32, "N", 4)
    for _ in range(300):
        value = builder.apply_one("cumulative", value, dimension=1, reducer="maximum")
    return compile_graph(builder.build([value]))


def again_and_again(call: Callable[..., Any], argument: Any) -> None:
    for _ in range(1000):
        call(argument)


def test_keyboard_interrupt_in_a_long_plan(alarm: Callable[[float], list[float]]) -> None:
    f = long_plan()
    small = np.random.default_rng(0).integers(-3, 4, (3, 4)).astype(np.float32)
    large = np.ones((1_000_000, 4), np.float32)
    came = alarm(0.1)
    with pytest.raises(KeyboardInterrupt):
        again_and_again(f, large)
    assert time.monotonic() - came[0] < SOON
    np.testing.assert_array_equal(f(small)[0], np.maximum.accumulate(small, 1))
    came = alarm(0.05)
    with pytest.raises(KeyboardInterrupt):
        again_and_again(f.step_times, large)
    np.testing.assert_array_equal(f(small)[0], np.maximum.accumulate(small, 1))


def test_a_handler_that_does_not_raise_lets_the_call_go_on() -> None:
    f = long_plan()
    large = np.random.default_rng(0).integers(-3, 4, (200_000, 4)).astype(np.float32)
    calls: list[int] = []

    def handler(*_: object) -> None:
        calls.append(1)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.06)
    found = large
    try:
        end = time.monotonic() + 10
        while not calls and time.monotonic() < end:
            (found,) = f(large)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert calls
    np.testing.assert_array_equal(found, np.maximum.accumulate(large, 1))


def test_every_trip_of_a_repeat_is_a_chance_to_stop(alarm: Callable[[float], list[float]]) -> None:
    """One step repeated for minutes: the driver looks at the clock in each trip."""
    f = counting_plan(trips=dim("n") * 1_000_000_000)
    came = alarm(0.1)
    with pytest.raises(KeyboardInterrupt):
        f(np.zeros(5, np.float32))
    assert time.monotonic() - came[0] < SOON
    again = counting_plan(trips=dim("n"))
    np.testing.assert_array_equal(again(np.zeros(5, np.float32))[0], [5] * 5)
