"""Matrix products of bfloat16 and of 8-bit integers, against the machine's dot-product instructions."""

from __future__ import annotations

from benchmarks.gemm import highest, percent, rate, seconds, share_of_peak, threads_text
from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import TILEWORK
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS
from benchmarks.harness.peak import BODIES, peak
from benchmarks.harness.result import Bar, MissingPeerError, Options, Result, check_figure, ratio_figure
from benchmarks.operations import engines
from benchmarks.operations.matrix_product import Bfloat16Product, IntegerProduct, MatrixProduct
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.machine.finder import machine

SHARE = 0.92
ROWS: tuple[tuple[MatrixProduct, str], ...] = tuple(
    (kind(*shape, packed=True), body)
    for kind, body in ((Bfloat16Product, "bf16 dot product"), (IntegerProduct, "u8s8 dot product"))
    for shape in ((512, 512, 512), (196, 768, 768))
)
"""Products, their weights known when compiled, and the instruction that bounds them."""


INSTRUCTIONS = {"bf16 dot product": "dpbf16ps", "u8s8 dot product": "vpdpbusd"}


def has_instruction(product: MatrixProduct, body: str) -> bool:
    """Whether the code for a product holds the dot-product instruction at all."""
    graph = product.graph(engines.drawn(product, 0)[1])
    return any(INSTRUCTIONS[body] in text for text in lower_graph(graph, CompileOptions()).llvm)


def run(options: Options) -> Result:
    """Every product; one that generated code has no dot products for is measured, and misses its bar."""
    threads = options.threads or 1
    for body in dict.fromkeys(body for _, body in ROWS):
        if not machine("host").has(*BODIES[body].needs):
            raise MissingPeerError(f"{body} instructions", "use a processor that has them")
    found = Findings(options, ["product", "us", "Gop/s", "of peak", "bar"])
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    chosen = options.share(ROWS, lambda row: seconds(row[0].operations, threads, 2, rounds))
    shares: dict[str, float] = {}
    for product, body in chosen:
        label = f"{product.element} {product.label}"
        taken = found.measure(label, [engines.tilework(product, threads, options.seed), peak(threads, body)])
        if taken is None:
            continue
        if not has_instruction(product, body):
            found.problems.append(f"{label}: the code has no {INSTRUCTIONS[body]}; no schedule offers one yet")
            found.figures.append(check_figure(f"{label}, {INSTRUCTIONS[body]} in the code", passed=False))
        share = share_of_peak(taken, product.operations)
        shares[label] = share.middle
        found.figures.append(ratio_figure(f"{label}, of peak", share, Bar(">=", SHARE)))
        time = taken.median(TILEWORK)
        found.rows.append([label, f"{time * 1e6:,.1f}", rate(product.operations, time), percent(share), f"{SHARE:.0%}"])
    found.notes.append(f"rows: {chosen}; {threads_text(threads)}")
    return found.result(*([highest(shares)] if shares else []))
