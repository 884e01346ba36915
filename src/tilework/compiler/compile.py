"""`compile_graph`: all stages in order, each timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tilework.codegen.cpu.driver import emit_driver
from tilework.codegen.cpu.kernel import KernelText
from tilework.compiler.blocks import block_of
from tilework.compiler.copies import copies
from tilework.compiler.cut import cut_at_boxes, refuse_what_is_not_compiled
from tilework.compiler.explained import explained_together
from tilework.compiler.kernels import RegionKernel, region_kernels
from tilework.compiler.options import CompileOptions
from tilework.compiler.overlap import CodeMaker
from tilework.compiler.plan_items import planned_block
from tilework.compiler.planning import build_plan, is_view
from tilework.compiler.stacking import RowKernels
from tilework.decisions.attention import attentions
from tilework.dims import Dim, total
from tilework.fast_dataclass import dataclass, field
from tilework.garbage import no_collections
from tilework.graph.graph import Graph
from tilework.graph.verify import verify as verify_graph
from tilework.layout import ALIGNMENT, aligned
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine as machine_named
from tilework.machine.host import check_runs_here
from tilework.memory.arenas import place_arenas
from tilework.numerics import numerics
from tilework.ops.interpret import BlackBoxFunction
from tilework.ops.registry import operator
from tilework.passes.distinct_names import DistinctNames
from tilework.passes.integer_products import IntegerProducts
from tilework.passes.pipeline import REGROUPING_PASSES, Pipeline
from tilework.plan.buffers import ConstantPlace
from tilework.plan.explanation import Explanation, RegionExplanation
from tilework.plan.plan import Plan
from tilework.plan.steps import Repeat
from tilework.runtime.boxed import BoxCall, BoxedExecutable, CompiledPart
from tilework.runtime.context import Context, default_context
from tilework.runtime.executable import Executable
from tilework.runtime.processors import available_processors
from tilework.runtime.sections import Parts

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

DRIVER = "tilework_plan"


@dataclass
class Stages:
    """Milliseconds of each stage, in order."""

    times: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        start = time.perf_counter()
        yield
        self.times.append((name, (time.perf_counter() - start) * 1e3))


@dataclass(frozen=True, eq=False)
class Compiled:
    """Every stage's result, for those who want to look: `tilework compile --emit` prints them."""

    graph: Graph
    kernels: tuple[RegionKernel, ...]
    plan: Plan
    constants: Mapping[str, Array]
    """What the plan's constants hold, by digest; packed as kernels want them."""
    llvm: tuple[str, ...]
    """One module a kernel, and the driver's last."""
    entries: tuple[str, ...]
    """The names of all kernels."""
    explanation: Explanation


def lower_graph(
    graph: Graph,
    options: CompileOptions,
    stages: Stages | None = None,
    ready: Callable[[KernelText], None] | None = None,
) -> Compiled:
    """All stages but code generation by LLVM, for any machine: graph to plan and LLVM text.

    `ready` is told of each kernel as soon as its text is there.
    """
    stages = stages or Stages()
    machine = machine_named(options.machine)
    with stages("verify"):
        verify_graph(graph)
        refuse_what_is_not_compiled(graph)
    with stages("simplify"):
        if numerics(options.numerics).reassociate:
            graph = Pipeline(REGROUPING_PASSES).run(IntegerProducts().run(graph))
        else:
            graph = Pipeline().run(graph)
    with stages("fuse"):
        find = partial(attentions, machine=machine, numerics=numerics(options.numerics))
        block = block_of(DistinctNames().run(graph), find)
        found = tuple(block.regions())
    with stages("kernels"):
        in_place = block.in_place()
        needed = tuple(region for region in found if region.root.name not in in_place and not is_view(region))
        contents = {name: array for inner in block.graphs() for name, array in inner.constant_arrays.items()}
        kernels = {k.region.name: k for k in region_kernels(needed, machine, options, contents, ready)}
        rows = RowKernels(machine, numerics(options.numerics), options.checked)
        planned = planned_block(block, kernels, rows)
        if ready is not None:
            for made in rows.made.values():
                ready(made.kernel)
    with stages("plan"):
        draft, packed = build_plan(planned)
        plan = place_arenas(draft).plan
    with stages("driver"):
        (segment,) = plan.segments
        texts = {k.kernel.name: k.kernel.ir for k in kernels.values()}
        texts |= {name: made.kernel.ir for name, made in rows.made.items()}
        llvm = (*texts.values(), emit_driver(plan, segment, DRIVER))
    ordered = tuple(kernels[r.name] for r in found if r.name in kernels)
    known = [constant for inner in block.graphs() for constant in inner.constants]
    explanation = Explanation(
        graph.name,
        machine.name,
        options.numerics,
        tuple(_explain(k) for k in ordered),
        copies=tuple(copies(block)),
        constant_bytes=sum(c.array.nbytes for c in {c.digest: c for c in known}.values()),
        arena_bytes=plan.arenas[0].bytes,
        compile_milliseconds=tuple(stages.times),
    )
    placed = {b.place.digest for b in plan.buffers if isinstance(b.place, ConstantPlace)}
    constants = {c.digest: c.array for c in (*known, *packed.values()) if c.digest in placed}
    return Compiled(graph, ordered, plan, constants, llvm, tuple(texts), explanation)


