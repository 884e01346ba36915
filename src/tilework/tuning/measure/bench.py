"""The child's side of a measurement: builds kernels, prepares their arguments, and times blocks of calls."""

from __future__ import annotations

import ctypes
import gc
import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from tilework.fast_dataclass import dataclass

try:
    import resource
except ImportError:  # an operating system that does not count
    resource = None

from tilework.codegen.cpu.jit import Jit, LoadedCode
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.errors import RunError
from tilework.loops.program import Buffer, LoopProgram
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine
from tilework.machine.host import check_runs_here
from tilework.plan.signature import KernelSignature
from tilework.runtime.context import Context, ContextOptions
from tilework.tuning.measure.arguments import Array, Buffers, loaded_bounds, sets_for
from tilework.tuning.measure.job import Job, Settings
from tilework.tuning.measure.pairing import turns

LEAST_ROUNDS = 7
"""Samples of each side, even of kernels that take longer than all the time there is."""
MOST_ROUNDS = 1001
BLOCK_SECONDS = 1e-3
"""A sample is at least so long."""
WARM_SECONDS = 0.02

REPEAT_TEXT = """
define i32 @tilework_repeat(ptr %entry, ptr %blocks, i64 %sets, i64 %first, i64 %calls, ptr %pool) {
start:
  br label %again
again:
  %call = phi i64 [ 0, %start ], [ %called, %again ]
  %at = phi i64 [ %first, %start ], [ %following, %again ]
  %bad = phi i32 [ 0, %start ], [ %status, %again ]
  %place = getelementptr ptr, ptr %blocks, i64 %at
  %block = load ptr, ptr %place
  %answer = call i32 %entry(ptr %block, ptr %pool)
  %status = or i32 %bad, %answer
  %called = add i64 %call, 1
  %next = add i64 %at, 1
  %past = icmp uge i64 %next, %sets
  %following = select i1 %past, i64 0, i64 %next
  %more = icmp ult i64 %called, %calls
  br i1 %more, label %again, label %done
done:
  ret i32 %status
}
"""


@dataclass(frozen=True)
class Built:
    """A kernel loaded into this process."""

    program: LoopProgram
    machine: CpuMachine
    signature: KernelSignature
    code: LoadedCode
    entry: int
    compile_seconds: float


def build(job: Job, jit: Jit, pool: LoadedCode) -> Built:
    """Replay the job's trace, generate its code and load it. Raises what each of these does."""
    start = perf_counter()
    schedule = job.schedule()
    target = machine(job.machine)
    check_runs_here(target)
    text = emit_kernel(schedule.program, target, schedule.numerics, streaming=frozenset(job.streaming))
    code = jit.load(jit.compile_object(text.ir, target), text.exports, uses=[pool])
    return Built(schedule.program, target, text.signature, code, code[text.name], perf_counter() - start)


class Prepared:
    """A kernel with its argument blocks, one a set of buffers."""

    def __init__(self, built: Built, job: Job, buffers: Buffers, sets: int, pool_address: int, repeat: Any) -> None:
        self.built = built
        self.sets = sets
        self._pool = pool_address
        self._repeat = repeat
        self._next = 0
        self._error = np.zeros(8, np.int64)
        self._keep: list[Any] = []
        self._restored: list[tuple[Array, Array]] = []
        self.results: dict[str, Array] = {}
        bounds = loaded_bounds(built.program, job.symbols)
        self._blocks = (ctypes.c_int64 * sets)()
        workspaces: dict[str, Array] = {}
        for number in range(sets):
            slots = [self._error.ctypes.data]
            for entry in built.signature.buffers:
                shape = tuple(int(extent.evaluate(job.symbols)) for extent in entry.shape)
                if entry.access == "workspace":
                    if entry.name not in workspaces:
                        workspaces[entry.name] = buffers.fresh(shape, entry.dtype.numpy)
                    array = workspaces[entry.name]
                else:
                    buffer = Buffer(entry.name, entry.shape, entry.dtype)
                    array = buffers.array(buffer, shape, number, bounds.get(entry.name))
                    if number == 0 and entry.access != "read":
                        self.results[entry.name] = array
                    if entry.access == "accumulate":
                        self._restored.append((array, array.copy()))
                self._keep.append(array)
                slots.append(array.ctypes.data)
            slots += [job.symbols[symbol.name] for symbol in built.signature.symbols]
            block = (ctypes.c_int64 * len(slots))(*slots)
            self._keep.append(block)
            self._blocks[number] = ctypes.addressof(block)

    def run(self, calls: int) -> float:
        """Call so many times and return the seconds. Raises `RunError` with the fault that a call reports."""
        start = perf_counter()
        status = self._repeat(
            self.built.entry, ctypes.addressof(self._blocks), self.sets, self._next, calls, self._pool
        )
        seconds = perf_counter() - start
        self._next = (self._next + calls) % self.sets
        if status:
            word = int(self._error[0])
            detail = word & 0xFFFFFFFF
            faults = self.built.signature.faults
            where = f"statement {faults[detail]}" if detail < len(faults) else self.built.signature.name
            raise RunError(word >> 32, "the kernel reported an access outside a buffer", where=where)
        return seconds

    def restore(self) -> None:
        """Give arguments that calls accumulate into what they held at first."""
        for array, before in self._restored:
            array[...] = before

    def first_results(self) -> dict[str, Array]:
        """What one call writes."""
        self.restore()
        self._next = 0
        self.run(1)
        return {name: array.copy() for name, array in self.results.items()}

    def calibrated(self) -> tuple[int, float]:
        """Warm up; how many calls a sample holds, and the seconds that one call takes."""
        self.restore()
        calls, spent = 1, 0.0
        while True:
            seconds = self.run(calls)
            spent += seconds
            if seconds >= BLOCK_SECONDS and spent >= min(WARM_SECONDS, 4 * seconds):
                return calls, seconds / calls
            if seconds < BLOCK_SECONDS:
                calls = max(calls + 1, min(calls * 10, math.ceil(calls * 1.2 * BLOCK_SECONDS / max(seconds, 1e-8))))
            self.restore()

    def sample(self, calls: int) -> tuple[float, bool]:
        """Seconds a call over one block, and whether another process took a processor from us meanwhile."""
        self.restore()
        if calls >= 8:
            self.run(1)  # what the other side put out of the caches comes back
            self.restore()
        before = _preemptions()
        seconds = self.run(calls) / calls
        return seconds, _preemptions() != before


