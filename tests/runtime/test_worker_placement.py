"""Workers that slept on their caller's processor wake up on another one, and may run anywhere afterwards."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.conftest import Regions
from tilework.codegen.cpu.jit import Jit
from tilework.runtime.pool import RegionFunction, ThreadPool

ALLOWED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="needs two processors")


def state(thread: int) -> tuple[str, int]:
    """A thread's state (S: asleep) and the processor that it ran on last."""
    fields = Path(f"/proc/self/task/{thread}/stat").read_text().rsplit(")", 1)[1].split()
    return fields[0], int(fields[36])


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.001)


def run_on(pool: ThreadPool) -> tuple[int, int]:
    """Run a region whose two chunks need two threads; returns the worker, and the processor it computed on."""
    caller = threading.get_native_id()
    arrived = threading.Barrier(2)
    seen: list[tuple[int, int]] = []

    @RegionFunction
    def body(_context: int, _chunk: int, _chunks: int) -> None:
        thread = threading.get_native_id()
        if thread != caller:
            seen.append((thread, state(thread)[1]))
        arrived.wait(20)

    pool.run(body, 0, 2)
    (found,) = seen
    return found


def test_a_worker_wakes_on_another_processor(jit: Jit):
    pool = ThreadPool(jit, threads=2, spin=0)
    before = os.sched_getaffinity(0)
    here, other = ALLOWED[:2]
    try:
        worker, _ = run_on(pool)
        for caller_at, expected in ((here, other), (other, here), (other, here)):
            # let it fall asleep where the caller is going to be
            os.sched_setaffinity(worker, {caller_at})
            run_on(pool)
            until(lambda: state(worker)[0] == "S", "a worker asleep")
            os.sched_setaffinity(worker, {here, other})
            os.sched_setaffinity(0, {caller_at})
            assert state(worker)[1] == caller_at
            assert run_on(pool) == (worker, expected)
            assert os.sched_getaffinity(worker) == {here, other}
            os.sched_setaffinity(0, before)
    finally:
        os.sched_setaffinity(0, before)
        pool.close()


@contextmanager
def four_asleep_here(jit: Jit) -> Generator[tuple[Callable[[], None], set[int]]]:
    """What wakes one of four workers, and the workers: all asleep on the caller's processor, the first allowed one."""

    @RegionFunction
    def body(_context: int, _chunk: int, _chunks: int) -> None:
        time.sleep(0.002)

    def threads() -> set[int]:
        return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}

    pool = ThreadPool(jit, threads=5, spin=0)
    before = os.sched_getaffinity(0)
    known = threads()
    try:
        os.sched_setaffinity(0, {ALLOWED[0]})
        pool.run(body, 0, 5)  # workers are started with their starter's set
        workers = threads() - known
        assert len(workers) == 4
        until(lambda: all(state(worker) == ("S", ALLOWED[0]) for worker in workers), "workers asleep")
        yield lambda: pool.run(body, 0, 2), workers
    finally:
        os.sched_setaffinity(0, before)
        pool.close()


def test_sets_are_as_they_were_also_of_workers_that_sleep_on(jit: Jit):
    with four_asleep_here(jit) as (wake_one, workers):
        for worker in workers:
            os.sched_setaffinity(worker, ALLOWED[:2])
        for _ in range(10):
            wake_one()
            assert [os.sched_getaffinity(worker) for worker in workers] == 4 * [set(ALLOWED[:2])]


def test_a_processor_that_others_took_away_is_not_given_back(jit: Jit):
    """Workers that slept on the caller's processor when somebody forbade it to them."""
    with four_asleep_here(jit) as (wake_one, workers):
        for worker in workers:
            os.sched_setaffinity(worker, {ALLOWED[1]})
        for _ in range(10):
            wake_one()
            assert [os.sched_getaffinity(worker) for worker in workers] == 4 * [{ALLOWED[1]}]


def test_a_worker_that_has_one_processor_stays_there(jit: Jit):
    pool = ThreadPool(jit, threads=2, spin=0)
    before = os.sched_getaffinity(0)
    try:
        worker, _ = run_on(pool)
        os.sched_setaffinity(worker, {ALLOWED[0]})
        os.sched_setaffinity(0, {ALLOWED[0]})
        for _ in range(3):
            assert run_on(pool) == (worker, ALLOWED[0])
            until(lambda: state(worker)[0] == "S", "a worker asleep")
        assert os.sched_getaffinity(worker) == {ALLOWED[0]}
    finally:
        os.sched_setaffinity(0, before)
        pool.close()


def test_more_workers_than_seats_or_processors(regions: Regions):
    pool = regions.pool
    pool.spin = 0
    pool.resize(300)
    for _ in range(3):
        time.sleep(0.005)
        assert (regions.counts("count", 1000, 3) == 3).all()
    pool.resize(2)
    assert (regions.counts("count", 7, 100) == 100).all()
