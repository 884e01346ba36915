"""The thread pool: every chunk once, no hang after forks, between threads or under load, and what a region costs."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure
from tilework.tuning.measure.statistics import median_interval

ROOT = Path(__file__).resolve().parents[1]

REGIONS = 100_000
EMPTY_LIMIT = 1e-6
CHUNKS = (2, 4, 8)
PYTHON_THREADS = 8
HANG_SECONDS = 120.0
WORK_STEPS = 20_000
"""Trips of the loop of a chunk that works, some 10 us."""

TEXT = """
declare void @tilework_pool_run(ptr, ptr, ptr, i32)
@sink = internal global i32 0

define void @empty(ptr %context, i32 %chunk, i32 %chunks) {
  ret void
}

define void @count(ptr %context, i32 %chunk, i32 %chunks) {
  %at = getelementptr i32, ptr %context, i32 %chunk
  %old = atomicrmw add ptr %at, i32 1 monotonic
  ret void
}

define void @work(ptr %context, i32 %chunk, i32 %chunks) {
entry:
  %own = alloca i32
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  %k1 = add i32 %k, 1
  store volatile i32 %k1, ptr %own
  %more = icmp slt i32 %k1, STEPS
  br i1 %more, label %loop, label %end
end:
  call void @count(ptr %context, i32 %chunk, i32 %chunks)
  ret void
}

define void @many(ptr %pool, ptr %function, ptr %context, i32 %chunks, i32 %times) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  call void @tilework_pool_run(ptr %pool, ptr %function, ptr %context, i32 %chunks)
  %k1 = add i32 %k, 1
  %more = icmp slt i32 %k1, %times
  br i1 %more, label %loop, label %end
end:
  ret void
}
""".replace("STEPS", str(WORK_STEPS))


class Regions:
    """A pool and native loops of regions on it, in this process."""

    def __init__(self, threads: int) -> None:
        from tilework.runtime.context import Context, ContextOptions

        self.context = Context(ContextOptions(threads=threads))
        self.pool = self.context.pool
        jit = self.context.jit
        self.code = jit.load(jit.compile_object(TEXT), ["empty", "count", "work", "many"], uses=[self.pool.code])
        kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]
        self._many = ctypes.CFUNCTYPE(None, *kinds)(self.code["many"])
        self.pool.ensure()

    def seconds(self, body: str, chunks: int, times: int, *, parallel: bool = True, context: int = 0) -> float:
        """Seconds a region, over so many regions in a row."""
        start = time.perf_counter()
        self._many(self.pool.address if parallel else None, self.code[body], context, chunks, times)
        return (time.perf_counter() - start) / times

    def each_once(self, body: str, chunks: int, times: int) -> bool:
        """Whether every chunk of every one of so many regions ran once."""
        self.pool.ensure()
        counters = np.zeros(chunks, np.int32)
        self.seconds(body, chunks, times, context=counters.ctypes.data)
        return bool((counters == times).all())


# -- what the child processes do ---------------------------------------------------------------------------------------
def once(threads: int, regions: int) -> dict[str, Any]:
    """Count the chunks of many regions, for several numbers of chunks."""
    made = Regions(threads)
    return {"exact": all(made.each_once("count", chunks, regions) for chunks in CHUNKS)}


def costs(threads: int, blocks: int) -> dict[str, Any]:
    """Seconds of a hot empty region, of one after a pause, and of one with work, alone and shared."""
    made = Regions(threads)
    counters = np.zeros(threads, np.int32)
    at = counters.ctypes.data
    found: dict[str, list[float]] = {"empty": [], "paused": [], "alone": [], "shared": []}
    made.seconds("empty", threads, 10_000)
    for _ in range(blocks):
        found["empty"].append(made.seconds("empty", threads, 2000))
        found["alone"].append(made.seconds("work", threads, 50, parallel=False, context=at))
        found["shared"].append(made.seconds("work", threads, 50, context=at))
        time.sleep(0.005)
        found["paused"].append(made.seconds("empty", threads, 1))
    return found


def forks(threads: int, regions: int) -> dict[str, Any]:
    """Fork while another thread's regions run; children run regions with workers of their own, then fork themselves."""
    made = Regions(threads)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            made.seconds("empty", threads, 100)

    beside = threading.Thread(target=busy)
    beside.start()
    exact = True
    for _ in range(10):
        child = os.fork()
        if not child:
            good = made.each_once("count", 4, regions)
            grandchild = os.fork()
            if not grandchild:
                os._exit(0 if made.each_once("count", 4, regions) else 1)
            good = good and os.waitpid(grandchild, 0)[1] == 0 and made.pool.workers == threads - 1
            os._exit(0 if good else 1)
        exact = exact and os.waitpid(child, 0)[1] == 0
    stop.set()
    beside.join()
    return {"exact": exact and made.each_once("count", 4, regions)}


