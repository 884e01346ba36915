"""The trace of every recipe's schedule, through JSON: the same object code, and right or refused on other shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import conv, gemm, low_precision_gemm, memory_bound
from benchmarks.harness.engine import Engine, EngineError, Prepared, Worker
from benchmarks.harness.findings import Findings
from benchmarks.harness.result import Options, Result, check_figure
from benchmarks.harness.scheduled import scheduled
from benchmarks.operations.convolution import Convolution
from benchmarks.operations.engines import drawn, operation
from benchmarks.operations.matrix_product import MatrixProduct
from benchmarks.operations.operation import Operation

if TYPE_CHECKING:
    from tilework.compiler.kernels import RegionKernel
    from tilework.loops.program import LoopProgram
    from tilework.schedule.trace import Trace

SHAPES = 20
HERE = "benchmarks.replay"
SAME, RIGHT, REFUSED, WRONG = "same", "right", "refused", "wrong"
TOLERANCE = 1e-4
"""Of the largest value, where functions are rounded differently; sums of small integers are compared exactly."""
EXACT = ("matrix_product", "integer_product", "convolution", "sum_rows", "sum_cols", "transpose")


def subjects() -> list[Operation]:
    """Every operation that a recipe schedules."""
    return [
        *gemm.products(),
        *(row.convolution for row in conv.ROWS),
        *(row.operation for row in memory_bound.ROWS),
        *(product for product, _ in low_precision_gemm.ROWS),
    ]


def other_shape(chosen: Operation, random: np.random.Generator) -> Operation:
    """The same operation at a small, awkward size."""
    if isinstance(chosen, MatrixProduct):
        rows, depth, columns = (int(size) for size in random.integers(1, 56, 3))
        return replace(chosen, rows=rows, depth=depth, columns=columns)
    if isinstance(chosen, Convolution):
        side, channels, filters = int(random.integers(1, 9)), int(random.integers(1, 20)), int(random.integers(1, 36))
        return replace(
            chosen, rows=int(random.integers(1, 3)), side=side, channels=channels,
            filters=channels if chosen.depthwise else filters,
        )  # fmt: skip
    rows, columns = int(random.integers(1, 40)), int(random.integers(1, 120))
    return replace(chosen, rows=rows, columns=columns)  # type: ignore[call-arg]  # every other operation is of rows


# -- what runs in a process of its own ---------------------------------------------------------------------------------
def kernels(chosen: Operation) -> tuple[RegionKernel, ...]:
    """The kernels that the recipes make for an operation."""
    from tilework.compiler.compile import lower_graph
    from tilework.compiler.options import CompileOptions

    return lower_graph(chosen.graph(drawn(chosen, 0)[1]), CompileOptions()).kernels


def start(kernel: RegionKernel) -> LoopProgram:
    """The program of a kernel before anything was scheduled."""
    from tilework.candidates.joined import joined
    from tilework.compute.nest import loop_program

    return loop_program(joined(kernel.region).computation)


def through_json(trace: Trace) -> Trace:
    """The trace written and read again."""
    from tilework.schedule.trace import trace_from_json, trace_to_json

    return trace_from_json(trace_to_json(trace))


def identical(kernel: RegionKernel) -> str:
    """`same` where the replayed trace gives the same object code, byte for byte; else what differs."""
    from tilework.codegen.cpu.kernel import emit_kernel
    from tilework.codegen.cpu.llvm import compile_object
    from tilework.machine.finder import machine
    from tilework.schedule.schedule import Schedule

    host, made = machine("host"), kernel.schedule
    again = Schedule(start(kernel), made.machine, made.numerics).replay(through_json(made.trace))
    codes = [
        compile_object(
            emit_kernel(program, host, made.numerics, name="replayed", streaming=kernel.candidate.streaming).ir, host
        )
        for program in (made.program, again.program)
    ]
    return SAME if codes[0] == codes[1] else f"{len(codes[0])} and {len(codes[1])} bytes of code that differ"


def elsewhere(kernel: RegionKernel, trace: Trace, exact: bool, random: np.random.Generator) -> tuple[str, str]:
    """What a trace does on another shape's kernel: right, refused with a reason, or wrong."""
    from tilework.errors import CodegenError, ScheduleError
    from tilework.layout import packed
    from tilework.loops.interpret import interpret
    from tilework.schedule.primitives.transform_layout import argument_layouts
    from tilework.schedule.schedule import Schedule

    base = start(kernel)
    try:
        program = Schedule(base, kernel.schedule.machine, kernel.schedule.numerics).replay(trace).program
        arrays = arguments(base, random)
        names = tuple(argument.buffer.name for argument in base.arguments)
        layouts = argument_layouts(trace, names)
        if any(argument.access != "read" for argument in base.arguments if argument.buffer.name in layouts):
            return REFUSED, "a result is laid out differently"
        given = {name: packed(array, layouts.get(name, ())) for name, array in arrays.items()}
        run = scheduled(program, given, threads=2, numerics=kernel.schedule.numerics)
    except (ScheduleError, CodegenError) as refused:
        return REFUSED, f"{refused.code}: {refused.message.splitlines()[0]}"
    interpret(base, arrays, {})
    run.run()
    for argument in base.arguments:
        name = argument.buffer.name
        if argument.access != "read" and not same(arrays[name], run.arrays[name], exact):
            return WRONG, f"{name} differs"
    run.context.close()
    return RIGHT, ""


