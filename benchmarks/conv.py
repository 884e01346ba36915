"""Convolutions in float32 on one thread, against the machine's multiply-add rate, its memory, and ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.gemm import best_peer, highest, percent, rate, seconds, share_of_peak, threads_text
from benchmarks.harness import bandwidth
from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, Samples
from benchmarks.harness.peak import peak
from benchmarks.harness.result import Bar, Options, Result, ratio_figure
from benchmarks.operations import engines
from benchmarks.operations.convolution import Convolution
from tilework.tuning.measure.statistics import Interval, median_interval

RATE_SHARE, MEMORY_SHARE = 0.60, 0.85
"""What a depthwise convolution has to reach: so much of the multiply-add rate, or so much of its level's memory."""
PASSES = 16
"""Copies in one call of the yardstick, so that the call itself does not count."""


@dataclass(frozen=True)
class Row:
    """A convolution and the share of the peak that it has to reach in nominal operations (None: see the two above)."""

    convolution: Convolution
    share: float | None


ROWS: tuple[Row, ...] = (
    Row(Convolution(1, 56, 64, 64, 3), 0.97),
    Row(Convolution(1, 28, 128, 128, 3), 0.97),
    Row(Convolution(1, 14, 256, 256, 3), 0.97),
    Row(Convolution(1, 56, 64, 256, 1), 0.88),
    Row(Convolution(1, 14, 1024, 256, 1), 0.88),
    Row(Convolution(1, 224, 3, 64, 7, stride=2), 0.88),
    Row(Convolution(1, 56, 64, 64, 3, depthwise=True), None),
    Row(Convolution(1, 14, 256, 256, 3, depthwise=True), None),
)


def memory_share(taken: Samples, moved: int) -> Interval:
    """Time that the better copy needs for the bytes of a call, as a share of the time of the call."""
    copies = (bandwidth.PLAIN_COPY, bandwidth.NON_TEMPORAL_COPY)
    there = taken.facts["engines"]
    each = [
        min(taken.seconds[name][turn] / there[name]["bytes"] for name in copies) * moved / ours
        for turn, ours in enumerate(taken.seconds[TILEWORK])
    ]
    return median_interval(each)


def time_row(found: Findings, row: Row, threads: int, machine: str = "host", compare: bool = True) -> float | None:
    """Measure one convolution; returns its share of the peak."""
    chosen = row.convolution
    together = [engines.tilework(chosen, threads, found.options.seed, machine), peak(threads, machine=machine)]
    if compare:
        together += engines.peers(chosen, threads, found.options.seed, (ONNX_RUNTIME,))
    if row.share is None:
        # as many bytes as the convolution touches: a working set of the same size, in the same level of the caches
        together += bandwidth.copies(chosen.bytes, threads, PASSES, threads)
    taken = found.measure(chosen.label, together)
    if taken is None:
        return None
    share = share_of_peak(taken, chosen.operations)
    if row.share is not None:
        found.figures.append(ratio_figure(f"{chosen.label}, of peak", share, Bar(">=", row.share)))
        bar = f"{row.share:.0%}"
    else:
        of_memory = memory_share(taken, chosen.bytes)
        better = max(share.scaled(1 / RATE_SHARE), of_memory.scaled(1 / MEMORY_SHARE), key=lambda one: one.middle)
        label = f"{chosen.label}, of {RATE_SHARE:.0%} of peak or {MEMORY_SHARE:.0%} of memory"
        found.figures.append(ratio_figure(label, better, Bar(">=", 1.0)))
        bar = f"{RATE_SHARE:.0%} or {MEMORY_SHARE:.0%} of memory, is {of_memory.middle:.1%}"
    cells = [
        chosen.label,
        f"{taken.median(TILEWORK) * 1e6:,.1f}",
        rate(chosen.operations, taken.median(TILEWORK)),
        percent(share),
        bar,
    ]
    if compare:
        best = best_peer(taken, (ONNX_RUNTIME, engines.TORCH))
        times = taken.ratio(best, TILEWORK)
        found.figures.append(ratio_figure(f"{chosen.label}, {best}", times, Bar(">=", 1.0)))
        cells += [f"{taken.median(ONNX_RUNTIME) * 1e6:,.1f}", f"{times.middle:.2f}"]
    found.rows.append(cells)
    return share.middle


def run(options: Options) -> Result:
    """Every convolution, each engine in a process of its own."""
    threads = options.threads or 1
    found = Findings(options, ["convolution", "us", "GFLOP/s", "of peak", "bar", f"{ONNX_RUNTIME} us", "times"])
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    chosen = options.share(ROWS, lambda row: seconds(row.convolution.operations, threads, 5, rounds))
    shares: dict[str, float] = {}
    for row in chosen:
        share = time_row(found, row, threads)
        # padding taps that are skipped are no work, so that nominal operations may go beyond the peak
        if share is not None and row.convolution.window == 1:
            shares[row.convolution.label] = share
    found.notes.append(f"rows: {chosen}; {threads_text(threads)}")
    return found.result(*([highest(shares)] if shares else []))
