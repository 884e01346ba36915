"""Softmax, layer norm, sums, GELU and transposition of arrays beyond the last cache, against the memory and peers."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.gemm import best_peer, percent
from benchmarks.harness import bandwidth
from benchmarks.harness.engine import Engine
from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK
from benchmarks.harness.paired import Samples
from benchmarks.harness.result import Bar, Options, Result, ratio_figure
from benchmarks.operations import engines
from benchmarks.operations.memory import Gelu, LayerNorm, RowOperation, Softmax, SumColumns, SumRows, Transposed
from tilework.tuning.measure.statistics import Interval, median_interval

CACHED = 1 << 14
"""Elements of the body that is timed in the caches."""
SMALL, LARGER = "cached", "cached, twice"
COPIES = (bandwidth.PLAIN_COPY, bandwidth.NON_TEMPORAL_COPY)


@dataclass(frozen=True)
class Row:
    """An operation, the share of its limit that it has to reach, and the peers that have it."""

    operation: RowOperation
    share: float = 0.85
    peers: tuple[str, ...] = (ONNX_RUNTIME,)
    cached: tuple[int, int] = (16, 1024)
    """Rows and columns of the body in the caches: about 16 Ki elements."""


ROWS: tuple[Row, ...] = (
    Row(Softmax(32768, 1024)),
    Row(LayerNorm(65536, 768), cached=(21, 768)),
    Row(SumRows(8192, 8192), peers=(engines.NUMPY, ONNX_RUNTIME), cached=(2, 8192)),
    Row(SumColumns(8192, 8192), share=0.80, peers=(engines.NUMPY, ONNX_RUNTIME), cached=(128, 128)),
    Row(Gelu(4096, 3072), cached=(4, 4096)),
    Row(Transposed(4096, 4096), share=0.65, peers=(engines.NUMPY, ONNX_RUNTIME), cached=(128, 128)),
)


def cached_engines(row: Row, seed: int) -> list[Engine]:
    """The same body in the caches on one thread, at 16 Ki elements and at twice as many rows.

    The difference of the two is 16 Ki elements without what a call costs, which would be half of it.
    """
    lines, columns = row.cached
    kind = type(row.operation)
    found: list[Engine] = []
    for name, times in ((SMALL, 1), (LARGER, 2)):
        made = engines.tilework(kind(lines * times, columns), 1, seed)
        found.append(Engine(name, made.factory, made.arguments, made.environment))
    return found


def limits(row: Row, taken: Samples, threads: int) -> tuple[float, list[float]]:
    """Seconds that the arithmetic takes at least, and by round the larger of that and the better copy."""
    lines, columns = row.cached
    each = taken.difference(LARGER, SMALL).middle / (lines * columns)
    arithmetic = max(each, 0.0) * row.operation.rows * row.operation.columns / threads
    copies = [min(pair) for pair in zip(*(taken.seconds[name] for name in COPIES), strict=True)]
    return arithmetic, [max(arithmetic, copy) for copy in copies]


def share_of_limit(taken: Samples, limit: list[float]) -> Interval:
    """The limit as a share of the time that is needed."""
    return median_interval([least / ours for least, ours in zip(limit, taken.seconds[TILEWORK], strict=True)])


def time_row(found: Findings, row: Row, threads: int) -> None:
    """Measure one row: ours, both copies of as many bytes, the body in the caches, and the peers."""
    chosen, seed = row.operation, found.options.seed
    together = [
        engines.tilework(chosen, threads, seed),
        *bandwidth.copies(chosen.bytes, threads),
        *cached_engines(row, seed),
        *engines.peers(chosen, threads, seed, row.peers),
    ]
    taken = found.measure(chosen.label, together, block_seconds=0.005)
    if taken is None:
        return
    arithmetic, limit = limits(row, taken, threads)
    share = share_of_limit(taken, limit)
    best = best_peer(taken, (*row.peers, engines.TORCH))
    times = taken.ratio(best, TILEWORK)
    found.figures.append(ratio_figure(f"{chosen.label}, of its limit", share, Bar(">=", row.share)))
    found.figures.append(ratio_figure(f"{chosen.label}, {best}", times, Bar(">=", 1.0)))
    seconds = taken.median(TILEWORK)
    found.rows.append([
        chosen.label,
        f"{seconds * 1e3:.2f}",
        f"{chosen.bytes / seconds * 1e-9:.1f}",
        *(f"{taken.median(name) * 1e3:.2f}" for name in COPIES),
        f"{arithmetic * 1e3:.2f}",
        percent(share),
        f"{row.share:.0%}",
        f"{best} {taken.median(best) * 1e3:.2f}",
        f"{times.middle:.2f}",
    ])  # fmt: skip


def run(options: Options) -> Result:
    """Every row, each engine in a process of its own."""
    threads = options.threads or 2
    found = Findings(
        options,
        ["operation", "ms", "GB/s", "copy", "non-temporal", "arithmetic", "of limit", "bar", "best peer", "times"],
    )
    chosen = options.share(ROWS, lambda row: 8.0 + row.operation.bytes * 12 / 60e6 / 60)
    for row in chosen:
        time_row(found, row, threads)
    found.notes.append(f"rows: {chosen}; milliseconds; limit: the larger of the better copy and the arithmetic")
    return found.result()
