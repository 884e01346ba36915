"""The thread pool: parallel regions of compiled code, on workers that come when needed and go when told.

The pool's work is done in generated code (`codegen/cpu/threads.py`); this file starts and stops its workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any

from tilework.codegen.cpu import threads as pool_code
from tilework.codegen.cpu.jit import Jit, LoadedCode
from tilework.codegen.cpu.worker_placement import TAKEN_OFFSET
from tilework.errors import CodegenError, RunError
from tilework.runtime.processors import thread_count

SPIN_ALONE = 2000
"""Pauses of an idle worker before it sleeps, in a process of our own."""
SPIN_BESIDE_TORCH = 500
"""The same where torch is loaded: its own workers spin too, and longer spinning takes processors from them."""

RegionFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
"""`void (context, chunk, chunks)`: the body of a parallel region."""


class ThreadPool:
    """Workers beside the calling thread, for parallel regions of compiled code.

    `address` is what kernels get as `%pool`; it never changes, whatever happens to the workers. A region runs each
    chunk exactly once and is complete when its call returns. Workers are never needed for progress: without any, or
    while another thread's region has them, or inside a region, the caller runs its chunks itself.

    Life: workers start with `ensure()` (called before each run; free when they are there), not with the pool. After a
    fork the child has none: `ensure()` starts new ones there. `stop()` ends and joins them; the next `ensure()` starts
    them again unless the pool is closed. Threads: every method may be called from any Python thread.
    """

    def __init__(self, jit: Jit, threads: int | None = None, spin: int | None = None) -> None:
        """A pool of `threads` threads, the caller's included (None: see `thread_count`); no thread starts yet.

        `spin` is the number of pauses of an idle worker before it sleeps.

        Raises:
            UsageError: 1002 for a thread count or spin that makes no sense.
            CodegenError: 1750 for several threads where the pool has no code for the operating system; with `threads`
                None there is one thread then.
        """
        target = jit.target.triple
        supported = pool_code.has_workers(target)
        self._threads = thread_count(threads if supported or threads is not None else 1)
        if self._threads > 1 and not supported:
            raise CodegenError(1750, f"no worker threads on {target}", where="threads")
        if spin is None:
            spin = SPIN_BESIDE_TORCH if "torch" in sys.modules else SPIN_ALONE
        self._memory, self.address = _aligned(pool_code.POOL_BYTES)
        self._spin = ctypes.c_int32.from_address(self.address + pool_code.SPIN_OFFSET)
        self._workers = ctypes.c_int32.from_address(self.address + pool_code.WORKERS_OFFSET)
        self._stop = ctypes.c_int32.from_address(self.address + pool_code.STOP_OFFSET)
        self._seats_taken = ctypes.c_int32.from_address(self.address + TAKEN_OFFSET)
        self._spin.value = max(0, min(spin, 10**9))
        self._handles: list[ctypes.c_void_p] = []
        self._lock = threading.RLock()
        self._closed = False
        self.stale = self._threads > 1
        """Whether `ensure()` has something to do; a plain attribute so that a call may look at it for nothing."""
        self.ready = not self.stale
        """Whether it has not, and the pool is open."""
        text = pool_code.pool_text(target) if supported else pool_code.INLINE_TEXT
        exports = pool_code.EXPORTS if supported else pool_code.INLINE_EXPORTS
        self.code: LoadedCode = jit.load(jit.compile_object(text), exports)
        """The pool's functions, for linking kernels with (`uses=[pool.code]`)."""
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)(
            self.code["tilework_pool_run"]
        )
        self._spawn = self._function("tilework_pool_spawn", ctypes.c_int32, 2)
        self._ask_to_stop = self._function("tilework_pool_stop", None, 1)
        self._join = self._function("tilework_pool_join", ctypes.c_int32, 1)
        self._reset = self._function("tilework_pool_reset", None, 1)
        _watch_forks(self)
        # Workers run this pool's code on this pool's memory: they must be gone before either is. The finalizer also
        # runs when the interpreter ends.
        self._finalizer = weakref.finalize(
            self, _end_workers, self._handles, self._ask_to_stop, self._join, self.address, (self._memory, self.code)
        )

    def _function(self, name: str, result: Any, pointers: int) -> Callable[..., Any]:
        address = self.code.addresses.get(name)
        if address is None:  # the pool without workers: nothing to start, stop or forget
            return _nothing
        return ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * pointers)(address)

    @property
    def threads(self) -> int:
        """Threads that a region may use, the caller's included."""
        return self._threads

    @property
    def workers(self) -> int:
        """Workers running now."""
        return int(self._workers.value)

    @property
    def spin(self) -> int:
        """Pauses of an idle worker before it sleeps. May be set at any time."""
        return int(self._spin.value)

    @spin.setter
    def spin(self, pauses: int) -> None:
        self._spin.value = max(0, min(pauses, 10**9))

    def ensure(self) -> None:
        """Start the workers that are missing.

        Raises:
            RunError: 1751 when the operating system refuses a thread; the pool then works with those it has.
        """
        if not self.stale:
            return
        with self._lock:
            if self._closed or not self.stale:
                return
            with _signals_blocked():
                while len(self._handles) < self._threads - 1:
                    handle = ctypes.c_void_p()
                    error = self._spawn(self.address, ctypes.addressof(handle))
                    if error:
                        self._set_stale(False)  # do not try again on every call
                        self._workers.value = len(self._handles)
                        message = f"worker {len(self._handles) + 1} was not started: {os.strerror(error)}"
                        raise RunError(1751, message, where="threads")
                    self._handles.append(handle)
            self._workers.value = len(self._handles)
            self._set_stale(False)

    def resize(self, threads: int | None) -> None:
        """Use another number of threads (None: what `thread_count` says now) from the next region on.

        Raises:
            UsageError: 1002 for a thread count that makes no sense.
            CodegenError: 1750 for several threads where the pool has no code for the operating system.
        """
        wanted = thread_count(threads)
        if wanted > 1 and "tilework_pool_spawn" not in self.code.addresses:
            raise CodegenError(1750, "no worker threads on this operating system", where="threads")
        with self._lock:
            if wanted != self._threads:
                self.stop()
                self._threads = wanted
                self._set_stale(wanted > 1)

    def stop(self) -> None:
        """End all workers and wait for them; a region that is running goes on in its caller."""
        with self._lock:
            self._workers.value = 0
            _end_workers(self._handles, self._ask_to_stop, self._join, self.address)
            self._stop.value = 0
            self._seats_taken.value = 0
            self._set_stale(self._threads > 1)

    def close(self) -> None:
        """End the workers for good. Regions still run, in their callers."""
        with self._lock:
            self._closed = True
            self.stop()

    def run(self, function: int | Any, context: int, chunks: int) -> None:
        """Run one region from Python: `function(context, chunk, chunks)` at a native address, once for each chunk.

        `function` must not need the interpreter unless it is a `RegionFunction`. Compiled kernels do not come this way;
        they call the pool themselves.
        """
        self.ensure()
        address = function if isinstance(function, int) else ctypes.cast(function, ctypes.c_void_p).value
        self._run(self.address, address, context, chunks)

    # -- forks -------------------------------------------------------------------------------------------------------
    def before_fork(self) -> None:
        """Hold the pool still while the process forks: no worker is being started or stopped."""
        self._lock.acquire()

    def _set_stale(self, stale: bool) -> None:
        self.stale = stale and not self._closed
        self.ready = not stale and not self._closed

    def after_fork_in_parent(self) -> None:
        """Let go after a fork."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget the parent's workers; the next `ensure()` starts the child's own."""
        self._handles.clear()
        self._reset(self.address)
        self._set_stale(self._threads > 1)
        self._lock.release()


