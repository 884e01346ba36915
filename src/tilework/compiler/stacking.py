"""Kernels with which a repetition collects one result a trip: rows start as zeros, and each trip stores its own."""

from __future__ import annotations

import hashlib

from tilework.codegen.cpu.kernel import KernelText, emit_kernel
from tilework.dims import Dim, Symbol, dim, symbol_bounds
from tilework.fast_dataclass import dataclass, field
from tilework.graph.types import TensorType
from tilework.loops.expressions import Expression, Load, constant
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, Node
from tilework.loops.text import program_text
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Numerics
from tilework.recipes.cpu.vector_nest import vectorised
from tilework.schedule.schedule import Schedule


@dataclass(frozen=True, eq=False)
class ProgramKernel:
    """A scheduled program that no region stands for, and its code."""

    program: LoopProgram
    kernel: KernelText


def zeros(rows: TensorType, symbols: tuple[Symbol, ...]) -> LoopProgram:
    """`rows[...] = 0`."""
    buffer = Buffer("rows", rows.shape, rows.dtype)
    zero = constant(False if rows.dtype.kind == "boolean" else 0, rows.dtype)
    return _program("zeros", (Argument(buffer, "write"),), buffer, (), rows.shape, zero, _named(symbols, rows.shape))


def stored_row(row: TensorType, rows: TensorType, at: Dim, symbols: tuple[Symbol, ...]) -> LoopProgram:
    """`rows[at, ...] = row[...]` where `at` is not negative; what else `rows` holds stays."""
    source, target = Buffer("row", row.shape, row.dtype), Buffer("rows", rows.shape, rows.dtype)
    arguments = Argument(source, "read"), Argument(target, "accumulate")
    index = tuple(dim(f"i{d}") for d in range(len(row.shape)))
    needed = _named(symbols, (*rows.shape, at))
    inside = () if at.bounds(symbol_bounds(needed))[0] >= 0 else (at,)
    value = Load("row", index, row.dtype)
    return _program("stored_row", arguments, target, (at,), row.shape, value, needed, inside)


def _program(
    name: str,
    arguments: tuple[Argument, ...],
    target: Buffer,
    first: tuple[Dim, ...],
    extents: tuple[Dim, ...],
    value: Expression,
    symbols: tuple[Symbol, ...],
    guards: tuple[Dim, ...] = (),
) -> LoopProgram:
    index = tuple(dim(f"i{d}") for d in range(len(extents)))
    body: Node = Compute(name, (Access(target.name, (*first, *index)),), (value,), guards=guards)
    for d in reversed(range(len(extents))):
        body = Loop(f"i{d}", extents[d], "serial", body)
    return LoopProgram(name, arguments, body, symbols)


def _named(symbols: tuple[Symbol, ...], dims: tuple[Dim, ...]) -> tuple[Symbol, ...]:
    names = {name for extent in dims for name in extent.names()}
    return tuple(symbol for symbol in symbols if symbol.name in names)


@dataclass(frozen=True, eq=False)
class RowKernels:
    """Makes such kernels, equal ones once; `made` has them by name."""

    machine: CpuMachine
    numerics: Numerics
    checked: bool
    made: dict[str, ProgramKernel] = field(default_factory=dict[str, ProgramKernel])

    def __call__(self, program: LoopProgram) -> ProgramKernel:
        facts = f"{program_text(program)} {self.numerics} {self.checked}"
        name = f"tilework_{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
        found = self.made.get(name)
        if found is None:
            done = vectorised(Schedule(program, self.machine, self.numerics, origin=program)).program
            kernel = emit_kernel(done, self.machine, self.numerics, checked=self.checked, name=name)
            found = self.made[name] = ProgramKernel(done, kernel)
        return found
