"""Pending calls: their order, what is told of those that fail, are cancelled or lost, and how their thread ends."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, wait
from fractions import Fraction
from typing import Any

import pytest

from tilework.errors import CallError, CallTimeoutError, RunError, UsageError
from tilework.runtime.context import Context
from tilework.runtime.pending import PendingCall, PendingCalls


class Gate:
    """A call that waits until it is opened."""

    def __init__(self) -> None:
        self.begun, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> tuple[Any, ...]:
        self.begun.set()
        assert self.opened.wait(30)
        return ("opened",)


@pytest.fixture
def calls() -> Generator[PendingCalls]:
    made = PendingCalls()
    yield made
    made.close()


def ask(calls: PendingCalls, run: Callable[..., tuple[Any, ...]], *arguments: Any, **named: Any) -> PendingCall:
    return calls.submit(run, arguments, named)


def same(value: Any) -> tuple[Any, ...]:
    return (value,)


def number_of(value: Any) -> tuple[Any, ...]:
    return (id(value),)


def own_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tilework-calls"]


def test_nothing_starts_before_the_first_call() -> None:
    with Context() as context:
        before = len(own_threads())
        assert context.calls is context.calls
        assert len(own_threads()) == before
    script = "import sys, tilework, tilework.runtime.executable; print('concurrent.futures' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def test_calls_are_made_in_their_order_by_one_thread(calls: PendingCalls) -> None:
    made: list[tuple[int, int]] = []

    def note(number: int, *, twice: bool = False) -> tuple[Any, ...]:
        made.append((number, threading.get_ident()))
        return (2 * number if twice else number,)

    gate = Gate()
    first = ask(calls, gate)
    pending = [ask(calls, note, number, twice=bool(number % 2)) for number in range(50)]
    assert not first.done()
    assert not any(one.done() for one in pending)  # Python goes on meanwhile
    gate.opened.set()
    assert [one.result(30) for one in pending] == [(number * (1 + number % 2),) for number in range(50)]
    assert [number for number, _ in made] == list(range(50))
    assert len({thread for _, thread in made}) == 1
    assert threading.get_ident() not in {thread for _, thread in made}
    assert first.result() == ("opened",)


def test_any_thread_may_ask(calls: PendingCalls) -> None:
    asked: list[PendingCall] = []

    def many(base: int) -> None:
        asked.extend(ask(calls, same, number) for number in range(base, base + 100))

    threads = [threading.Thread(target=many, args=(100 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait(asked, 30)
    assert sorted(one.result(0)[0] for one in asked) == list(range(800))
    assert calls._queue.thread in own_threads()


def test_what_a_call_raises_is_raised_by_its_result(calls: PendingCalls) -> None:
    def refuse() -> tuple[Any, ...]:
        raise CallError(1704, "no")

    def end() -> tuple[Any, ...]:
        raise KeyboardInterrupt

    refused = ask(calls, refuse)
    with pytest.raises(CallError) as caught:
        refused.result(30)
    assert caught.value.code == 1704
    assert refused.exception(0) is caught.value
    with pytest.raises(KeyboardInterrupt):
        ask(calls, end).result(30)
    assert ask(calls, lambda: (1,)).result(30) == (1,)  # the thread is still there
    good = ask(calls, lambda: (2,))
    assert good.exception(30) is None


def test_waiting_too_short(calls: PendingCalls) -> None:
    gate = Gate()
    pending = ask(calls, gate)
    for asking in (pending.result, pending.exception):
        with pytest.raises(CallTimeoutError, match=r"not done after 0\.01 seconds") as caught:
            asking(0.01)
        assert caught.value.code == 1754
        assert isinstance(caught.value, TimeoutError)
    gate.opened.set()
    assert pending.result(30) == ("opened",)

    def late() -> tuple[Any, ...]:
        raise TimeoutError("the call's own")

    with pytest.raises(TimeoutError, match="the call's own"):
        ask(calls, late).result(30)


def test_cancelling_until_the_call_begins(calls: PendingCalls) -> None:
    gate, made = Gate(), list[int]()

    def note() -> tuple[Any, ...]:
        made.append(2)
        return ()

    first = ask(calls, gate)
    second = ask(calls, note)
    third = ask(calls, lambda: (3,))
    assert gate.begun.wait(30)
    assert not first.cancel()
    assert second.cancel()
    assert second.cancelled()
    gate.opened.set()
    assert first.result(30) == ("opened",)
    assert third.result(30) == (3,)
    with pytest.raises(CancelledError):
        second.result(0)
    assert made == []


def test_closing_waits_for_one_call_and_gives_up_the_others() -> None:
    calls, gate = PendingCalls(), Gate()
    first, second, third = ask(calls, gate), ask(calls, lambda: (2,)), ask(calls, lambda: (3,))
    assert third.cancel()
    assert gate.begun.wait(30)
    closing = threading.Thread(target=calls.close)
    closing.start()
    with pytest.raises(UsageError) as caught:
        second.result(30)
    assert caught.value.code == 1753
    assert closing.is_alive()
    assert not first.done()
    gate.opened.set()
    closing.join(30)
    assert first.result(0) == ("opened",)
    assert third.cancelled()
    with pytest.raises(UsageError) as caught:
        ask(calls, lambda: (4,))
    assert caught.value.code == 1752
    calls.close()  # again


def test_a_callback_may_close() -> None:
    calls, gate = PendingCalls(), Gate()
    pending = ask(calls, gate)
    pending.add_done_callback(lambda _: calls.close())
    gate.opened.set()
    assert pending.result(30) == ("opened",)


def test_what_is_done_is_let_go(calls: PendingCalls) -> None:
    class Held:
        pass

    held = Held()
    seen = weakref.ref(held)
    pending = ask(calls, number_of, held)
    assert pending.result(30) == (id(held),)
    del held
    ask(calls, lambda: ()).result(30)  # the thread has put the first away
    gc.collect()
    assert seen() is None


def test_the_thread_goes_with_its_context() -> None:
    calls = PendingCalls()
    ask(calls, lambda: (1,)).result(30)
    thread = calls._queue.thread
    assert thread is not None
    del calls
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_no_more_threads(calls: PendingCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RunError) as caught:
            ask(calls, lambda: (1,))
    assert caught.value.code == 1751
    assert ask(calls, lambda: (2,)).result(30) == (2,)


def test_a_coroutine_waits_without_stopping_others(calls: PendingCalls) -> None:
    gate = Gate()

    async def both() -> tuple[Any, ...]:
        pending = ask(calls, gate)

        async def opening() -> None:
            while not gate.begun.is_set():
                await asyncio.sleep(0.001)
            gate.opened.set()

        found, _ = await asyncio.gather(pending, opening())
        return found

    assert asyncio.run(both()) == ("opened",)


EXIT = """
import sys, threading, time
from tilework.runtime.pending import PendingCalls
calls = PendingCalls()
def slow(number):
    time.sleep(0.3)
    print("made", number, flush=True)
    return (number,)
