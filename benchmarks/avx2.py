"""The products and convolutions of `gemm` and `conv` in code for x86-64-v3, against what its multiply-adds reach."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import conv, gemm
from benchmarks.harness.findings import Findings
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS
from benchmarks.harness.result import MissingPeerError, Options, Result
from tilework.machine.finder import machine

MACHINE = "x86-64-v3"
SHARE = 0.85


def run(options: Options) -> Result:
    """Every row on vectors of 256 bits and 16 registers; peers choose their own code, so none is compared."""
    if not machine("host").has("avx2", "fma"):
        raise MissingPeerError("AVX2 and FMA instructions", "use a processor that has them")
    found = Findings(options, ["kernel", "us", "GFLOP/s", "of peak", "bar"])
    threads = options.threads or 1
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    everything: list[gemm.Row | conv.Row] = [
        *(replace(row, share=SHARE) for row in gemm.rows(options.threads)),
        *(replace(row, share=row.share and SHARE) for row in conv.ROWS),
    ]

    def cost(row: gemm.Row | conv.Row) -> float:
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
        else:
            conv.time_row(found, row, threads, MACHINE, compare=False)
    found.notes.append(f"rows: {chosen}; convolutions: {gemm.threads_text(threads)}")
    return found.result(*([gemm.highest(shares)] if shares else []))
