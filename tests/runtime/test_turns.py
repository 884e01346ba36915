"""Turns of the interpreter's lock are short for a while, and then what they were."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Generator
from typing import Any

import pytest

from tilework.runtime.turns import Turns

USUAL = sys.getswitchinterval()


@pytest.fixture(autouse=True)
def as_it_was() -> Generator[None]:
    sys.setswitchinterval(USUAL)
    yield
    sys.setswitchinterval(USUAL)


def short() -> bool:
    return sys.getswitchinterval() < USUAL / 10


def test_meanwhile_and_afterwards() -> None:
    turns = Turns()
    with contextlib.suppress(ZeroDivisionError), turns.short():
        assert short()
        with turns.short():
            assert short()
        assert short()
        raise ZeroDivisionError
    assert sys.getswitchinterval() == USUAL


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_several_that_end_in_any_order(order: tuple[int, ...]) -> None:
    begun = [contextlib.ExitStack() for _ in order]
    for stack in begun:
        stack.enter_context(Turns().short())
    for place in order:
        begun[place].close()
    assert sys.getswitchinterval() == USUAL


def test_an_interval_that_others_set_meanwhile_stays() -> None:
    with Turns().short():
        sys.setswitchinterval(0.002)
    assert sys.getswitchinterval() == pytest.approx(0.002)


def test_an_interrupt_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sys.setswitchinterval

    def struck(seconds: float) -> None:
        real(seconds)
        monkeypatch.setattr(sys, "setswitchinterval", real)
        signal.raise_signal(signal.SIGUSR1)

    def raised(*_: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGUSR1, raised)
    try:
        monkeypatch.setattr(sys, "setswitchinterval", struck)
        with pytest.raises(InterruptedError), Turns().short():
            pass
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sys.getswitchinterval() == USUAL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_of_a_fork_have_usual_turns() -> None:
    turns = Turns()
    with turns.short():
        child = os.fork()
        if not child:
            os._exit(0 if sys.getswitchinterval() == USUAL else 1)
        _, status = os.waitpid(child, 0)
        assert short()
    assert os.waitstatus_to_exitcode(status) == 0
