"""The context: the one owner of everything that lives longer than a call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from tilework import environment
from tilework.codegen.cpu.jit import Jit
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass
from tilework.runtime.forks import in_child
from tilework.runtime.kept_objects import kept_objects
from tilework.runtime.memory import BlockAllocator, BlockPool
from tilework.runtime.native import NativeGate
from tilework.runtime.pool import ThreadPool
from tilework.runtime.processors import thread_count
from tilework.runtime.settings import byte_limit, expect, whole_number
from tilework.runtime.turns import Turns

if TYPE_CHECKING:
    from tilework.runtime.pending import PendingCalls

Part = TypeVar("Part")


@dataclass(frozen=True)
class ContextOptions:
    """Settings of a context; None takes the environment's, then what fits the machine."""

    threads: int | None = None
    """Threads of parallel regions, the caller's included (`TILEWORK_NUM_THREADS`; else the processors available)."""
    spin: int | None = None
    """Pauses of an idle worker before it sleeps (some 2000 in a process of our own, 500 beside torch)."""
    memory_limit_bytes: int | None = None
    """The most bytes that one arena or output may need (`TILEWORK_MEMORY_LIMIT`; else what the machine gives)."""
    keep_bytes: int | None = None
    """The most bytes of unused blocks that are kept for later calls."""

    def __post_init__(self) -> None:
        """Raises `UsageError` 1002 for settings that make no sense."""
        if self.threads is not None:
            thread_count(whole_number("threads", self.threads, "threads"))
        if self.spin is not None:
            whole_number("spin", self.spin, "pauses", 0)
        if self.memory_limit_bytes is not None:
            whole_number("memory_limit_bytes", self.memory_limit_bytes, "bytes")
        if self.keep_bytes is not None:
            whole_number("keep_bytes", self.keep_bytes, "bytes", 0)


