"""Kernels for any number of rows (or any batch), one object for all, against kernels made for each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from benchmarks import conv, gemm, memory_bound
from benchmarks.gemm import seconds, threads_text
from benchmarks.harness.engine import EngineError, Worker
from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import TILEWORK
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, measure_workers
from benchmarks.harness.result import Bar, Options, Result, check_figure, ratio_figure
from benchmarks.operations import engines
from benchmarks.operations.operation import Operation

COUNTS = (1, 7, 64, 197, 512)
SHARE = 0.93
MOST_BYTES = 1 << 31
"""Bytes that a call may touch: where 512 of something would be more, the smaller numbers are measured."""


@dataclass(frozen=True)
class Row:
    """An operation and the threads it runs on."""

    operation: Operation
    threads: int
    what: str

    @property
    def label(self) -> str:
        label = self.operation.with_rows(0).label
        return f"{self.what} {label.replace('0 of ', 'M of ').replace('0x', 'Mx', 1)}, {threads_text(self.threads)}"


def rows(threads: int | None) -> list[Row]:
    """The rows of the three benchmarks: products on one thread and two, convolutions on one, the rest on two."""
    found = [
        Row(operation, count, "product")
        for count in ((1, 2) if threads is None else (threads,))
        for operation in gemm.products()
    ]
    found += [Row(row.convolution, threads or 1, "convolution") for row in conv.ROWS]
    return found + [Row(row.operation, threads or 2, "") for row in memory_bound.ROWS]


def pairs(threads: int | None) -> list[tuple[Row, int]]:
    """Every row with every number that it is measured at."""
    return [
        (row, count) for row in rows(threads) for count in COUNTS if row.operation.with_rows(count).bytes <= MOST_BYTES
    ]


def time_row(found: Findings, row: Row, counts: Sequence[int]) -> list[bool]:
    """Measure one operation at some numbers of rows; whether one object served all."""
    given = (row.operation, counts, row.threads, found.options.seed)
    label = row.label.strip()
    with contextlib.ExitStack() as stack:
        try:
            workers = {
                engine.name: stack.enter_context(Worker(engine))
                for engine in (
                    engines.at_many_rows(*given, symbolic=True),
                    engines.at_many_rows(*given, symbolic=False),
                )
            }
            for count in counts:
                for worker in workers.values():
                    worker.select(str(count))
                taken = measure_workers(workers, rounds=found.rounds)
                found.keep(f"{label}, M = {count}", taken)
                share = taken.ratio(engines.CONSTANT, TILEWORK)
                found.figures.append(ratio_figure(f"{label}, M = {count}", share, Bar(">=", SHARE)))
                found.rows.append([
                    label,
                    str(count),
                    f"{taken.median(TILEWORK) * 1e6:,.1f}",
                    f"{taken.median(engines.CONSTANT) * 1e6:,.1f}",
                    f"{share.middle:.3f} [{share.low:.3f}, {share.high:.3f}]",
                ])  # fmt: skip
        except EngineError as failed:
            found.fail(label, str(failed))
            return []
        return [workers[TILEWORK].facts["objects"] == 1]


def run(options: Options) -> Result:
    """Every operation, symbolic and constant in processes of their own, alternating at each number of rows."""
    found = Findings(options, ["operation", "M", "symbolic us", "constant us", "of constant"])
    rounds = QUICK_ROUNDS if options.quick else ROUNDS

    def cost(pair: tuple[Row, int]) -> float:
        row, count = pair
        return seconds(row.operation.with_rows(count).operations, row.threads, 2, rounds)

    chosen = options.share(pairs(options.threads), cost)
    one: list[bool] = []
    for row, together in groupby(chosen, key=lambda pair: pair[0]):
        one += time_row(found, row, [count for _, count in together])
    found.notes.append(f"pairs of operation and M: {chosen}")
    return found.result(check_figure("one object for all M", bool(one) and all(one)))
