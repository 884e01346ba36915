"""How long the kernels of the other benchmarks take to lower and to generate, and to load again from their bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import changed_computation, conv, gemm, low_precision_gemm, memory_bound
from benchmarks.harness.engine import Engine, EngineError, Prepared, Worker
from benchmarks.harness.findings import Findings
from benchmarks.harness.result import Bar, Figure, Options, Result
from benchmarks.operations.engines import drawn, operation
from benchmarks.operations.operation import Operation
from tilework.tuning.measure.statistics import median

if TYPE_CHECKING:
    from tilework.codegen.cpu.kernel import KernelText

MEDIAN_MS, WORST_MS, RELOAD_MS = 30.0, 120.0, 0.2
REPEATS, QUICK_REPEATS = 9, 5
RELOADS = 25
HERE = "benchmarks.kernel_compile"


@dataclass(frozen=True)
class Subject:
    """Kernels to compile: those of an operation, for one size or for any number of rows, or a changed computation."""

    label: str
    operation: Operation | None = None
    symbolic: bool = False
    changed: str = ""


def subjects() -> list[Subject]:
    """Everything that the benchmarks of kernels run."""
    constant: list[Operation] = [
        *gemm.products(),
        *(row.convolution for row in conv.ROWS),
        *(row.operation for row in memory_bound.ROWS),
    ]
    found = [Subject(each.label, each) for each in constant]
    found += [Subject(f"{each.label}, any M", each, symbolic=True) for each in constant]
    found += [Subject(f"{each.element} {each.label}", each) for each, _ in low_precision_gemm.ROWS]
    return found + [Subject(name, changed=name) for name in changed_computation.CHANGED]


def _milliseconds(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median time of a call, and what it returned last."""
    each: list[float] = []
    result: Any = None
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        each.append((time.perf_counter() - start) * 1e3)
    return median(each), result


def _kernels(subject: dict[str, Any]) -> list[tuple[Callable[[], Any], Callable[[Any], KernelText]]]:
    """For each kernel, how to build its schedule and how to lower that."""
    from tilework.codegen.cpu.kernel import emit_kernel
    from tilework.compiler.compile import lower_graph
    from tilework.compiler.options import CompileOptions
    from tilework.machine.finder import machine

    host = machine("host")
    if subject["changed"]:
        name = subject["changed"]
        return [(
            lambda: changed_computation.made(name, changed_computation.SIZE, host),
            lambda schedule: emit_kernel(schedule.program, host, schedule.numerics),
        )]  # fmt: skip
    chosen = operation(subject["described"])
    graph = chosen.graph(drawn(chosen, 0)[1], subject["symbolic"])
    return [
        (
            kernel.candidate.schedule,
            lambda schedule, streaming=kernel.candidate.streaming: emit_kernel(
                schedule.program, host, schedule.numerics, streaming=streaming
            ),
        )
        for kernel in lower_graph(graph, CompileOptions()).kernels
    ]


def engine(subject: dict[str, Any], repeats: int) -> Prepared:
    """Compile what a subject has; the facts tell milliseconds for each kernel."""
    from tilework.runtime.context import Context, ContextOptions

    context = Context(ContextOptions(threads=1))
    jit, pool = context.jit, context.pool  # both are there, and LLVM is warm, before anything is timed
    jit.compile_object("define i32 @warm() {\n  ret i32 0\n}\n")
    found: list[dict[str, float]] = []
    for schedule, lower in _kernels(subject):
        scheduling, scheduled = _milliseconds(schedule, repeats)
        lowering, text = _milliseconds(lambda scheduled=scheduled, lower=lower: lower(scheduled), repeats)
        generation, code = _milliseconds(lambda text=text: jit.compile_object(text.ir), repeats)
        loads: list[float] = []
        for _ in range(RELOADS):
            start = time.perf_counter()
            loaded = jit.load(code, text.exports, uses=[pool.code])
            loads.append((time.perf_counter() - start) * 1e3)
            loaded.close()
        found.append(
            {
                "schedule": scheduling,
                "lower": lowering,
                "generate": generation,
                "reload": median(loads),
                "bytes": len(code),
                "lines": text.ir.count("\n"),
            }
        )
    return Prepared(lambda: None, {"kernels": found}, close=context.close)


def run(options: Options) -> Result:
    """Compile everything, each subject in a process of its own."""
    found = Findings(
        options, ["kernel", "schedule ms", "lower ms", "generate ms", "both ms", "reload ms", "kB", "lines"]
    )
    repeats = QUICK_REPEATS if options.quick else REPEATS
    chosen = options.share(subjects(), lambda _: 4.0)
    both: dict[str, float] = {}
    reloads: list[float] = []
    for subject in chosen:
        given = {
            "described": subject.operation.described() if subject.operation is not None else {},
            "symbolic": subject.symbolic,
            "changed": subject.changed,
        }
        try:
            with Worker(Engine(subject.label, f"{HERE}:engine", {"subject": given, "repeats": repeats})) as worker:
                kernels: list[dict[str, float]] = worker.facts["kernels"]
        except EngineError as failed:
            found.fail(subject.label, str(failed))
            continue
        found.facts[subject.label] = kernels
        for number, each in enumerate(kernels):
            label = subject.label if len(kernels) == 1 else f"{subject.label}, {number + 1} of {len(kernels)}"
            both[label] = each["lower"] + each["generate"]
            reloads.append(each["reload"])
            found.rows.append([
                label,
                *(f"{each[name]:.1f}" for name in ("schedule", "lower", "generate")),
                f"{both[label]:.1f}",
                f"{each['reload']:.3f}",
                f"{each['bytes'] / 1e3:.1f}",
                f"{each['lines']:.0f}",
            ])  # fmt: skip
    found.notes.append(f"kernels of {chosen} subjects; a schedule's own primitives are not in the figures")
    if not both:
        return found.result()
    slowest = max(both, key=lambda label: both[label])
    return found.result(
        Figure("median", median(list(both.values())), "ms", Bar("<=", MEDIAN_MS)),
        Figure(f"worst ({slowest})", both[slowest], "ms", Bar("<=", WORST_MS)),
        Figure("reload", median(reloads), "ms", Bar("<=", RELOAD_MS)),
    )