def _explain(kernel: RegionKernel) -> RegionExplanation:
    region = kernel.region
    flops, moved = Dim(), Dim()
    for node in region.nodes:
        types = [region.values[name].type for name in node.inputs]
        flops = flops + operator(node.operator).counts(types, [v.type for v in node.outputs], node.attributes).flops
    for value in (*region.inputs, *region.outputs):
        moved = moved + value.tensor.bytes
    for value in region.there.values():  # of its result, what others write
        moved = moved - value.tensor.bytes
    trace = "; ".join(map(str, kernel.schedule.trace))
    return RegionExplanation(
        region.name, region.operators, kernel.candidate.algorithm, (kernel.kernel.name,), trace,
        f"{kernel.candidate.recipe}: {kernel.candidate.note}", flops, moved,
    )  # fmt: skip


def compile_graph(
    graph: Graph,
    options: CompileOptions | None = None,
    context: Context | None = None,
    black_boxes: Mapping[str, BlackBoxFunction] | None = None,
) -> Executable:
    """Compile a graph and load it; code and memory belong to `context` (the process's own by default).

    `black_boxes` has a function for the name of each black box in the graph, which is compiled in parts between them.

    Raises `CodegenError` 1764, before anything is compiled, for a machine whose code this processor cannot run; 1652
    for a black box in the body of control flow.
    """
    chosen = options or CompileOptions()
    target = None
    if chosen.machine != "host":
        target = machine_named(chosen.machine)
        check_runs_here(target)
    owner = context if context is not None else default_context()
    cut = cut_at_boxes(graph, black_boxes or {})
    if cut is None:
        return _compiled(graph, chosen, owner, target)
    steps: list[BoxCall | CompiledPart] = []
    makers: dict[str, str] = {}
    """Where what boxes make comes from, once there is a compiled part before them."""
    for step in cut.steps:
        if isinstance(step, BoxCall):
            if any(isinstance(before, CompiledPart) for before in steps):
                makers.update((port.name, step.origin) for port in step.outputs)
            steps.append(step)
        else:
            origins = dict.fromkeys(makers[value.name] for value in step.inputs if value.name in makers)
            steps.append(CompiledPart(_compiled(step, chosen, owner, target), tuple(origins)))
    explanation = explained_together(graph.name, steps)
    return BoxedExecutable(graph.name, cut.inputs, cut.outputs, cut.constants, tuple(steps), explanation)


def _compiled(graph: Graph, chosen: CompileOptions, owner: Context, target: CpuMachine | None) -> Executable:
    stages = Stages()
    jit = owner.jit
    maker = CodeMaker(lambda text: jit.compile_object(text, target), threads=max(available_processors() - 1, 1))
    with no_collections(), owner.turns.short():
        try:
            done = lower_graph(graph, chosen, stages, maker.add)
        except BaseException:
            maker.abandon()
            raise
        with stages("code"):
            objects = maker.objects(done.llvm[-1])
    with stages("link"):
        kernels = sorted(done.entries)
        code = owner.jit.load(objects, [DRIVER, *kernels], uses=[owner.pool.code, owner.native.code])
    with stages("constants"):
        constants = {digest: _aligned(array) for digest, array in done.constants.items()}
    explanation = replace(
        done.explanation,
        code_bytes=sum(map(len, objects)),
        constant_bytes=sum(array.nbytes for array in constants.values()),
        compile_milliseconds=tuple(stages.times),
    )
    work = None if _decides_itself(done.plan) else total(
        part for r in explanation.regions for part in (r.flops, r.bytes) if part is not None
    )  # fmt: skip
    parts = Parts(
        tuple(objects), target if target is not None else machine_named("host"), DRIVER, tuple(kernels), work,
        chosen.memory_limit,
    )  # fmt: skip
    return Executable(
        done.plan, code, code[DRIVER], constants, owner, explanation, work=work, memory_limit=chosen.memory_limit,
        step_entries={name: code[name] for name in kernels}, parts=parts,
    )  # fmt: skip


def _decides_itself(plan: Plan) -> bool:
    """Whether a call decides its own sizes or trips: how long it takes is not known before."""
    repeats = (step for _, step in plan.walk() if isinstance(step, Repeat))
    return any(symbol.measured for symbol in plan.symbols) or any(repeat.condition for repeat in repeats)


def _aligned(array: Array) -> Array:
    """A C-contiguous copy at a multiple of `ALIGNMENT` bytes (the array itself where it is one already)."""
    if array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0:
        return array
    found = aligned(array.shape, array.dtype)
    found[...] = array
    return found
