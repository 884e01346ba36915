"""Matrix products in float32 against the machine's own multiply-add rate, numpy with OpenBLAS, and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, Samples
from benchmarks.harness.peak import PEAK, peak
from benchmarks.harness.result import Bar, Figure, Options, Result, ratio_figure
from benchmarks.operations import engines
from benchmarks.operations.matrix_product import MatrixProduct
from benchmarks.operations.operation import Operation
from tilework.tuning.measure.statistics import Interval

MOST = 1.01
"""Of the peak: more is a mistake of the measurement, unless work is skipped."""
EXPECTED_RATE = 30e9
"""Operations a second and thread that the time of a run is guessed with."""


@dataclass(frozen=True)
class Row:
    """A product, how many threads compute it, and the share of the peak that it has to reach."""

    product: MatrixProduct
    threads: int
    share: float

    @property
    def label(self) -> str:
        return f"{self.product.label}, {threads_text(self.threads)}"


def threads_text(count: int) -> str:
    """So many threads in words."""
    return "1 thread" if count == 1 else f"{count} threads"


SHARES: tuple[tuple[MatrixProduct, float, float], ...] = (
    (MatrixProduct(512, 512, 512), 0.95, 0.92),
    (MatrixProduct(197, 768, 768, packed=True), 0.95, 0.92),
    (MatrixProduct(127, 131, 257), 0.92, 0.85),
    (MatrixProduct(32, 768, 3072, packed=True), 0.85, 0.82),
    (MatrixProduct(1024, 1024, 1024), 0.90, 0.88),
    (MatrixProduct(2048, 2048, 2048), 0.90, 0.88),
)
"""Products with their bars on one thread and on two."""


def rows(threads: int | None) -> list[Row]:
    """Every row; for another number of threads the bar of two."""
    counts = (1, 2) if threads is None else (threads,)
    return [Row(product, n, one if n == 1 else two) for n in counts for product, one, two in SHARES]


def seconds(operations: int, threads: int, count: int, rounds: int) -> float:
    """About how long a row of so many engines takes: each is built, and each round runs a block of at least 20 ms."""
    each = max(0.02, operations / EXPECTED_RATE / threads)
    return count * (3.0 + each * (rounds + 4))


def share_of_peak(taken: Samples, operations: int, ours: str = TILEWORK) -> Interval:
    """Operations a second of an engine, as a share of the probe's that ran beside it."""
    there = taken.facts["engines"][PEAK]["operations"]
    return taken.ratio(PEAK, ours).scaled(operations / there)


def best_peer(taken: Samples, names: Sequence[str]) -> str:
    """The fastest of the peers that ran."""
    return min((name for name in names if name in taken.seconds), key=taken.median)


def highest(shares: dict[str, float]) -> Figure:
    """The largest share of the peak of any row: none may be beyond it."""
    label = max(shares, key=lambda name: shares[name], default="")
    return Figure(f"most of the peak ({label})", shares.get(label, float("nan")), "x", Bar("<=", MOST))


def percent(share: Interval) -> str:
    """A share with its interval."""
    return f"{share.middle:.1%} [{share.low:.1%}, {share.high:.1%}]"


def rate(operations: int, seconds: float) -> str:
    """Operations a second, in thousand millions."""
    return f"{operations / seconds * 1e-9:.1f}"


def time_row(found: Findings, row: Row, machine: str = "host", compare: bool = True) -> float | None:
    """Measure one row and tell its share of the peak."""
    product, peers = row.product, (engines.NUMPY, ONNX_RUNTIME)
    together = [
        engines.tilework(product, row.threads, found.options.seed, machine),
        peak(row.threads, machine=machine),
        *(engines.peers(product, row.threads, found.options.seed, peers) if compare else []),
    ]
    taken = found.measure(row.label, together)
    if taken is None:
        return None
    share = share_of_peak(taken, product.operations)
    found.figures.append(ratio_figure(f"{row.label}, of peak", share, Bar(">=", row.share)))
    cells = [
        row.label,
        f"{taken.median(TILEWORK) * 1e6:,.1f}",
        rate(product.operations, taken.median(TILEWORK)),
        percent(share),
        f"{row.share:.0%}",
    ]
    if compare:
        best = best_peer(taken, (*peers, engines.TORCH))
        found.figures.append(ratio_figure(f"{row.label}, {best}", taken.ratio(best, TILEWORK), Bar(">=", 1.0)))
        cells += [rate(product.operations, taken.median(name)) for name in peers]
        cells += [f"{taken.ratio(best, TILEWORK).middle:.2f}"]
    found.rows.append(cells)
    return share.middle


def run(options: Options) -> Result:
    """Every product on one thread and on two, each engine in a process of its own."""
    found = Findings(
        options,
        ["product", "us", "GFLOP/s", "of peak", "bar", f"{engines.NUMPY} GFLOP/s", f"{ONNX_RUNTIME} GFLOP/s", "times"],
    )
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    chosen = options.share(rows(options.threads), lambda row: seconds(row.product.operations, row.threads, 4, rounds))
    shares: dict[str, float] = {}
    for row in chosen:
        share = time_row(found, row)
        if share is not None:
            shares[row.label] = share
    found.notes.append(f"rows: {chosen}")
    return found.result(highest(shares))


def products() -> list[Operation]:
    """Every product once."""
    return [product for product, _, _ in SHARES]
