"""What is checked about text and objects before LLVM sees them, because LLVM itself would abort the process.

Two things end a process inside LLVM: selecting an instruction that the target does not have, and assembling text for a
target without an assembler. Both are refused here with a code. A third, calling a symbol that nothing defines, is found
by reading the object's own symbol table.
"""

from __future__ import annotations

import re
import struct
from typing import Protocol

from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass


class CompileTarget(Protocol):
    """The facts of a machine that LLVM needs. `tilework.machine.cpu.CpuMachine` has them."""

    @property
    def triple(self) -> str:
        """LLVM target triple, for example `x86_64-unknown-linux-gnu`."""
        ...

    @property
    def cpu(self) -> str:
        """LLVM processor name, for example `znver4`."""
        ...

    @property
    def features(self) -> str:
        """LLVM feature string, every available feature listed: `+avx2,+fma,-avx512f`."""
        ...


_INTRINSIC = re.compile(
    r"@(llvm\.(x86|aarch64|arm|riscv|ppc|s390|wasm|nvvm|amdgcn|hexagon|mips|ve|loongarch|spv|dx)\.[\w.]+)"
)
_ASSEMBLY = re.compile(r"^\s*module\s+asm\b|\bcall\b[^\n\"]*\basm\b", re.MULTILINE)
_EMPTY = ' asm sideeffect "", '
"""Assembly whose text is empty ties values to a place in the program: it is never parsed."""

# The first prefix that fits decides. What follows it are features that are needed together; () means that every
# processor of the architecture has it.
_FEATURES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "x86": (
        ("avx512bf16.dpbf16ps.512", ("avx512bf16",)),
        ("avx512bf16.", ("avx512bf16", "avx512vl")),
        ("avx512.vpdpbusd.512", ("avx512vnni",)),
        ("avx512.vpdpbusds.512", ("avx512vnni",)),
        ("avx512.vpdpwssd.512", ("avx512vnni",)),
        ("avx512.vpdpwssds.512", ("avx512vnni",)),
        ("avx512.vpdp", ("avx512vnni", "avx512vl")),
        ("avx512.pmaddw.d.512", ("avx512bw",)),
        ("avx512fp16.", ("avx512fp16",)),
        ("avx512.vpermi2var.qi", ("avx512vbmi",)),
        ("avx512.permvar.qi", ("avx512vbmi",)),
        ("avx512.vpermi2var.hi", ("avx512bw",)),
        ("avx512.permvar.hi", ("avx512bw",)),
        ("avx512.", ("avx512f",)),
        ("avx2.vpdpb", ("avxvnniint8",)),
        ("avx2.vpdpw", ("avxvnniint16",)),
        ("avx2.", ("avx2",)),
        ("avx.", ("avx",)),
        ("fma.", ("fma",)),
        ("vcvtps2ph", ("f16c",)),
        ("vcvtph2ps", ("f16c",)),
        ("sse42.", ("sse4.2",)),
        ("sse41.", ("sse4.1",)),
        ("ssse3.", ("ssse3",)),
        ("sse3.", ("sse3",)),
        ("sse2.", ()),
        ("sse.", ()),
        ("rdtsc", ()),
    ),
    "aarch64": (
        ("neon.bfdot", ("bf16",)),
        ("neon.bfm", ("bf16",)),
        ("neon.sdot", ("dotprod",)),
        ("neon.udot", ("dotprod",)),
        ("neon.usdot", ("i8mm",)),
        ("neon.", ("neon",)),
        ("sve.", ("sve",)),
        ("sme.", ("sme",)),
        ("hint", ()),
        ("get.fpcr", ()),
        ("set.fpcr", ()),
    ),
}


# The same instructions in another encoding: intrinsics of 128 and 256 bits that one feature alone serves as well.
_ENCODED_OTHERWISE: tuple[tuple[str, str], ...] = (("avx512.vpdp", "avxvnni"),)


def architecture(triple: str) -> str:
    """`x86`, `aarch64`, or the triple's first part as it stands."""
    first = triple.partition("-")[0]
    if first in ("x86_64", "amd64"):
        return "x86"
    return "aarch64" if first in ("aarch64", "arm64") else first


def check_text(text: str, target: CompileTarget) -> None:
    """Refuse LLVM text that would make LLVM abort on `target`.

    Raises:
        CodegenError: 1681 for a target intrinsic of another architecture, of an unknown family or of a feature that
            `target.features` does not list, and for inline assembly that is
            not empty.
    """
    others = text.replace(_EMPTY, " ")
    if "asm" in others and _ASSEMBLY.search(others):
        raise CodegenError(1681, "inline assembly cannot be translated: LLVM aborts without an assembler")
    have = {feature[1:] for feature in target.features.split(",") if feature.startswith("+")}
    family = architecture(target.triple)
    for name, owner in dict.fromkeys(_INTRINSIC.findall(text)):
        if owner != family:
            raise CodegenError(1681, f"{name} is no instruction of {target.triple}", where=name)
        rest = name.split(".", 2)[2]
        needed = next((features for prefix, features in _FEATURES[owner] if rest.startswith(prefix)), None)
        if needed is None:
            raise CodegenError(1681, f"{name} belongs to no known feature, so it cannot be checked", where=name)
        lacking = [feature for feature in needed if feature not in have and feature != "neon"]
        narrow = not rest.endswith(".512")
        if any(narrow and rest.startswith(prefix) and feature in have for prefix, feature in _ENCODED_OTHERWISE):
            continue
        if lacking:
            message = f"{name} needs {' and '.join(lacking)}, which {target.cpu} does not have"
            raise CodegenError(1681, message, where=name)


@dataclass(frozen=True)
class SymbolTable:
    """The names that an object gives (`defined`) and wants (`undefined`), each in symbol order."""

    defined: tuple[str, ...]
    undefined: tuple[str, ...]


def symbol_table(image: bytes) -> SymbolTable | None:
    """The global names of an ELF64 object; None for another object format.

    Source: System V ABI, "Object Files" (section header and symbol table layouts of ELF64).

    Raises:
        CodegenError: 1683 when the tables do not lie within the object.
    """
    if image[:6] != b"\x7fELF\x02\x01":
        if image[:4] == b"\x7fELF" or len(image) < 64:
            raise CodegenError(1683, f"{len(image)} bytes are no little-endian 64-bit object")
        return None
    try:
        section_offset = struct.unpack_from("<Q", image, 0x28)[0]
        entry_bytes, count = struct.unpack_from("<HH", image, 0x3A)
        sections = [
            struct.unpack_from("<IIQQQQIIQQ", image, section_offset + entry_bytes * index) for index in range(count)
        ]
        defined: dict[str, None] = {}
        undefined: dict[str, None] = {}
        for section in sections:
            if section[1] != 2:  # SHT_SYMTAB
                continue
            offset, size, string_section = section[4], section[5], sections[section[6]]
            strings = image[string_section[4] : string_section[4] + string_section[5]]
            if len(strings) != string_section[5]:
                raise CodegenError(1683, "a string table lies outside the object")
            for position in range(24, size, 24):  # entry 0 is always empty
                name, info, _, defined_in = struct.unpack_from("<IBBH", image, offset + position)
                if name and info >> 4:  # local names concern nobody else
                    text = strings[name : strings.index(b"\0", name)].decode()
                    (undefined if defined_in == 0 else defined)[text] = None
        return SymbolTable(tuple(defined), tuple(undefined))
    except (struct.error, IndexError, ValueError, OverflowError) as problem:
        raise CodegenError(1683, f"the object's tables cannot be read: {problem}") from problem