def python_threads(threads: int, regions: int) -> dict[str, Any]:
    """Eight Python threads on one pool, and on one executable whose kernels have parallel regions."""
    made = Regions(threads)
    with ThreadPoolExecutor(PYTHON_THREADS) as several:
        exact = all(several.map(lambda _: made.each_once("work", 4, regions // 1000), range(PYTHON_THREADS)))
        exact &= all(several.map(lambda _: made.each_once("count", 4, regions // 10), range(PYTHON_THREADS)))
    return {"exact": exact, "executable": _threads_on_an_executable(regions // 1000)}


def _threads_on_an_executable(calls: int) -> bool:
    import onnx
    from onnx import TensorProto, helper

    import tilework

    size = 1 << 18
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in "xyz")
    nodes = [helper.make_node("Mul", ["x", "y"], ["t"]), helper.make_node("Add", ["t", "y"], ["z"])]
    model: onnx.ModelProto = helper.make_model(
        helper.make_graph(nodes, "threads", [x, y], [z]), opset_imports=[helper.make_opsetid("", 18)]
    )
    model.ir_version = 9
    executable = tilework.compile(model)

    def call(number: int) -> bool:
        random = np.random.default_rng(number)
        good = True
        for _ in range(calls):
            # small integers, so that every order of operations gives the same floats
            first, second = (random.integers(-50, 50, size).astype(np.float32) for _ in range(2))
            (result,) = executable(first, second)
            good = good and np.array_equal(result, first * second + second)
        return good

    with ThreadPoolExecutor(PYTHON_THREADS) as several:
        return all(several.map(call, range(PYTHON_THREADS)))


def loaded(threads: int, regions: int) -> dict[str, Any]:
    """Regions while twice as many processes as processors want to run."""
    made = Regions(threads)
    with _busy_processes(2 * (os.cpu_count() or 1)):
        exact = made.each_once("count", 4, regions) and made.each_once("work", 4, regions // 100)
        each = [made.seconds("empty", threads, 1) for _ in range(5000)]
    return {"exact": exact, "loaded": each}


@contextlib.contextmanager
def _busy_processes(count: int) -> Generator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


# -- what the parent does ----------------------------------------------------------------------------------------------
def in_child(function: Callable[[int, int], dict[str, Any]], threads: int, count: int) -> dict[str, Any] | None:
    """Run one of the functions above in a process of its own; None when it hung or failed."""
    code = f"import json; from benchmarks import pool; print(json.dumps(pool.{function.__name__}({threads}, {count})))"
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
            cwd=ROOT, capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{function.__name__}: no answer in {HANG_SECONDS:.0f} s")
        return None
    if done.returncode:
        print(f"{function.__name__} failed:\n{done.stderr.strip()[-2000:]}")
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def run(options: Options) -> Result:
    """Count chunks in every situation, then time regions."""
    threads = options.threads or 2
    regions = REGIONS // 10 if options.quick else REGIONS
    checks = {
        "every chunk once": (once, REGIONS),
        "every chunk once in and after forks": (forks, regions // 10),
        f"every chunk once from {PYTHON_THREADS} Python threads": (python_threads, regions),
        "every chunk once under a competing load": (loaded, regions),
    }
    answers = {label: in_child(function, threads, count) for label, (function, count) in checks.items()}
    figures = [check_figure(label, bool(answer and answer["exact"])) for label, answer in answers.items()]
    shared = answers[f"every chunk once from {PYTHON_THREADS} Python threads"]
    label = f"{PYTHON_THREADS} Python threads on one executable"
    figures.append(check_figure(label, bool(shared and shared["executable"])))
    timed = in_child(costs, threads, 31 if options.quick else 101)
    if timed is None:
        figures.append(check_figure("times taken", passed=False))
        return Result(figures)
    under_load = answers["every chunk once under a competing load"]
    if under_load is not None:
        timed["loaded"] = under_load["loaded"]
    empty = median_interval(timed["empty"])
    figures.insert(0, Figure("empty region", empty.middle * 1e6, "us", Bar("<=", EMPTY_LIMIT * 1e6)))
    gain = median_interval([alone / both for alone, both in zip(timed["alone"], timed["shared"], strict=True)])
    figures.append(Figure(f"gain of {threads} threads on chunks of some 10 us", gain.middle, "x", None, gain))
    names = {
        "empty": "empty, one after the other",
        "paused": "empty, after 5 ms of rest",
        "alone": f"{threads} chunks of work, no pool",
        "shared": f"{threads} chunks of work, pool",
        "loaded": "empty, under a competing load",
    }
    rows: list[list[str]] = []
    for key, seconds in timed.items():
        ordered = sorted(seconds)
        ends = (ordered[0], median_interval(seconds).middle, ordered[int(len(ordered) * 0.99)])
        rows.append([names[key], *(f"{value * 1e6:.2f}" for value in ends)])
    return Result(
        figures, ["region", "least us", "median us", "99th % us"], rows, samples=timed, facts={"threads": threads}
    )