def arguments(program: LoopProgram, random: np.random.Generator) -> dict[str, Any]:
    """Small integers for everything that is read, zeros for the rest."""
    found: dict[str, Any] = {}
    for argument in program.arguments:
        kind = argument.buffer.dtype
        shape = tuple(int(extent.evaluate({})) for extent in argument.buffer.shape)
        low = 0 if kind.kind == "unsigned" else -4
        values = random.integers(low, 5, shape) if argument.access == "read" else np.zeros(shape, np.int64)
        found[argument.buffer.name] = values.astype(kind.numpy)
    return found


def same(expected: Any, found: Any, exact: bool) -> bool:
    """Whether a result is the interpreter's."""
    if exact or expected.dtype.kind in "iu":
        return np.array_equal(expected, found)
    wide, other = expected.astype(np.float64), found.astype(np.float64)
    finite = np.isfinite(wide)
    if not np.array_equal(wide[~finite], other[~finite], equal_nan=True):
        return False
    unit = TOLERANCE if expected.dtype.itemsize > 2 else 1e-2
    allowed = unit * max(1.0, float(np.abs(wide[finite]).max(initial=0.0)))
    return bool((np.abs(wide - other)[finite] <= allowed).all())


def engine(described: dict[str, Any], shapes: int, seed: int) -> Prepared:
    """Replay the traces of an operation's kernels; the facts tell what came of each."""
    chosen, random = operation(described), np.random.default_rng(seed)
    made = kernels(chosen)
    outcomes: list[tuple[str, str, str]] = []
    for _ in range(shapes):
        other = other_shape(chosen, random)
        there = kernels(other)
        if len(there) != len(made):
            outcomes.append((other.label, REFUSED, f"{len(there)} kernels instead of {len(made)}"))
            continue
        for kernel, target in zip(made, there, strict=True):
            exact = chosen.kind in EXACT
            outcome, why = elsewhere(target, through_json(kernel.schedule.trace), exact, random)
            outcomes.append((other.label, outcome, why))
    facts: Mapping[str, Any] = {"object code": [identical(kernel) for kernel in made], "outcomes": outcomes}
    return Prepared(lambda: None, facts)


def run(options: Options) -> Result:
    """Replay every operation's traces, each operation in a process of its own."""
    found = Findings(options, ["operation", "kernels", "same code", RIGHT, REFUSED, WRONG, "most frequent reason"])
    chosen = options.share(subjects(), lambda _: 8.0)
    one_code: list[bool] = []
    sound: list[bool] = []
    for each in chosen:
        label = each.label if each.element == "float32" else f"{each.element} {each.label}"
        given = {"described": each.described(), "shapes": SHAPES, "seed": options.seed}
        try:
            with Worker(Engine(label, f"{HERE}:engine", given)) as worker:
                facts = worker.facts
        except EngineError as failed:
            found.fail(label, str(failed))
            continue
        found.facts[label] = facts
        codes: list[str] = facts["object code"]
        outcomes: list[list[str]] = facts["outcomes"]
        counts = {name: sum(outcome == name for _, outcome, _ in outcomes) for name in (RIGHT, REFUSED, WRONG)}
        reasons = [why for _, outcome, why in outcomes if outcome == REFUSED]
        one_code.append(all(code == SAME for code in codes))
        sound.append(counts[WRONG] == 0)
        found.problems += [f"{label}: {code}" for code in codes if code != SAME]
        found.problems += [f"{label} at {where}: {why}" for where, outcome, why in outcomes if outcome == WRONG]
        found.rows.append([
            label,
            str(len(codes)),
            "yes" if one_code[-1] else "NO",
            *(str(counts[name]) for name in (RIGHT, REFUSED, WRONG)),
            max(set(reasons), key=reasons.count)[:60] if reasons else "",
        ])  # fmt: skip
    found.notes.append(f"operations: {chosen}; each on {SHAPES} other shapes")
    return found.result(
        check_figure("byte-identical object code", bool(one_code) and all(one_code)),
        check_figure("right or refused elsewhere", bool(sound) and all(sound)),
    )
