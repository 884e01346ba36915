"""The thread pool: every chunk exactly once, whatever happens to the workers."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.runtime.conftest import Regions, make_regions
from tilework.codegen.cpu.jit import Jit
from tilework.codegen.cpu.llvm import HostTarget, compile_object
from tilework.codegen.cpu.threads import INLINE_EXPORTS, INLINE_TEXT, pool_text
from tilework.errors import CodegenError, UsageError
from tilework.runtime.pool import SPIN_ALONE, SPIN_BESIDE_TORCH, RegionFunction, ThreadPool


@pytest.mark.parametrize("chunks", [2, 3, 7])
def test_every_chunk_runs_exactly_once(regions: Regions, chunks: int):
    assert (regions.counts("count", chunks, 40_000) == 40_000).all()


def test_chunks_that_take_long_and_callers_that_sleep(regions: Regions):
    assert (regions.counts("slow", 5, 300) == 300).all()


@pytest.mark.parametrize("chunks", [0, -1, 1])
def test_no_chunk_and_one_chunk(regions: Regions, chunks: int):
    counters = np.zeros(1, np.int32)
    regions.run("count", counters.ctypes.data, chunks, 3)
    assert counters[0] == (3 if chunks == 1 else 0)


def test_more_chunks_than_threads(regions: Regions):
    assert (regions.counts("count", 1000, 50) == 50).all()


def test_sleeping_workers_wake(regions: Regions):
    regions.pool.spin = 0
    for _ in range(50):
        time.sleep(0.001)
        assert (regions.counts("slow", 3, 1) == 1).all()


def test_workers_help():
    jit = Jit()
    pool = ThreadPool(jit, threads=2)
    seen: set[int] = set()
    arrived = threading.Barrier(2)

    @RegionFunction
    def body(_context: int, _chunk: int, _chunks: int) -> None:
        seen.add(threading.get_native_id())
        arrived.wait(10)  # both chunks at once: only two threads can pass

    pool.run(body, 0, 2)
    assert len(seen) == 2
    pool.close()


def test_a_region_is_complete_when_its_call_returns(jit: Jit):
    pool = ThreadPool(jit, threads=2)
    caller = threading.get_native_id()
    arrived = threading.Barrier(2)
    finished: list[int] = []

    @RegionFunction
    def body(_context: int, chunk: int, _chunks: int) -> None:
        arrived.wait(10)  # the caller has one chunk, the worker the other
        if threading.get_native_id() != caller:
            time.sleep(0.03)
        finished.append(chunk)

    for round_number in range(3):
        pool.run(body, 0, 2)
        assert sorted(finished) == [0, 1], round_number
        finished.clear()
    pool.close()


def test_two_regions_at_once_do_not_mix(jit: Jit):
    pool = ThreadPool(jit, threads=2)
    regions = make_regions(jit, pool)
    go_on = threading.Event()
    inside = threading.Barrier(3)
    first: list[int] = []

    @RegionFunction
    def body(_context: int, chunk: int, _chunks: int) -> None:
        if chunk < 2:
            inside.wait(10)
            go_on.wait(10)
        first.append(chunk)

    runner = threading.Thread(target=lambda: pool.run(body, 0, 4), daemon=True)
    runner.start()
    inside.wait(10)  # the region's caller and the worker are both in it, and two chunks are left
    assert (regions.counts("count", 3, 100) == 100).all()
    go_on.set()
    runner.join(10)
    assert not runner.is_alive()
    assert sorted(first) == [0, 1, 2, 3]
    pool.close()


def test_null_pool_runs_in_the_caller(regions: Regions):
    counters = np.zeros(4, np.int32)
    regions.many(None, regions.code["count"], counters.ctypes.data, 4, 10)
    assert (counters == 10).all()


def test_nested_regions_do_not_wait_for_each_other(regions: Regions):
    counters = np.zeros(5, np.int32)
    context = np.array([regions.pool.address, counters.ctypes.data], np.int64)
    regions.run("nested", context.ctypes.data, 4, 2000)
    assert (counters == 8000).all()


def test_eight_python_threads_on_one_pool(regions: Regions):
    results: list[np.ndarray] = []

    def work() -> None:
        results.append(regions.counts("count", 6, 5000))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all((counters == 5000).all() for counters in results)


def test_stop_and_start_again(regions: Regions):
    pool = regions.pool
    for _ in range(20):
        pool.ensure()
        assert pool.workers == 2
        assert (regions.counts("count", 4, 10) == 10).all()
        pool.stop()
        assert pool.workers == 0
        assert pool.stale


def test_stop_while_regions_run(regions: Regions):
    counters = np.zeros(4, np.int32)
    regions.pool.ensure()
    runner = threading.Thread(
        target=lambda: regions.many(regions.pool.address, regions.code["slow"], counters.ctypes.data, 4, 500)
    )
    runner.start()
    for _ in range(30):
        regions.pool.stop()
        regions.pool.ensure()
    runner.join(60)
    assert not runner.is_alive()
    assert (counters == 500).all()


def test_other_thread_counts(regions: Regions):
    pool = regions.pool
    for threads in (1, 5, 2):
        pool.resize(threads)
        pool.ensure()
        assert (pool.threads, pool.workers) == (threads, threads - 1)
        assert (regions.counts("count", 4, 100) == 100).all()
    with pytest.raises(UsageError) as caught:
        pool.resize(0)
    assert caught.value.code == 1002
    assert pool.threads == 2


def test_closed_pool_still_runs_regions_in_the_caller(regions: Regions):
    regions.pool.close()
    assert (regions.counts("count", 4, 100) == 100).all()
    assert regions.pool.workers == 0
    assert not regions.pool.stale


def test_workers_start_late(jit: Jit):
    pool = ThreadPool(jit, threads=4)
    assert (pool.workers, pool.stale) == (0, True)
    pool.ensure()
    assert (pool.workers, pool.stale) == (3, False)
    pool.close()


def test_spin_setting(jit: Jit):
    beside_torch = "torch" in sys.modules
    assert ThreadPool(jit, threads=1).spin == (SPIN_BESIDE_TORCH if beside_torch else SPIN_ALONE)
    assert ThreadPool(jit, threads=1, spin=7).spin == 7


@pytest.mark.parametrize("threads", [0, -3, 100_000])
def test_thread_counts_that_make_no_sense(jit: Jit, threads: int):
    with pytest.raises(UsageError) as caught:
        ThreadPool(jit, threads=threads)
    assert caught.value.code == 1002


def test_workers_compute_with_denormals_even_if_their_starter_flushes_them(jit: Jit):
    flush = jit.load(
        jit.compile_object(
            "declare void @llvm.x86.sse.ldmxcsr(ptr)\n"
            "define void @set_mode(i32 %mode) {\n"
            "  %at = alloca i32\n  store i32 %mode, ptr %at\n  call void @llvm.x86.sse.ldmxcsr(ptr %at)\n  ret void\n}"
        ),
        ["set_mode"],
    )
    set_mode = ctypes.CFUNCTYPE(None, ctypes.c_int32)(flush["set_mode"])
    pool = ThreadPool(jit, threads=2)
    set_mode(0x9FC0)  # flush to zero, denormals are zero
    try:
        pool.ensure()
    finally:
        set_mode(0x1F80)
    regions = make_regions(jit, pool)
    tiny = np.float32(2.0**-140)
    for _ in range(200):
        values = np.full(64, tiny, np.float32)
        regions.run("tiny_times_half", values.ctypes.data, 64)
        assert (values == tiny / 2).all()
    pool.close()


FORK = """
import os, sys
import numpy as np
from tests.runtime.conftest import make_regions
from tilework.codegen.cpu.jit import Jit
from tilework.runtime.pool import ThreadPool