pending = [calls.submit(slow, (number,), {}) for number in range(100)]
while not pending[0].running():
    time.sleep(0.001)
"""


def run(script: str) -> str:
    """What a script prints; one that does not end, fails or warns is an error."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]  # forks beside threads, from 3.12 on
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "calls.close()", "del calls"])
def test_the_process_ends_with_calls_pending(end: str) -> None:
    start = time.monotonic()
    assert run(EXIT + end) == "made 0\n"  # the one that runs; the others are given up
    assert time.monotonic() - start < 20


def test_an_idle_thread_does_not_keep_the_process() -> None:
    assert run(EXIT.replace("range(100)", "range(1)") + "print(pending[0].result())") == "made 0\n(0,)\n"


def test_children_of_forks_make_calls_of_their_own() -> None:
    script = """
import os, threading
from tilework.errors import UsageError
from tilework.runtime.pending import PendingCalls
calls = PendingCalls()
opened, begun = threading.Event(), threading.Event()
def gate():
    begun.set()
    opened.wait(30)
    return ("parent",)
told = []
pending = [calls.submit(gate, (), {}), calls.submit(lambda: ("parent",), (), {})]
pending[1].add_done_callback(lambda one: told.append(os.getpid()))
begun.wait(30)
for _ in range(4):
    child = os.fork()
    if not child:
        good = True
        for one in pending:
            try:
                one.result(5)
                good = False
            except UsageError as lost:
                good = good and lost.code == 1753
        good = good and calls.submit(lambda: ("child",), (), {}).result(5) == ("child",) and told == []
        calls.close()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
opened.set()
print([one.result(30) for one in pending], told == [os.getpid()])
"""
    assert run(script) == "[('parent',), ('parent',)] True\n"


@pytest.mark.parametrize("timeout", ["soon", [1], 1j, object()])
def test_times_that_are_no_numbers_are_refused(calls: PendingCalls, timeout: Any) -> None:
    gate = Gate()
    pending = ask(calls, gate)
    for asked in (pending.result, pending.exception):
        with pytest.raises(UsageError) as caught:
            asked(timeout)
        assert caught.value.code == 1002
    gate.opened.set()
    assert pending.result(1e30) == ("opened",)  # longer than a thread can wait


def test_fractions_of_a_second(calls: PendingCalls) -> None:
    gate = Gate()
    pending = ask(calls, gate)
    with pytest.raises(CallTimeoutError, match=r"after 1/100 seconds"):
        pending.result(Fraction(1, 100))  # type: ignore[arg-type]
    gate.opened.set()
