"""The products and convolutions of `gemm` and `conv` in code for x86-64-v3, against what its multiply-adds reach.

Products of 8-bit integers too, against its sums of pairs of 16-bit products, which are exact for them.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks import conv, gemm
from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import TILEWORK
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS
from benchmarks.harness.peak import peak
from benchmarks.harness.result import Bar, MissingPeerError, Options, Result, ratio_figure
from benchmarks.operations import engines
from benchmarks.operations.matrix_product import IntegerProduct
from tilework.machine.finder import machine

MACHINE = "x86-64-v3"
SHARE = 0.85
INTEGERS = tuple(IntegerProduct(*shape, packed=True) for shape in ((512, 512, 512), (196, 768, 768)))
PAIRS = "s16 dot product"


def time_integers(found: Findings, product: IntegerProduct, threads: int) -> None:
    """Measure one product of integers and tell its share of what pairs of products reach."""
    label = f"{product.element} {product.label}"
    taken = found.measure(
        label, [engines.tilework(product, threads, found.options.seed, MACHINE), peak(threads, PAIRS, MACHINE)]
    )
    if taken is None:
        return
    share = gemm.share_of_peak(taken, product.operations)
    found.figures.append(ratio_figure(f"{label}, of {PAIRS} peak", share, Bar(">=", SHARE)))
    time = taken.median(TILEWORK)
    cells = [label, f"{time * 1e6:,.1f}", gemm.rate(product.operations, time), gemm.percent(share), f"{SHARE:.0%}"]
    found.rows.append(cells)


def run(options: Options) -> Result:
    """Every row on vectors of 256 bits and 16 registers; peers choose their own code, so none is compared."""
    if not machine("host").has("avx2", "fma"):
        raise MissingPeerError("AVX2 and FMA instructions", "use a processor that has them")
    found = Findings(options, ["kernel", "us", "GFLOP/s", "of peak", "bar"])
    threads = options.threads or 1
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    everything: list[gemm.Row | conv.Row | IntegerProduct] = [
        *(replace(row, share=SHARE) for row in gemm.rows(options.threads)),
        *(replace(row, share=row.share and SHARE) for row in conv.ROWS),
        *INTEGERS,
    ]

    def cost(row: gemm.Row | conv.Row | IntegerProduct) -> float:
        if isinstance(row, IntegerProduct):
            return gemm.seconds(row.operations, threads, 2, rounds)
        if isinstance(row, gemm.Row):
            return gemm.seconds(row.product.operations, row.threads, 2, rounds)
        return gemm.seconds(row.convolution.operations, threads, 2, rounds)

    chosen = options.share(everything, cost)
    shares: dict[str, float] = {}
    for row in chosen:
        if isinstance(row, gemm.Row):
            share = gemm.time_row(found, row, MACHINE, compare=False)
            if share is not None:
                shares[row.label] = share
        elif isinstance(row, IntegerProduct):
            time_integers(found, row, threads)
        else:
            conv.time_row(found, row, threads, MACHINE, compare=False)
    found.notes.append(f"rows: {chosen}; convolutions: {gemm.threads_text(threads)}")
    return found.result(*([gemm.highest(shares)] if shares else []))
