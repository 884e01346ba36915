"""The whole way of a model in print: graph, regions, a trace, a loop program, code, plan, time by stage."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from tilework.compiler.compile import Compiled
from tilework.compiler.kernels import RegionKernel
from tilework.dims import Dim
from tilework.graph.text import to_text as graph_text
from tilework.loops.text import program_text
from tilework.plan.explanation import Explanation
from tilework.plan.plan import step_count
from tilework.plan.text import plan_text

WIDTH = 116
"""Columns that a line may take."""


def fitted(line: str, width: int = WIDTH) -> str:
    """Return a line, cut where it is too wide."""
    return line if len(line) <= width else line[: width - 1] + "…"


def shortened(text: str, most: int = 36) -> str:
    """Return a text with long quoted names cut to their ends: real models have names like paths."""

    def name(found: re.Match[str]) -> str:
        quote, inside = found[1], found[2]
        return f"{quote}{inside if len(inside) <= most else '…' + inside[1 - most :]}{quote}"

    return re.sub(r"""(["`])([^"`]*)\1""", name, text)


def wrapped(text: str) -> Iterator[str]:
    """Yield a long list in lines, indented."""
    yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False)


def excerpt(lines: Iterable[str], most: int) -> Iterator[str]:
    """Yield the first lines, indented, and say how many are left out."""
    every = list(lines)
    for line in every[:most]:
        yield fitted("  " + shortened(line))
    if len(every) > most:
        yield f"  … {len(every) - most} more lines"


def size(count: int) -> str:
    """Return a number of bytes for a reader."""
    return f"{count:,} bytes" if count < 100_000 else f"{count / 1e6:.2f} MB"


def anatomy(done: Compiled, explanation: Explanation, batch: int) -> Iterator[str]:
    """Yield the lines that show every stage of a compilation; free dimensions count as `batch`."""
    values = {symbol.name: batch for symbol in done.graph.symbols}
    yield from _graph(done)
    yield from _regions(done, values)
    yield from _kernel(max(done.kernels, key=lambda kernel: _flops(done, kernel, values)))
    yield from _code(done, explanation)
    yield from _plan(done, values)
    yield from _stages(explanation)


def _graph(done: Compiled) -> Iterator[str]:
    graph = done.graph
    operators = Counter(node.operator for node in graph.nodes)
    frequent = ", ".join(f"{count} {name}" for name, count in operators.most_common(8))
    held = sum(constant.array.nbytes for constant in graph.constants)
    yield ""
    yield f"GRAPH: {len(graph.nodes)} operators after simplification, {len(graph.constants)} constants, {size(held)}"
    yield fitted(f"  {frequent}, …" if len(operators) > 8 else f"  {frequent}")
    lines = [line for line in graph_text(graph).splitlines() if not line.startswith("  constant ")]
    yield from excerpt(lines, 16)


def _regions(done: Compiled, values: dict[str, int]) -> Iterator[str]:
    regions = done.explanation.regions
    yield ""
    yield f"REGIONS: {len(regions)}, each one kernel; operators, floating-point operations and bytes at batch 1"
    shown = sorted(range(len(regions)), key=lambda n: -_value(regions[n].flops, values))[:12]
    for number in sorted(shown):
        region = regions[number]
        counts = f"{_value(region.flops, values):>11,} {_value(region.bytes, values):>11,}"
        yield fitted(f"  {number:3} {counts}  {', '.join(region.operators)}")
    if len(regions) > len(shown):
        yield f"  … {len(regions) - len(shown)} smaller ones"


def _kernel(kernel: RegionKernel) -> Iterator[str]:
    yield ""
    yield fitted(f"TRACE of the largest region, {kernel.region.name} ({', '.join(kernel.region.operators)}):")
    yield fitted(f"  {kernel.candidate.recipe}: {kernel.candidate.note}")
    steps = list(map(str, kernel.schedule.trace)) or ["(the plain loop nest)"]
    yield from excerpt(steps, 16)
    yield ""
    yield "LOOP PROGRAM that the trace makes:"
    yield from excerpt(program_text(kernel.program).splitlines(), 40)


def _code(done: Compiled, explanation: Explanation) -> Iterator[str]:
    kernels = {kernel.kernel.name for kernel in done.kernels}
    lines = sum(text.count("\n") for text in done.llvm)
    yield ""
    yield (
        f"CODE: {size(explanation.code_bytes)} from {lines:,} lines of LLVM IR; {len(kernels)} kernels serve "
        f"{len(done.kernels)} regions; machine {explanation.machine}, numerics {explanation.numerics}"
    )


def _plan(done: Compiled, values: dict[str, int]) -> Iterator[str]:
    plan = done.plan
    steps = Counter(type(step).__name__.removesuffix("Step").lower() for _, step in plan.walk())
    places = Counter(type(buffer.place).__name__.removesuffix("Place").lower() for buffer in plan.buffers)
    arena = sum(_value(arena.bytes, values) for arena in plan.arenas)
    apart = sum(_value(buffer.bytes, values) for buffer in plan.buffers if "arena" in buffer.memory)
    yield ""
    yield f"PLAN: {step_count(plan)} steps ({_counted(steps)}), {len(plan.buffers)} buffers ({_counted(places)})"
    yield f"  arena at batch 1: {size(arena)} for buffers of {size(apart)} that share it"
    lines = plan_text(plan).splitlines()
    first = next((place for place, line in enumerate(lines) if line.startswith("segment ")), 0)
    yield from excerpt([line for line in lines[:first] if not line.startswith("  buffer ")], 12)
    yield from excerpt(lines[first:], 12)


def _stages(explanation: Explanation) -> Iterator[str]:
    yield ""
    yield f"COMPILE TIME: {explanation.total_milliseconds:.0f} ms"
    yield from wrapped(", ".join(f"{stage} {spent:.1f} ms" for stage, spent in explanation.compile_milliseconds))


def _flops(done: Compiled, kernel: RegionKernel, values: dict[str, int]) -> int:
    named = {region.name: region.flops for region in done.explanation.regions}
    return _value(named[kernel.region.name], values)


def _value(count: Dim | None, values: dict[str, int]) -> int:
    return 0 if count is None else int(count.evaluate(values))


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
