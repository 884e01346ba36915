"""From regions to kernels: choose a candidate, build its program, and generate code once for equal programs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tilework.candidates.candidate import Candidate
from tilework.candidates.region import Region
from tilework.codegen.cpu.kernel import KernelText, emit_kernel
from tilework.compiler.options import CompileOptions
from tilework.decisions.choice import choose
from tilework.loops.program import LoopProgram
from tilework.loops.text import program_text
from tilework.machine.cpu import CpuMachine
from tilework.numerics import numerics
from tilework.schedule.schedule import Schedule


@dataclass(frozen=True, eq=False)
class RegionKernel:
    """A region, the candidate chosen for it, its schedule, and the kernel that runs it (shared by equal regions)."""

    region: Region
    candidate: Candidate
    schedule: Schedule
    kernel: KernelText

    @property
    def program(self) -> LoopProgram:
        return self.schedule.program


def region_kernels(
    regions: tuple[Region, ...], machine: CpuMachine, options: CompileOptions
) -> tuple[RegionKernel, ...]:
    """A kernel for each region, in order. Raises `CodegenError` naming the region's node where one cannot be generated."""
    contract = numerics(options.numerics)
    made: dict[str, KernelText] = {}
    found: list[RegionKernel] = []
    for region in regions:
        candidate = choose(region, machine, contract)
        schedule = candidate.schedule()
        program = schedule.program
        text = program_text(program.renamed("kernel"))
        if text not in made:
            digest = hashlib.sha256(text.encode()).hexdigest()[:10]
            name = f"tilework_{digest}"
            made[text] = emit_kernel(program, machine, contract, checked=options.checked, name=name)
        found.append(RegionKernel(region, candidate, schedule, made[text]))
    return tuple(found)