class Bench:
    """Measures jobs in this process, one after another."""

    def __init__(self) -> None:
        self._contexts: dict[int | None, Context] = {}
        self._repeats: dict[int | None, tuple[LoadedCode, Any]] = {}

    def _context(self, threads: int | None) -> tuple[Context, Any]:
        if threads not in self._contexts:
            context = Context(ContextOptions(threads=threads, keep_bytes=0))
            code = context.jit.load(context.jit.compile_object(REPEAT_TEXT), ["tilework_repeat"])
            words = (ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p)
            self._contexts[threads] = context
            self._repeats[threads] = (code, ctypes.CFUNCTYPE(ctypes.c_int32, *words)(code["tilework_repeat"]))
        return self._contexts[threads], self._repeats[threads][1]

    def measure(
        self, jobs: list[Job], settings: Settings, room_bytes: int, phase: Callable[[str, int], None]
    ) -> dict[str, Any]:
        """Build and time one job, or two in pairs; `phase` hears what is being done, and for which side."""
        context, repeat = self._context(settings.threads)
        context.pool.ensure()
        built: list[Built] = []
        for side, job in enumerate(jobs):
            phase("build", side)
            built.append(build(job, context.jit, context.pool.code))
        buffers = Buffers(context.blocks, settings.data, settings.seed)
        sets = 1
        if settings.cold:
            largest = max(_argument_bytes(b, job) for b, job in zip(built, jobs, strict=True))
            sets = sets_for(largest, built[0].machine.last_level_bytes, room_bytes // (2 * len(jobs)))
        prepared: list[Prepared] = []
        calibration: list[tuple[int, float]] = []
        results: list[dict[str, Array]] = []
        for side, (kernel, job) in enumerate(zip(built, jobs, strict=True)):
            phase("prepare", side)  # all before the first call, which may change what both sides share
            prepared.append(Prepared(kernel, job, buffers, sets, context.pool.address, repeat))
        for side, one in enumerate(prepared):
            phase("run", side)
            results.append(one.first_results())
            calibration.append(one.calibrated())
        phase("run", 0)
        samples, disturbed = _alternate(prepared, calibration, settings.seconds, phase)
        answer = {
            "seconds": samples,
            "disturbed": disturbed,
            "kernels": [
                {"compile_seconds": b.compile_seconds, "code_bytes": b.code.size, "calls": calls}
                for b, (calls, _) in zip(built, calibration, strict=True)
            ],
            "difference": _difference(jobs, results),
            "sets": sets,
        }
        del prepared
        for kernel in built:
            kernel.code.close()
        return answer


def _preemptions() -> int:
    """How often a thread of this process had to leave its processor to another; 0 where nobody counts."""
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _argument_bytes(built: Built, job: Job) -> int:
    return sum(int(a.buffer.bytes.evaluate(job.symbols)) for a in built.program.arguments)


def _alternate(
    prepared: list[Prepared],
    calibration: list[tuple[int, float]],
    budget: float,
    phase: Callable[[str, int], None],
) -> tuple[list[list[float]], list[bool]]:
    """Samples of each side, round after round, and which rounds were disturbed."""
    one_round = sum(calls * one for calls, one in calibration)
    rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(budget / max(one_round, 1e-9))))
    samples: list[list[float]] = [[] for _ in prepared]
    disturbed: list[bool] = []
    slow = one_round > 0.25
    gc.collect()
    gc.disable()
    try:
        for order in turns(len(prepared), rounds):
            disturbed.append(False)
            for side in order:
                if slow:
                    phase("run", side)
                seconds, preempted = prepared[side].sample(calibration[side][0])
                samples[side].append(seconds)
                disturbed[-1] |= preempted
    finally:
        gc.enable()
    return samples, disturbed


def _difference(jobs: list[Job], results: list[dict[str, Array]]) -> float | None:
    """The largest difference between the results of two sides; None where they cannot be compared."""
    if len(jobs) != 2 or any(job.packed for job in jobs):
        return None
    first, second = results
    if {n: (a.shape, a.dtype) for n, a in first.items()} != {n: (a.shape, a.dtype) for n, a in second.items()}:
        return None
    worst = 0.0
    for name, array in first.items():
        wide = np.complex128 if array.dtype.kind == "c" else np.float64
        a, b = array.astype(wide), second[name].astype(wide)
        with np.errstate(invalid="ignore"):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        if apart.size:
            worst = max(worst, float(np.nan_to_num(apart, nan=np.inf, posinf=np.inf).max()))
    return worst
