"""Machine code while Python still lowers: LLVM works in a thread of its own on the kernels that are ready.

LLVM's calls let go of the interpreter's lock, so the two run beside each other. Kernels go in batches, as a module has
a cost of its own; the first batches are small, so that the thread has something to do from the first kernel on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from tilework.codegen.cpu.kernel import KernelText
from tilework.codegen.cpu.modules import joined_text

BATCHES = (1, 2, 4)
"""Kernels in the first modules."""
BATCH = 6
"""Kernels in every further module. Never what happens to be ready: equal programs have equal modules."""


class CodeMaker:
    """Takes kernel texts one by one and gives their object code back at the end, in the order of the batches.

    `compile_object` is called in one thread at a time; an error in it is raised by `objects`. The thread ends with
    `objects` or `abandon`.
    """

    def __init__(self, compile_object: Callable[[str], bytes]) -> None:
        self._compile = compile_object
        self._waiting: list[str] = []
        self._names: set[str] = set()
        self._done: list[bytes] = []
        self._error: BaseException | None = None
        self._batches: SimpleQueue[str | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._started = 0
        self._abandoned = False

    def add(self, kernel: KernelText) -> None:
        """Take a kernel (one that is known already is passed over)."""
        if kernel.name not in self._names:
            self._names.add(kernel.name)
            self._waiting.append(kernel.ir)
            if len(self._waiting) >= (BATCHES[self._started] if self._started < len(BATCHES) else BATCH):
                self._started += 1
                self._start(joined_text(self._waiting))
                self._waiting = []

    def objects(self, rest: str) -> list[bytes]:
        """Object code of everything taken, with `rest` in the last module. Raises what `compile_object` raised."""
        last = joined_text([*self._waiting, rest])
        self._waiting = []
        if self._thread is None:
            return [self._compile(last)]
        self._batches.put(None)
        # the last module is made here, beside what the thread still has to do
        made = self._compile(last)
        self._thread.join()
        if self._error is not None:
            raise self._error
        return [*self._done, made]

    def abandon(self) -> None:
        """Make nothing further, and wait for what is being made."""
        self._abandoned = True
        if self._thread is not None:
            self._batches.put(None)
            self._thread.join()

    def _start(self, text: str) -> None:
        self._batches.put(text)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tilework-code", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            text = self._batches.get()
            if text is None or self._abandoned:
                return
            try:
                self._done.append(self._compile(text))
            except BaseException as error:  # noqa: BLE001 - it is raised where the code is asked for
                self._error = error
                return