def _end_workers(
    handles: list[ctypes.c_void_p], stop: Callable[..., Any], join: Callable[..., Any], address: int, *keep: object
) -> None:
    """Stop and join the workers with these handles, whose list is emptied. `keep` only has to outlive them."""
    del keep
    if handles:
        stop(address)
        while handles:
            join(ctypes.addressof(handles[-1]))
            handles.pop()


def _watch_forks(pool: ThreadPool) -> None:
    """Tell the pool of forks for as long as it lives (hooks cannot be taken back, so they hold it weakly)."""
    if not hasattr(os, "register_at_fork"):
        return
    reference = weakref.ref(pool)
    held: list[ThreadPool] = []  # from before to after, so that the pool cannot go in between

    def before() -> None:
        alive = reference()
        if alive is not None:
            alive.before_fork()
            held.append(alive)

    def in_parent() -> None:
        while held:
            held.pop().after_fork_in_parent()

    def in_child() -> None:
        while held:
            held.pop().after_fork_in_child()

    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


@contextlib.contextmanager
def _signals_blocked() -> Generator[None]:
    """Threads started within take no signals: those belong to Python's threads. Faults still end the process."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}
    before = signal.pthread_sigmask(signal.SIG_SETMASK, set(signal.valid_signals()) - faults)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _nothing(*_: object) -> int:
    return 0


def _aligned(size: int) -> tuple[Any, int]:
    """Zeroed memory of `size` bytes, and its address at a multiple of 64."""
    memory = (ctypes.c_uint8 * (size + 64))()
    return memory, (ctypes.addressof(memory) + 63) // 64 * 64
