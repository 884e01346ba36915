"""`tilework.report(schedule)`: what a schedule does and what bounds it, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tilework.candidates.candidate import Candidate
from tilework.cost.accesses import bound
from tilework.cost.counts import (
    AccessCount,
    Footprints,
    LoopCount,
    StatementCount,
    Work,
    access_counts,
    loop_counts,
    statement_counts,
)
from tilework.cost.roofline import Prediction, Roofline, assumed, predict
from tilework.cost.traffic import Traffic, traffic
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass
from tilework.loops.program import LoopProgram
from tilework.loops.verify import verify
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine
from tilework.report.code import CodeSize, code_size
from tilework.report.text import report_text
from tilework.report.tree import TreeLine, tree_lines
from tilework.runtime.settings import whole_number
from tilework.schedule.pressure import LoopPressure, register_pressure
from tilework.schedule.schedule import Schedule
from tilework.tuning.measure.probe import probe

_NO_SYMBOLS: Mapping[str, int] = {}


@dataclass(frozen=True)
class LevelReport:
    """One level of memory, and what comes from it.

    `capacity` is None for memory itself. `intensity` is operations a byte moved from here; `attainable` the most
    operations a second that this allows.
    """

    traffic: Traffic
    capacity: int | None
    bandwidth: float
    intensity: float
    attainable: float


@dataclass(frozen=True)
class ReportData:
    """Everything that a report says. Counts are exact where their `exact` says so; traffic is a model's."""

    name: str
    machine: CpuMachine
    symbols: Mapping[str, int]
    trace: tuple[str, ...]
    work: Work
    statements: tuple[StatementCount, ...]
    accesses: tuple[AccessCount, ...]
    loops: tuple[LoopCount, ...]
    levels: tuple[LevelReport, ...]
    pressure: tuple[LoopPressure, ...]
    roofline: Roofline
    prediction: Prediction
    code: CodeSize
    tree: tuple[TreeLine, ...]
    bits: int
    """Width of the floating numbers that the work is done on."""

    @property
    def exact(self) -> bool:
        """Whether every count is exact."""
        return all(one.exact for group in (self.statements, self.accesses, self.loops) for one in group)


@dataclass(frozen=True)
class Report:
    """A report: `data`, and `print(report)` for people (never wider than 120 columns)."""

    data: ReportData

    def __str__(self) -> str:
        return report_text(self.data)


def report(
    subject: Schedule | Candidate,
    *,
    symbols: Mapping[str, int] = _NO_SYMBOLS,
    roofline: Roofline | Literal["assumed", "probe"] = "assumed",
    threads: int = 1,
) -> Report:
    """What a schedule does at the given values of its symbols, and what bounds it; nothing of it is run.

    Work, accesses, footprints and reuse are counted exactly (an upper bound where data decide, or past some millions of
    points that must be counted together). Bytes fetched into each cache follow `cost.traffic`. `roofline`: the
    machine's limits, `assumed` from its data, measured here first (`probe`, some seconds), or given.

    Raises:
        UsageError: 1770 for anything but a schedule or candidate for a CPU, 1771 for no roofline, 1002 for threads or
            symbols that make no sense.
        LoopProgramError: 1310 for a symbol without a value.
        VerificationError: 13xx for a program that is wrong in itself, or at these sizes.
        RunError: 1761, 1765 where the probe does not run.
    """
    schedule, target, streaming = _scheduled(subject)
    schedule = schedule.started()
    program = _at_sizes(schedule, symbols)
    limits = _limits(roofline, target, whole_number("threads", threads, "threads"))
    footprints = Footprints(program, target.line_bytes)
    accesses = access_counts(program)
    counted = statement_counts(program)
    work = sum((one.work for one in counted), Work())
    loops = loop_counts(program, footprints)
    moved = traffic(program, target.caches, accesses, footprints, streaming)
    bits = _bits(program)
    pressure = register_pressure(program, target)
    return Report(
        ReportData(
            program.name,
            target,
            dict(symbols),
            tuple(map(str, schedule.trace)),
            work,
            counted,
            accesses,
            loops,
            _levels(moved, target, limits, work, bits),
            pressure,
            limits,
            predict(work, moved, limits, bits),
            code_size(schedule, target, streaming),
            tree_lines(program, footprints, target),
            bits,
        )
    )


def _at_sizes(schedule: Schedule, symbols: Mapping[str, int]) -> LoopProgram:
    """The program with integers for its symbols, verified at these sizes: all accesses are inside their buffers."""
    program = bound(schedule.program, symbols)
    known = [symbol.name for symbol in schedule.program.symbols]
    unknown = [name for name in symbols if name not in known]
    if unknown:
        hint = f"the symbols are: {', '.join(known) or 'none'}"
        raise UsageError(1002, f"there is no symbol {', '.join(map(repr, unknown))}", where="symbols", hint=hint)
    if schedule.origin is not None and known:
        verify(bound(schedule.origin, symbols))
    return program


def _scheduled(subject: Schedule | Candidate) -> tuple[Schedule, CpuMachine, frozenset[str]]:
    """The schedule, the processor that it is for, and the buffers that are written past the caches."""
    streaming: frozenset[str] = frozenset()
    schedule: object = subject
    if isinstance(subject, Candidate):
        streaming, schedule = subject.streaming, subject.schedule()
    if not isinstance(schedule, Schedule):
        raise UsageError(1770, f"a {type(subject).__name__} is no schedule")
    target = schedule.machine if schedule.machine is not None else machine("host")
    if not isinstance(target, CpuMachine):
        raise UsageError(1770, "the schedule's machine is no CPU")
    return schedule, target, streaming


def _limits(roofline: object, target: CpuMachine, threads: int) -> Roofline:
    if isinstance(roofline, Roofline):
        return roofline
    if roofline == "probe":
        return probe(threads=threads)
    if roofline == "assumed":
        return assumed(target, threads)
    raise UsageError(1771, f"roofline={roofline!r} is no roofline", where="roofline")


def _levels(
    moved: tuple[Traffic, ...], target: CpuMachine, limits: Roofline, work: Work, bits: int
) -> tuple[LevelReport, ...]:
    sizes = {f"L{cache.level}": cache.bytes for cache in target.caches}
    return tuple(
        LevelReport(
            one,
            sizes.get(one.source),
            limits.bandwidth(one.source),
            work.flops / one.bytes if one.bytes else float("inf"),
            limits.attainable(work.flops, one, bits),
        )
        for one in moved
    )


def _bits(program: LoopProgram) -> int:
    found = [b.dtype.bits for b in program.buffers.values() if b.dtype.is_floating]
    return max(found, default=32)