class Context:
    """Owns the JIT, the thread pool, the native call gate, and the blocks for arenas and outputs.

    `with Context(threads=1, memory_limit="4G"):` compiles and runs what is compiled, loaded or built within in this
    context, and closes it at the end; it holds for the thread (or task of asyncio) that enters it. Elsewhere a context
    is given as `context=`.

    Parts are made when first asked for. Closing ends the worker threads and gives unused memory back; executables of a
    closed context can no longer be called, and code stays loaded until they are gone.

    Threads: a context may be used from any number of Python threads.

    Forks: a child may use the contexts of its parent. It starts workers of its own on first use; code, constants and
    blocks are there already, private to it. Forking waits while another thread compiles, or starts or stops workers; it
    does not wait for calls. What another thread was computing when the process forked does not go on in the child. A
    process that holds a context should not fork *to compile in parallel*: start worker processes afresh for that. Nor
    should it fork while another thread compiles for the first time: Python does not free the locks of modules that are
    being imported, and a child that needs one of them waits forever.
    """

    def __init__(
        self,
        options: ContextOptions | None = None,
        *,
        threads: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        """A context; nothing is started or loaded yet.

        Args:
            options: all settings; the environment's, then what fits the machine, where they leave something open.
            threads: threads of parallel regions, the caller's included, whatever `options` says.
            memory_limit: the most bytes that one arena or output may need, e.g. `"4G"`, whatever `options` says.

        Raises:
            UsageError: 1002 for settings that make no sense, the environment's too.
        """
        if options is not None:
            expect("options", options, ContextOptions, "give ContextOptions(threads=..., ...)")
        self.options = options if options is not None else ContextOptions()
        if threads is not None:
            self.options = replace(self.options, threads=threads)
        if memory_limit is not None:
            self.options = replace(self.options, memory_limit_bytes=byte_limit("memory_limit", memory_limit))
        limit = self.options.memory_limit_bytes
        if limit is None:
            limit = environment.read(environment.MEMORY_LIMIT)
        self._blocks = BlockPool(self.options.keep_bytes, limit)
        self.objects = kept_objects()
        """Objects on disk; None where none are kept. Its `store` counts what was found there."""
        self.turns = Turns()
        """How long threads keep the interpreter's lock while something is compiled."""
        self._jit: Jit | None = None
        self._pool: ThreadPool | None = None
        self._native: NativeGate | None = None
        self._calls: PendingCalls | None = None
        self._lock = threading.RLock()
        self._closed = False
        in_child(self._after_fork)

    # -- parts -------------------------------------------------------------------------------------------------------
    @property
    def jit(self) -> Jit:
        """The JIT container. Raises `UsageError` 1752 after closing, as all parts do."""
        if self._jit is None or self._closed:
            self._jit = self._make(lambda: self._jit, lambda: Jit(store=self.objects))
        return self._jit

    @property
    def pool(self) -> ThreadPool:
        """The thread pool; call its `ensure()` before running code that uses it."""
        if self._pool is None or self._closed:
            options = self.options
            self._pool = self._make(
                lambda: self._pool, lambda: ThreadPool(self.jit, threads=options.threads, spin=options.spin)
            )
        return self._pool

    @property
    def native(self) -> NativeGate:
        """The native functions that calls go through."""
        if self._native is None or self._closed:
            self._native = self._make(lambda: self._native, lambda: NativeGate(self.jit))
        return self._native

    @property
    def calls(self) -> PendingCalls:
        """Where `run_async` has its calls made."""
        if self._calls is None or self._closed:
            from tilework.runtime.pending import PendingCalls

            self._calls = self._make(lambda: self._calls, PendingCalls)
        return self._calls

    @property
    def blocks(self) -> BlockPool:
        """Memory for arenas and large outputs."""
        self._check_open()
        return self._blocks

    def prepare(self) -> None:
        """Start making the parts that every call needs, in a thread: their code depends on no model, and LLVM is loaded
        while a model is read or hashed.

        What goes wrong there is raised where the part is asked for. Raises `UsageError` 1752 after closing.
        """
        self._check_open()
        if self._pool is None or self._native is None:
            with contextlib.suppress(RuntimeError):  # no more threads: the parts are made where they are asked for
                threading.Thread(target=self._prepare, name="tilework-parts").start()

    def _prepare(self) -> None:
        with contextlib.suppress(BaseException):  # a library that cannot be loaded too: who asks for the part is told
            _ = self.jit  # apart: who needs only this waits for no more
            _ = self.pool, self.native

    def allocator(self) -> BlockAllocator:
        """A new `Allocator` (see `tilework.plan.protocols`) on this context's blocks."""
        return BlockAllocator(self.blocks)

    # -- life ----------------------------------------------------------------------------------------------------------
    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """End the workers, refuse further use, and give unused memory back. Closing twice is allowed.

        A pending call that runs is waited for; those that have not begun are given up.
        """
        if self._calls is not None:
            self._calls.close()  # first, and without the lock: the call that runs may need either
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.close()
            if self._jit is not None:
                self._jit.close()
            self._blocks.keep_bytes = 0
            self._blocks.trim()

    def __enter__(self) -> Self:
        self._check_open()
        _current.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.leave(self)
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Context owns threads and loaded code of this process: it can be neither pickled nor copied; "
            "make a new one where you need it"
        )

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(1752, "this context is closed")

    def _make(self, known: Callable[[], Part | None], make: Callable[[], Part]) -> Part:
        """A part that another thread may have made meanwhile."""
        with self._lock:
            self._check_open()
            found = known()
            return found if found is not None else make()


class _Current:
    """Holds the contexts that were entered and the process's own: the only object of the package that changes and
    belongs to no caller.
    """

    def __init__(self) -> None:
        self._context: Context | None = None
        self._entered: ContextVar[tuple[Context, ...]] = ContextVar("tilework contexts", default=())
        self._lock = threading.Lock()
        in_child(self._after_fork)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def enter(self, context: Context) -> None:
        self._entered.set((*self._entered.get(), context))

    def leave(self, context: Context) -> None:
        """Whatever the order, and also where it was not entered (another thread, another task)."""
        self._entered.set(tuple(other for other in self._entered.get() if other is not context))

    def get(self) -> Context:
        for context in reversed(self._entered.get()):
            if not context.closed:
                return context
        with self._lock:
            if self._context is None or self._context.closed:
                self._context = Context()
            return self._context


_current = _Current()


def default_context() -> Context:
    """The context where none is given: the innermost one that this thread has entered (`with Context(...):`), else that
    of the process, made on first use with settings from the environment; after closing, a new one.
    """
    return _current.get()
