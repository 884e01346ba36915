"""A loop program as a native kernel: LLVM text and the calling convention it has.

The entry is `i32 NAME(ptr args, ptr pool)`. `args` are int64 slots: the address of the call's error word, the
addresses of the signature's buffers in order, its symbols in order. The error word is the first of three: the pool's
address and that of the poll state (null: the call cannot be interrupted) follow it, as in a plan's frame. A parallel
loop is `void NAME_rK(ptr context, i32 chunk, i32 chunks)`, run by `tilework_pool_run`, or by `_watched` where it is
long enough to look for signals. The entry returns 0, or 1 when the error word is set: `code << 32 | detail`, where
`signature.faults[detail]` names the statement. A call that is to stop returns early, with 0 and results that mean
nothing: who gave the poll state knows.
"""

from __future__ import annotations

import re

from tilework.codegen.cpu.partial_vectors import masked_widths
from tilework.codegen.cpu.printer import Printer, stop_function
from tilework.codegen.cpu.side_by_side import side_by_side
from tilework.fast_dataclass import dataclass
from tilework.loops.program import LoopProgram
from tilework.lowering.aliases import may_alias
from tilework.lowering.lower import lower
from tilework.lowering.registers import FaultPlace
from tilework.machine.cpu import CpuMachine
from tilework.numerics import Numerics
from tilework.plan.signature import KernelBuffer, KernelSignature

WORKSPACE_ALIGNMENT = 64
"""Bytes to which workspaces must be aligned."""


@dataclass(frozen=True)
class KernelText:
    """LLVM text of one kernel, its calling convention, the names that its object code exports, and where its faults are
    by their number.
    """

    name: str
    signature: KernelSignature
    ir: str
    exports: tuple[str, ...]
    faults: tuple[FaultPlace, ...] = ()


def emit_kernel(
    program: LoopProgram,
    machine: CpuMachine,
    numerics: Numerics,
    *,
    checked: bool = False,
    name: str | None = None,
    streaming: frozenset[str] = frozenset(),
) -> KernelText:
    """LLVM text for a loop program.

    `checked` tests every access against its buffer's extents when it runs (fault 1802). Accesses whose index depends on
    data are always tested (fault 1801): a bad load gives zero, a bad store does nothing. `streaming` names buffers
    whose vector stores go past the caches when the buffer is not smaller than the machine's last cache and is 64-byte
    aligned; each of their nests is then generated in two versions.

    16-bit floats are computed in float32 and rounded where they are stored or cast (by default), or after every
    operation (where numerics forbid contraction). Partial results of a reduction are kept in the reducer's type for
    as long as the accumulator is in registers.

    Raises `CodegenError` 1602-1607 for a program that no code can be generated for (see `lowering.lower`).
    """
    kernel = name if name is not None else "tilework_" + re.sub(r"[^A-Za-z0-9_]", "_", program.name)
    module, workspaces = lower(
        program, numerics, kernel, checked=checked, streaming=streaming, last_level_bytes=machine.last_level_bytes,
        lookup_lanes=machine.lookup_lanes, masked_loads=masked_widths(machine).loads, instructions=machine.instruction,
    )  # fmt: skip
    side_by_side(module, machine.vector_bits, machine.vector_registers)
    buffers = [
        KernelBuffer(a.buffer.name, a.buffer.shape, a.buffer.dtype, a.access, a.buffer.dtype.itemsize)
        for a in program.arguments
    ]
    buffers += [KernelBuffer(b.name, b.shape, b.dtype, "workspace", WORKSPACE_ALIGNMENT) for b in workspaces.values()]
    slots = {("buffer", b.name): 1 + i for i, b in enumerate(buffers)}
    slots |= {("symbol", s.name): 1 + len(buffers) + i for i, s in enumerate(program.symbols)}
    printer = Printer(slots, kernel=kernel, x86=machine.architecture == "x86", masked_widths=masked_widths(machine))
    attributes = f'nounwind "prefer-vector-width"="{machine.vector_bits}"'
    functions = [
        printer.function(
            region,
            f"define internal void @{region.name}(ptr %context, i32 {printer.name(region.chunk)}, "
            f"i32 {printer.name(region.chunks)}) {attributes}",
            ["  ret void"],
        )
        for region in module.regions
        if region.chunk is not None and region.chunks is not None
    ]
    last = ["  ret i32 0"]
    if module.faults:
        last = [
            "  %word = load ptr, ptr %args, align 8",
            "  %fault = load atomic i64, ptr %word monotonic, align 8",
            "  %failed = icmp ne i64 %fault, 0",
            "  %status = zext i1 %failed to i32",
            "  ret i32 %status",
        ]
    functions.append(printer.function(module.entry, f"define i32 @{kernel}(ptr %args, ptr %pool) {attributes}", last))
    functions += [partial.text(attributes) for partial in printer.partial.values()]
    if printer.polls:
        functions.append(stop_function())
    parts = [*printer.declared, *printer.globals(), *functions]
    parts += ["!0 = !{i32 1}", '!1 = !{!"branch_weights", i32 1, i32 1000000}']
    names = tuple(fault.statement for fault in module.faults)
    signature = KernelSignature(kernel, tuple(buffers), program.symbols, may_alias(program), names)
    return KernelText(kernel, signature, "\n".join(parts) + "\n", (kernel,), module.faults)
