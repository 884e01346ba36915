"""Machine code while Python still lowers: LLVM works in threads of its own on the kernels that are ready.

Generating code lets go of the interpreter's lock, so lowering and several generators run beside each other. Kernels go
in batches, as a module has a cost of its own. What is in a batch depends on the texts alone, never on what happens to
be ready: equal programs have equal modules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from tilework.codegen.cpu.kernel import KernelText
from tilework.codegen.cpu.modules import joined_text

BATCH = 24_000
"""Characters of text from which on kernels make a module: some 30 ms of work."""


class CodeMaker:
    """Takes kernel texts one by one and gives their object code back at the end, in the order of the batches.

    `compile_object` is called in up to `threads` threads at a time, and in the caller's once there is nothing left to
    lower; an error in it is raised by `objects`. The threads end with `objects` or `abandon`.
    """

    def __init__(self, compile_object: Callable[[str], bytes], threads: int = 1) -> None:
        self._compile = compile_object
        self._limit = threads
        self._waiting: list[str] = []
        self._names: set[str] = set()
        self._made: list[bytes] = []
        self._errors: list[BaseException] = []
        self._batches: SimpleQueue[tuple[int, str]] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ready = threading.Semaphore(0)
        self._ended = False

    def add(self, kernel: KernelText) -> None:
        """Take a kernel (one that is known already is passed over)."""
        if kernel.name not in self._names:
            self._names.add(kernel.name)
            self._waiting.append(kernel.ir)
            # the first thread has something to do from the first kernel on
            if not self._made or sum(map(len, self._waiting)) >= BATCH:
                self._start(joined_text(self._waiting))
                self._waiting = []

    def objects(self, rest: str) -> list[bytes]:
        """Object code of everything taken, with `rest` in the last module. Raises what `compile_object` raised."""
        self._put(joined_text([*self._waiting, rest]))
        self._waiting = []
        try:
            while self._one():
                pass
        except BaseException:
            self.abandon()
            raise
        self._end()
        if self._errors:
            raise self._errors[0]
        return self._made

    def abandon(self) -> None:
        """Make nothing further, and wait for what is being made."""
        while True:
            try:
                self._batches.get_nowait()
            except Empty:
                break
        self._end()

    def _end(self) -> None:
        self._ended = True
        # one more than there are: a signal may have come just after a thread was started
        self._ready.release(len(self._threads) + 1)
        for thread in self._threads:
            thread.join()

    def _put(self, text: str) -> None:
        self._batches.put((len(self._made), text))
        self._made.append(b"")

    def _start(self, text: str) -> None:
        self._put(text)
        self._ready.release()
        if len(self._threads) < self._limit:
            thread = threading.Thread(target=self._work, name="tilework-code", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads: what is left is made where it is asked for
                self._limit = 0
            else:
                self._threads.append(thread)

    def _work(self) -> None:
        while True:
            self._ready.acquire()
            while self._one():
                pass
            if self._ended:
                return

    def _one(self) -> bool:
        """Make the next batch; False where there is none, or where one failed."""
        try:
            place, text = self._batches.get_nowait()
        except Empty:
            return False
        if self._errors:
            return False
        try:
            self._made[place] = self._compile(text)
        except BaseException as error:  # noqa: BLE001 - it is raised where the code is asked for
            self._errors.append(error)
        return True
