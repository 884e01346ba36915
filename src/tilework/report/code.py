"""How large the machine code of a schedule is."""

from __future__ import annotations

import struct

from tilework.codegen.cpu.kernel import emit_kernel
from tilework.codegen.cpu.llvm import compile_object
from tilework.errors import TileworkError
from tilework.fast_dataclass import dataclass
from tilework.machine.cpu import CpuMachine
from tilework.schedule.schedule import Schedule

_EXECUTABLE = 4
"""SHF_EXECINSTR of the System V ABI's section header flags."""


@dataclass(frozen=True)
class CodeSize:
    """Bytes of instructions; None with the reason where there is no code."""

    bytes: int | None
    reason: str = ""


def code_size(schedule: Schedule, machine: CpuMachine, streaming: frozenset[str] = frozenset()) -> CodeSize:
    """Compile a schedule, loading and running nothing."""
    try:
        text = emit_kernel(schedule.program, machine, schedule.numerics, streaming=streaming)
        return CodeSize(instruction_bytes(compile_object(text.ir, machine)))
    except TileworkError as refused:
        return CodeSize(None, f"TW{refused.code}: {refused.message}")


def instruction_bytes(image: bytes) -> int:
    """Bytes of the executable sections of an ELF64 object; of the whole object in another format.

    Source: System V ABI, "Object Files" (section header layout of ELF64).
    """
    if image[:6] != b"\x7fELF\x02\x01":
        return len(image)
    offset = struct.unpack_from("<Q", image, 0x28)[0]
    entry_bytes, count = struct.unpack_from("<HH", image, 0x3A)
    total = 0
    for number in range(count):
        section = struct.unpack_from("<IIQQQQIIQQ", image, offset + entry_bytes * number)
        if section[2] & _EXECUTABLE:
            total += section[5]
    return total
