"""Measuring in a worker: times come in pairs, and whatever a kernel does, the parent gets an outcome."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

import tilework
from tests.schedule.programs import matrix_product
from tilework import dtypes
from tilework.candidates.candidate import Candidate
from tilework.dims import Symbol, dim, loaded
from tilework.errors import LoopProgramError, TileworkError, UsageError, VerificationError
from tilework.loops.expressions import Load, constant
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, Storage, buffer, sequence
from tilework.loops.reducers import reducer
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.schedule.schedule import Schedule
from tilework.tuning.measure.job import Job, Settings, job_of, traced_job
from tilework.tuning.measure.measurement import Measurement
from tilework.tuning.measure.measurer import Measurer, measure

F = dtypes.float32
QUICK = Settings(threads=1, seconds=0.02)


@pytest.fixture(scope="module")
def measurer() -> Iterator[Measurer]:
    with Measurer() as found:
        yield found


def symbolic_sum() -> LoopProgram:
    """total[0] += x[i] for N elements: an argument that calls accumulate into."""
    x, total = buffer("x", F, "N"), buffer("total", F, 1)
    body = Compute("t", (Access("total", (dim(0),)),), (Load("x", (dim("i"),), F),), reducer("sum", F))
    return LoopProgram(
        "sum", (Argument(x, "read"), Argument(total, "accumulate")), Loop("i", dim("N"), "serial", body), (Symbol("N"),)
    )


def wild() -> LoopProgram:
    """Writes far outside its argument."""
    y = buffer("y", F, 4)
    body = Compute("y", (Access("y", (dim("i") * (1 << 40) + (1 << 45),)),), (constant(1.0, F),))
    return LoopProgram("wild", (Argument(y, "write"),), Loop("i", dim(4), "serial", body))


def endless() -> LoopProgram:
    """Some years of work on one element."""
    y = buffer("y", F, 1)
    body = Compute("y", (Access("y", (dim("i") % 1,)),), (Load("y", (dim("j") // (1 << 33),), F) * 1.5,))
    inner = Loop("j", dim(1 << 33), "serial", body)
    return LoopProgram("endless", (Argument(y, "accumulate"),), Loop("i", dim(1 << 33), "serial", inner))


def greedy(elements: int) -> LoopProgram:
    """A workspace of any size."""
    y, big = buffer("y", F, 1), buffer("big", F, elements)
    first = Compute("b", (Access("big", (dim(0),)),), (constant(1.0, F),))
    last = Compute("y", (Access("y", (dim(0),)),), (Load("big", (dim(0),), F),))
    return LoopProgram("greedy", (Argument(y, "write"),), Storage(big, sequence(first, last)))


def gathered() -> LoopProgram:
    """y[i] = x[at[i]]: data choose the index."""
    x, at, y = buffer("x", F, 5), buffer("at", dtypes.int64, 64), buffer("y", F, 64)
    body = Compute("y", (Access("y", (dim("i"),)),), (Load("x", (loaded("at", (dim("i"),)),), F),))
    return LoopProgram(
        "gather", (Argument(x, "read"), Argument(at, "read"), Argument(y, "write")), Loop("i", dim(64), "serial", body)
    )


def check(found: Measurement, outcome: str, *words: str) -> None:
    assert found.outcome == outcome, str(found)
    assert not found.seconds
    for word in words:
        assert word in str(found), str(found)


def test_a_pair(measurer: Measurer) -> None:
    naive = Schedule(matrix_product(16, 64, 64))
    better = naive.split("j", 16, "j0", "j1").reorder("i", "j0", "k", "j1").vectorize("j1")
    found = measurer.measure(better, against=naive, settings=replace(QUICK, seconds=0.1))
    assert found.ok, str(found)
    assert len(found.seconds) == len(found.against_seconds) >= 7
    assert 0 < found.median < 1e-3
    assert found.interval.low <= found.median <= found.interval.high
    assert found.ratio.middle < 1
    assert found.largest_difference == 0  # whole numbers: any order of summation gives the same bits
    assert found.kernel is not None
    assert found.against is not None
    assert found.kernel.code_bytes > 0
    assert found.kernel.calls > found.against.calls > 0
    assert "of the other's time" in str(found)


def test_alone_with_symbols_threads_and_normal_data(measurer: Measurer) -> None:
    for settings in (QUICK, Settings(threads=2, seconds=0.01, data="normal")):
        found = measurer.measure(Schedule(symbolic_sum()), symbols={"N": 1000}, settings=settings)
        assert found.ok, str(found)
        assert found.largest_difference is None
        assert not found.against_seconds
        with pytest.raises(UsageError, match="TW1760"):
            found.ratio  # noqa: B018


def test_sums_into_arguments_start_anew(measurer: Measurer) -> None:
    """Both sides accumulate into one argument, and still get the same."""
    schedule = Schedule(symbolic_sum())
    found = measurer.measure(schedule, against=schedule, symbols={"N": 77}, settings=QUICK)
    assert found.largest_difference == 0


def test_wrong_results_show(measurer: Measurer) -> None:
    x, y = buffer("x", F, 32), buffer("y", F, 32)
    programs = [
        LoopProgram(
            "scale",
            (Argument(x, "read"), Argument(y, "write")),
            Loop("i", dim(32), "serial", Compute("y", (Access("y", (dim("i"),)),), (Load("x", (dim("i"),), F) * by,))),
        )
        for by in (2.0, 3.0)
    ]
    found = measurer.measure(Schedule(programs[0]), against=Schedule(programs[1]), settings=QUICK)
    assert found.largest_difference is not None
    assert 0 < found.largest_difference <= 4


def test_cold_buffers_rotate(measurer: Measurer) -> None:
    found = measurer.measure(Schedule(matrix_product(8, 8, 8)), settings=replace(QUICK, cold=True))
    assert found.ok
    assert found.sets > 100


def test_indices_from_data_are_inside(measurer: Measurer) -> None:
    found = measurer.measure(Schedule(gathered()), settings=QUICK)
    assert found.ok, str(found)


def test_a_trace_is_replayed_in_the_worker(measurer: Measurer) -> None:
    schedule = Schedule(matrix_product(8, 32, 8)).split("j", 16, "j0", "j1").reorder("i", "j0", "k", "j1")
    job = traced_job(matrix_product(8, 32, 8), schedule.vectorize("j1").trace)
    assert measurer.measure(job, against=schedule, settings=QUICK).largest_difference == 0
    check(measurer.measure(replace(job, program=job.program.replace("j", "z")), settings=QUICK), "refused", "TW1504")
    check(measurer.measure(replace(job, trace="[1]"), settings=QUICK), "refused", "TW1503")
    check(measurer.measure(Job("nonsense"), settings=QUICK), "refused", "TW1303")


def test_candidates(measurer: Measurer) -> None:
    good = Candidate("direct", "test", lambda: Schedule(matrix_product(8, 8, 8)))

    def refuse() -> Schedule:
        return Schedule(matrix_product(8, 8, 8)).split("no such loop", 8)

    bad = Candidate("direct", "test", refuse)
    assert measurer.measure(good, settings=QUICK).ok
    check(measurer.measure(bad, settings=QUICK), "refused", "no such loop")
    found = measurer.measure(good, against=bad, settings=QUICK)
    check(found, "refused", "what it was measured against")
    assert found.side == "against"


def test_another_machines_code(measurer: Measurer) -> None:
    found = measurer.measure(Schedule(matrix_product(8, 8, 8), machine("aarch64")), settings=QUICK)
    check(found, "refused", "TW1764" if machine("host").architecture != "aarch64" else "")


# -- what is refused before it runs ----------------------------------------------------------------------------------
def test_a_program_that_leaves_its_buffers_is_not_run(measurer: Measurer) -> None:
    with pytest.raises(VerificationError) as caught:
        measurer.measure(Schedule(wild()), settings=QUICK)
    assert caught.value.code == 1325


def test_a_program_that_leaves_its_buffers_at_these_sizes_is_not_run(measurer: Measurer) -> None:
    x, y = buffer("x", F, "M"), buffer("y", F, "N")
    body = Loop("i", dim("N"), "serial", Compute("y", (Access("y", (dim("i"),)),), (Load("x", (dim("i"),), F),)))
    arguments = (Argument(x, "read"), Argument(y, "write"))
    schedule = Schedule(LoopProgram("first", arguments, body, (Symbol("M"), Symbol("N"))))
    assert measurer.measure(schedule, symbols={"M": 5, "N": 5}, settings=QUICK).ok
    for one in (schedule, schedule.split("i", 2)):
        with pytest.raises(VerificationError, match="reaches 4, and the extent is 3"):
            measurer.measure(one, symbols={"M": 3, "N": 5}, settings=QUICK)


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        (1760, {"threads": "x"}), (1760, {"threads": 0}), (1760, {"threads": -1}), (1760, {"threads": True}),
        (1760, {"threads": 2.0}), (1760, {"threads": 10**9}), (1760, {"seconds": "x"}), (1760, {"seconds": None}),
        (1760, {"seconds": float("nan")}), (1760, {"limit_seconds": "x"}), (1760, {"cold": "no"}),
        (1760, {"data": 3}), (1760, {"measurer": 3}), (1310, {"symbols": None}), (1310, {"symbols": {"N": "x"}}),
        (1310, {"symbols": {"N": 1.5}}), (1310, {"symbols": {"N": 10**30}}), (1310, {"symbols": {"N": True}}),
        (1310, {"symbols": {}}), (1310, {"symbols": {"N": -1}}), (1760, {"symbols": {"N": 3, "Q": 1}}),
        (1762, {"against": "x"}),
    ],
)  # fmt: skip
def test_slips_are_refused_with_a_code(code: int, settings: dict[str, Any]) -> None:
    with pytest.raises(TileworkError) as caught:
        cast("Any", measure)(Schedule(symbolic_sum()), **{"symbols": {"N": 3}, **settings})
    assert caught.value.code == code


def test_nothing_is_not_measured() -> None:
    with pytest.raises(TileworkError) as caught:
        measure(cast("Any", None))
    assert caught.value.code == 1762


# -- kernels that do harm ----------------------------------------------------------------------------------------------
def test_a_crash_is_an_outcome(measurer: Measurer) -> None:
    before = measurer.started
    trusted = Schedule(wild(), origin=wild())  # says that it is sound, and lies
    found = measurer.measure(trusted, settings=QUICK)
    check(found, "crashed", "SIGSEGV", "run")
    assert found.side == "subject"
    again = measurer.measure(Schedule(matrix_product(4, 4, 4)), against=trusted, settings=QUICK)
    assert (again.outcome, again.side) == ("crashed", "against")
    assert measurer.measure(Schedule(matrix_product(4, 4, 4)), settings=QUICK).ok
    assert measurer.started == before + 2


def test_a_hang_is_an_outcome(measurer: Measurer) -> None:
    start = time.monotonic()
    found = measurer.measure(Schedule(endless()), settings=QUICK, limit_seconds=1.5)
    check(found, "timed_out", "1.5 s")
    assert time.monotonic() - start < 20
    assert measurer.measure(Schedule(matrix_product(4, 4, 4)), settings=QUICK).ok


def test_too_much_memory_is_an_outcome(measurer: Measurer) -> None:
    check(measurer.measure(Schedule(greedy(1 << 50)), settings=QUICK), "out_of_memory")
    limited = replace(QUICK, memory_limit_bytes=256 << 20)
    assert measurer.measure(Schedule(greedy(1 << 10)), settings=limited).ok
    check(measurer.measure(Schedule(greedy(1 << 28)), settings=limited), "out_of_memory")
    assert measurer.measure(Schedule(greedy(1 << 10)), settings=QUICK).ok


@pytest.mark.parametrize(("number", "outcome"), [(signal.SIGABRT, "crashed"), (signal.SIGKILL, "out_of_memory")])
def test_an_abort_in_the_middle(number: signal.Signals, outcome: str) -> None:
    with Measurer() as measurer:
        assert measurer.measure(Schedule(matrix_product(4, 4, 4)), settings=QUICK).ok
        assert measurer._worker is not None
        pid = measurer._worker.pid
        timer = threading.Timer(0.6, os.kill, (pid, number))
        timer.start()
        found = measurer.measure(Schedule(endless()), settings=QUICK, limit_seconds=20)
        timer.join()
        check(found, outcome, number.name)


def test_a_worker_ends_with_its_parent() -> None:
    measurer = Measurer()
    measurer.measure(Schedule(matrix_product(4, 4, 4)), settings=QUICK)
    assert measurer._worker is not None
    process = measurer._worker._process
    os.close(measurer._worker._life)  # as when the parent dies
    assert process.wait(10) == 0
    measurer._worker._life = os.open(os.devnull, os.O_RDONLY)
    measurer.close()
    with pytest.raises(UsageError, match="closed"):
        measurer.measure(Schedule(matrix_product(4, 4, 4)), settings=QUICK)


# -- use ---------------------------------------------------------------------------------------------------------------
def test_wrong_use_is_told_at_once() -> None:
    schedule = Schedule(matrix_product(4, 4, 4))
    for wrong in ({"seconds": 0}, {"threads": 0}, {"limit_seconds": 0}, {"data": "zeros"}):
        with pytest.raises(UsageError, match="TW1760"):
            measure(schedule, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="TW1762"):
        measure("a schedule")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="TW1763"):
        measure(replace(schedule, machine=replace(machine("x86-64-v3"), vector_bits=128)))
    with pytest.raises(LoopProgramError, match="symbol N has no value"):
        measure(Schedule(symbolic_sum()))


def test_the_door() -> None:
    found = tilework.measure(Schedule(matrix_product(4, 4, 4)), threads=1, seconds=0.01)
    assert found.ok
    assert str(found).startswith(str(found).split(" a call")[0])


def test_jobs_hold_what_a_worker_needs() -> None:
    schedule = Schedule(matrix_product(8, 8, 8), machine("x86-64-v3"), numerics("strict"))
    job = job_of(Candidate("direct", "test", lambda: schedule, streaming=frozenset(("c", "b"))))
    assert (job.machine, job.numerics, job.streaming, job.packed) == ("x86-64-v3", "strict", ("b", "c"), False)
    assert job_of(schedule.transform_layout("b", "layout(1, 0)")).packed
