"""Calls that run while Python goes on: a context has one thread for them, which makes them in their order."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from typing import Any

from tilework.errors import CallTimeoutError, RunError, UsageError
from tilework.runtime.forks import in_child
from tilework.runtime.settings import bad_setting

Results = tuple[Any, ...]


class PendingCall(Future[Results]):
    """A call that was asked for and may not be made yet. It is a `concurrent.futures.Future`, and can be awaited.

    `result()` waits and returns the outputs, or raises what the call raised: the same coded errors as a plain call.
    `cancel()` succeeds until the call begins; then it goes on to its end. `result()` of a cancelled call raises
    `concurrent.futures.CancelledError`. Functions given to `add_done_callback` run in the context's thread: they should
    be short.
    """

    def result(self, timeout: float | None = None) -> Results:
        """The outputs of the call, waited for at most `timeout` seconds (None: however long it takes).

        Raises:
            CallTimeoutError: 1754, the call is not done; it goes on, and may be asked for again.
            UsageError: 1002, `timeout` is no number.
            UsageError: 1753, the call was given up: its context was closed, or this is the child of a fork.
            CallError, RunError, OutOfMemoryError: as the call itself.
        """
        wait = _waiting_time(timeout)
        try:
            return super().result(wait)
        except TimeoutError:
            self._still_pending(timeout)
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the call raised, None where it went well. Raises `CallTimeoutError` 1754 as `result`."""
        wait = _waiting_time(timeout)
        try:
            return super().exception(wait)
        except TimeoutError:
            self._still_pending(timeout)
            raise

    def __await__(self) -> Generator[Any, None, Results]:
        """In a coroutine: let others run until the call is done. To stop waiting cancels a call that has not begun."""
        from asyncio import wrap_future

        return wrap_future(self).__await__()

    def _still_pending(self, timeout: float | None) -> None:
        if not self.done():
            raise CallTimeoutError(1754, f"the call is not done after {timeout} seconds") from None

    def lose(self, why: str) -> None:
        """Make it a call that is never made, where nobody else can finish it any more."""
        self._condition = threading.Condition()  # a thread that does not exist here may have held the old one
        self._done_callbacks = []  # those of the process where the call goes on
        if not self.done():
            self.set_exception(UsageError(1753, why))


def _waiting_time(timeout: object) -> float | None:
    """Seconds that a thread can wait. Raises `UsageError` 1002 for what is no number."""
    if timeout is None:
        return None
    try:
        seconds = float(timeout)  # type: ignore[arg-type] - whatever is no number is refused
    except (TypeError, ValueError, OverflowError):
        raise bad_setting("timeout", timeout, "seconds, or None to wait for as long as it takes") from None
    return min(seconds, threading.TIMEOUT_MAX)


class _Call:
    """One call and its arguments, which are kept until it is done."""

    __slots__ = ("arguments", "named", "pending", "run")

    def __init__(self, run: Callable[..., Results], arguments: Results, named: Mapping[str, Any]) -> None:
        self.run, self.arguments, self.named = run, arguments, named
        self.pending = PendingCall()

    def make(self) -> None:
        if not self.pending.set_running_or_notify_cancel():
            return
        try:
            results = self.run(*self.arguments, **self.named)
        except BaseException as problem:  # noqa: BLE001 - whatever it is, who asks for the result is told
            self.pending.set_exception(problem)
        else:
            self.pending.set_result(results)


class _Queue:
    """What the thread and those who ask share."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.waiting: deque[_Call] = deque()
        self.running: _Call | None = None
        self.thread: threading.Thread | None = None
        self.closed = False


class PendingCalls:
    """Makes calls one after the other, in the order in which they are given, in one thread that starts with the first.

    Closing it, or the end of the process, gives up the calls that have not begun and waits for the one that runs. The
    child of a fork has a queue of its own: calls of the parent are lost there, and go on in the parent. Threads: every
    method may be called from any thread.
    """

    def __init__(self) -> None:
        self._queue = _Queue()
        # also before the interpreter ends; the thread itself would only be stopped where it stands
        self._end = weakref.finalize(self, _close, self._queue)
        in_child(self._after_fork)

    def submit(self, run: Callable[..., Results], arguments: Results, named: Mapping[str, Any]) -> PendingCall:
        """Ask for `run(*arguments, **named)`.

        Raises:
            UsageError: 1752, the context is closed.
            RunError: 1751, the operating system starts no thread.
        """
        call, queue = _Call(run, arguments, named), self._queue
        with queue.changed:
            if queue.closed:
                raise UsageError(1752, "this context is closed")
            if queue.thread is None:
                thread = threading.Thread(target=_serve, args=(queue,), name="tilework-calls", daemon=True)
                try:
                    thread.start()
                except RuntimeError as problem:
                    raise RunError(1751, f"no thread for calls was started: {problem}", where="run_async") from None
                queue.thread = thread
            queue.waiting.append(call)
            queue.changed.notify()
        return call.pending

    def close(self) -> None:
        """Take no more calls, give up those that have not begun, and wait for the one that runs."""
        self._end()

    def _after_fork(self) -> None:
        queue, self._queue = self._queue, _Queue()
        self._queue.closed = queue.closed
        self._end.detach()
        self._end = weakref.finalize(self, _close, self._queue)
        for call in (*queue.waiting, queue.running):
            if call is not None:
                call.pending.lose("this process was forked before the call was done; it goes on in the parent")


def _serve(queue: _Queue) -> None:
    """The thread: holds the queue alone, so that a context nobody has any more goes."""
    while True:
        with queue.changed:
            while not queue.waiting and not queue.closed:
                queue.changed.wait()
            if queue.closed:
                return
            call = queue.running = queue.waiting.popleft()
        call.make()
        queue.running = None
        del call  # its arguments and results belong to others now


def _close(queue: _Queue) -> None:
    with queue.changed:
        queue.closed = True
        given_up = list(queue.waiting)
        queue.waiting.clear()
        thread = queue.thread
        queue.changed.notify_all()
    for call in given_up:
        if call.pending.set_running_or_notify_cancel():
            call.pending.set_exception(UsageError(1753, "the context was closed before the call began"))
    if thread is not None and thread is not threading.current_thread():
        thread.join()
