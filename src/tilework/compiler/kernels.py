"""From regions to kernels: choose a candidate, build its program, and generate code once for equal programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

from tilework.candidates.candidate import Candidate
from tilework.candidates.closed import ClosedRegion, closed
from tilework.candidates.region import Region
from tilework.codegen.cpu.kernel import KernelText, emit_kernel
from tilework.compiler.options import CompileOptions
from tilework.compiler.origins import origin_of
from tilework.decisions.choice import choose
from tilework.dims import Dim
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Constant, Graph
from tilework.layout import packed
from tilework.loops.program import LoopProgram
from tilework.loops.text import program_text
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Numerics, numerics
from tilework.ops._attributes import integer_of
from tilework.plan.signature import Box
from tilework.schedule.primitives.transform_layout import argument_layouts
from tilework.schedule.schedule import Schedule


@dataclass(frozen=True, eq=False)
class RegionKernel:
    """A region, the candidate chosen for it, its schedule, and the kernel that runs it (shared by equal regions).

    The kernel is made for the region over symbols of its own, `closed`, which also says what they are.
    """

    region: Region
    closed: ClosedRegion
    candidate: Candidate
    schedule: Schedule
    kernel: KernelText

    def packed(self, graph: Graph) -> dict[str, Constant]:
        """The constants that the kernel wants otherwise, prepared and packed, by the name of the region's input."""
        arguments = tuple(argument.buffer.name for argument in self.program.arguments)
        wanted = argument_layouts(self.schedule.trace, arguments)
        found: dict[str, Constant] = {}
        for value, argument in zip(self.region.inputs, arguments, strict=False):
            layouts, prepared = wanted.get(argument, ()), self.candidate.prepared.get(argument)
            if not layouts and prepared is None:
                continue
            array = graph.constant_arrays[value.name]
            steps = list(map(str, layouts))
            if prepared is not None:
                array, steps = prepared.compute(array), [prepared.name, *steps]
            found[value.name] = Constant(f"{value.name} as {', then '.join(steps)}", packed(array, layouts))
        return found

    @property
    def program(self) -> LoopProgram:
        return self.schedule.program


def region_kernels(
    regions: tuple[Region, ...],
    machine: CpuMachine,
    options: CompileOptions,
    contents: Mapping[str, Array],
    ready: Callable[[KernelText], None] | None = None,
) -> tuple[RegionKernel, ...]:
    """A kernel for each region, in order; `ready` is told of each as soon as its text is there. `contents`: the graph's
    constants by name.

    Raises `CodegenError` 16xx where one cannot be generated, naming the node that the region is for.
    """
    contract = numerics(options.numerics)
    made: dict[str, RegionKernel] = {}
    found: list[RegionKernel] = []
    for region in regions:
        own = closed(region)
        try:
            known = _kernel(own, machine, contract, options, contents, made, ready)
        except CodegenError as error:
            origin = origin_of(region.root)
            error.where = f"{origin}, {error.where}" if error.where else origin
            raise
        found.append(replace(known, region=region, closed=own))
    return tuple(found)


def _kernel(
    own: ClosedRegion,
    machine: CpuMachine,
    contract: Numerics,
    options: CompileOptions,
    contents: Mapping[str, Array],
    made: dict[str, RegionKernel],
    ready: Callable[[KernelText], None] | None,
) -> RegionKernel:
    # values are named by position, so equal regions have equal texts whatever the user called their values
    region = own.region
    base = region.definition
    text = program_text(base.program.renamed("region"))
    boxes = _boxes(region)
    text += "".join(f"box {name} {box}" for name, found in boxes.items() for box in found)
    text += "constant " + ", ".join(sorted(base.buffers[name] for name in region.constants))
    without: frozenset[str] = frozenset()
    while True:  # until a candidate suits what the constants hold
        known = made.get(text)
        candidate = known.candidate if known is not None else choose(region, machine, contract, without)
        if all(
            candidate.prepared[base.buffers[name]].suits(contents[name])
            for name in region.constants
            if base.buffers[name] in candidate.prepared
        ):
            break
        without |= {candidate.recipe}
        text += f"without {candidate.recipe}"
    if known is not None:
        return known
    schedule = candidate.schedule()
    asked = f"{options.numerics} {options.machine} {options.checked}"  # the rest decides no code
    facts = f"{text} {'; '.join(map(str, schedule.trace))} {sorted(candidate.streaming)} {asked}"
    name = f"tilework_{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
    kernel = emit_kernel(
        schedule.program, machine, contract, checked=options.checked, name=name, streaming=candidate.streaming
    )
    if any(boxes.values()):
        formals = tuple(replace(formal, boxes=boxes.get(formal.name, ())) for formal in kernel.signature.buffers)
        kernel = replace(kernel, signature=replace(kernel.signature, buffers=formals))
    known = made[text] = RegionKernel(region, own, candidate, schedule, kernel)
    if ready is not None:
        ready(kernel)
    return known


def _boxes(region: Region) -> dict[str, tuple[Box, ...]]:
    """What of its arguments a region's kernel reads or writes, by the buffer's name, where that is not all."""
    found: dict[str, tuple[Box, ...]] = {}
    buffers = region.definition.buffers
    for value in (*region.inputs, *region.outputs):
        if value.name in region.within:
            found[buffers[value.name]] = (Box(region.within[value.name].corner, value.tensor.shape),)
    if not region.there:
        return found
    root, start, copied = region.root, Dim(), list[Box]()
    along = integer_of(root.attributes, "dimension")
    name = root.output.name
    corner = region.within[name].corner if name in region.within else (Dim(),) * len(root.output.tensor.shape)
    for position, operand in enumerate(root.inputs):
        shape = region.values[operand].tensor.shape
        if position not in region.there:
            copied.append(Box(tuple(c + start if d == along else c for d, c in enumerate(corner)), shape))
        start = start + shape[along]
    found[buffers[name]] = tuple(copied)
    return found