jit = Jit()
regions = make_regions(jit, ThreadPool(jit, threads=3))
assert (regions.counts("count", 4, 1000) == 1000).all()
child = os.fork()
if not child:
    pool = regions.pool
    counters = np.zeros(4, np.int32)
    assert (pool.workers, pool.stale) == (0, True), (pool.workers, pool.stale)
    regions.many(pool.address, regions.code["count"], counters.ctypes.data, 4, 1000)  # nobody but the caller
    assert (counters == 1000).all()
    assert (regions.counts("count", 4, 1000) == 1000).all()
    assert pool.workers == 2
    grandchild = os.fork()
    if not grandchild:
        os._exit(0 if (regions.counts("count", 4, 1000) == 1000).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
    pool.close()
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert status == 0, status
assert regions.pool.workers == 2
assert (regions.counts("count", 4, 1000) == 1000).all()
"""

FORK_IN_A_REGION = """
import os, threading
import numpy as np
from tests.runtime.conftest import make_regions
from tilework.codegen.cpu.jit import Jit
from tilework.runtime.pool import ThreadPool

jit = Jit()
regions = make_regions(jit, ThreadPool(jit, threads=2))
counters = np.zeros(4, np.int32)
regions.pool.ensure()
runner = threading.Thread(
    target=lambda: regions.many(regions.pool.address, regions.code["slow"], counters.ctypes.data, 4, 4000)
)
runner.start()
for _ in range(20):
    child = os.fork()
    if not child:
        os._exit(0 if (regions.counts("count", 6, 300) == 300).all() and regions.pool.workers == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
runner.join()
assert (counters == 4000).all()
"""

EXIT_WITH_WORKERS = """
import threading
from tests.runtime.conftest import make_regions
from tilework.codegen.cpu.jit import Jit
from tilework.runtime.pool import ThreadPool

jit = Jit()
regions = make_regions(jit, ThreadPool(jit, threads=4))
regions.counts("count", 4, 10)
threading.Thread(target=lambda: regions.counts("slow", 4, 10**6), daemon=True).start()
"""


@pytest.mark.parametrize("script", [FORK, FORK_IN_A_REGION, EXIT_WITH_WORKERS])
def test_forks_and_exits(script: str):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_pool_text_for_other_machines():
    for triple, cpu in [("x86_64-unknown-linux-gnu", "x86-64-v3"), ("aarch64-unknown-linux-gnu", "generic")]:
        assert compile_object(pool_text(triple), HostTarget(triple, cpu, ""))
    with pytest.raises(CodegenError) as caught:
        pool_text("x86_64-apple-darwin")
    assert caught.value.code == 1750


def test_pool_without_workers(jit: Jit):
    inline = jit.load(jit.compile_object(INLINE_TEXT), INLINE_EXPORTS)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)(
        inline["tilework_pool_run"]
    )
    ran: list[tuple[int, int]] = []

    @RegionFunction
    def body(_context: int, chunk: int, chunks: int) -> None:
        ran.append((chunk, chunks))

    run(None, ctypes.cast(body, ctypes.c_void_p), None, 3)
    run(None, ctypes.cast(body, ctypes.c_void_p), None, 0)
    assert ran == [(0, 3), (1, 3), (2, 3)]
