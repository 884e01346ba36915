"""Kernels are compiled by several threads; what comes out does not depend on how many."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from tilework.codegen.cpu.kernel import KernelText
from tilework.compiler.overlap import BATCH, CodeMaker
from tilework.plan.signature import KernelSignature
from tilework.runtime.context import Context

SIGNATURE = KernelSignature("k", ())


def kernels(count: int, size: int = BATCH) -> list[KernelText]:
    texts = [f"define void @k{n}() {{\n{'  ; text' * (size // 8)}\n  ret void\n}}\n" for n in range(count)]
    return [KernelText(f"k{n}", SIGNATURE, text, (f"k{n}",)) for n, text in enumerate(texts)]


def made(compile_object: Callable[[str], bytes], threads: int, given: list[KernelText]) -> list[bytes]:
    maker = CodeMaker(compile_object, threads)
    for kernel in given:
        maker.add(kernel)
    return maker.objects("define void @rest() {\n  ret void\n}\n")


@pytest.mark.parametrize("size", [10, BATCH // 3, BATCH])
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_the_same_modules_in_the_same_order(count: int, size: int) -> None:
    def slowly(text: str) -> bytes:
        time.sleep(0.001 * (hash(text) % 5))
        return text.encode()

    given = kernels(count, size)
    expected = made(str.encode, 1, given)
    assert b"@rest" in expected[-1]
    whole = b"".join(expected)
    assert [whole.count(f"@k{n}()".encode()) for n in range(count)] == [1] * count
    for threads in (1, 2, 5):
        assert made(slowly, threads, given) == expected


def test_a_kernel_that_is_known_is_passed_over() -> None:
    (one,) = kernels(1)
    assert len(made(str.encode, 2, [one, one, one])) == 2


def test_threads_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=20)

    def meet(text: str) -> bytes:
        if "@k0()" in text or "@k1()" in text:
            both.wait()
        return b""

    made(meet, 2, kernels(4))


def test_the_caller_helps() -> None:
    """With one thread, the last batches are made in the caller's as well."""
    callers: set[int] = set()
    both = threading.Barrier(2, timeout=20)

    def meet(text: str) -> bytes:
        callers.add(threading.get_ident())
        if "@k0()" not in text:
            both.wait()
        return b""

    made(meet, 1, kernels(4))
    assert len(callers) == 2


@pytest.mark.parametrize("failing", [0, 3, 5])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_and_no_thread_is_left(failing: int, threads: int) -> None:
    def compile_object(text: str) -> bytes:
        if f"@k{failing}()" in text:
            raise KeyboardInterrupt
        return b""

    with pytest.raises(KeyboardInterrupt):
        made(compile_object, threads, kernels(6))
    assert not [thread for thread in threading.enumerate() if thread.name == "tilework-code"]


def test_abandoning_makes_nothing_further() -> None:
    begun, go_on = threading.Event(), threading.Event()
    seen: list[str] = []

    def compile_object(text: str) -> bytes:
        seen.append(text)
        begun.set()
        go_on.wait(20)
        return b""

    maker = CodeMaker(compile_object, 1)
    for kernel in kernels(5):
        maker.add(kernel)
    assert begun.wait(20)
    threading.Timer(0.05, go_on.set).start()
    maker.abandon()
    assert len(seen) == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "tilework-code"]


def test_a_system_that_gives_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is made in the thread that there is."""
    expected = made(str.encode, 3, kernels(4))

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert made(str.encode, 3, kernels(4)) == expected
    with Context() as context:
        context.prepare()
        assert context.native is not None


def test_an_interrupt_of_the_caller_leaves_no_thread() -> None:
    """A thread that is busy when the caller is interrupted ends, though there is more that it could do."""
    caller = threading.get_ident()
    go_on = threading.Event()

    class Interrupted(SimpleQueue[tuple[int, str]]):
        def get_nowait(self) -> tuple[int, str]:
            if threading.get_ident() == caller and not go_on.is_set():
                go_on.set()
                raise KeyboardInterrupt
            return super().get_nowait()

    def compile_object(text: str) -> bytes:
        go_on.wait(20)
        time.sleep(0.05)
        return b""

    maker = CodeMaker(compile_object, 1)
    vars(maker)["_batches"] = Interrupted()
    for kernel in kernels(1):
        maker.add(kernel)
    raised: list[BaseException] = []

    def call() -> None:
        nonlocal caller
        caller = threading.get_ident()
        try:
            maker.objects("")
        except KeyboardInterrupt as interrupt:
            raised.append(interrupt)

    calling = threading.Thread(target=call, daemon=True)
    calling.start()
    calling.join(20)
    assert not calling.is_alive()
    assert raised
    assert not [thread for thread in threading.enumerate() if thread.name == "tilework-code"]
