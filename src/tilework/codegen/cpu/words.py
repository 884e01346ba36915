"""The words of LLVM text: types, registers, literals, calls of intrinsics."""

from __future__ import annotations

import math
import struct

from tilework.lowering.registers import BITS, Instruction, Value

_TYPES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}


def type_of(kind: str, lanes: int = 0) -> str:
    """LLVM's name of a register's type."""
    name = _TYPES.get(kind, kind)
    return f"<{lanes} x {name}>" if lanes else name


def suffix(value: Value) -> str:
    """A type in the name of an intrinsic."""
    kind = value.kind
    return f"v{value.lanes}{kind}" if value.lanes else kind


class Words:
    """Names things and collects lines and declarations."""

    def __init__(self) -> None:
        self.declared: dict[str, None] = {}
        self.lines: list[str] = []
        self.block = "entry"
        self.labels = 0
        self._texts: dict[int, str] = {}
        self._types: dict[tuple[str, int], str] = {}

    def type(self, value: Value) -> str:
        key = (value.kind, value.lanes)
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = type_of(*key)
        return found

    def name(self, value: Value) -> str:
        """How an operand is written: a register or a literal."""
        if value.constant is None:
            return f"%v{value.number}"
        found = self._texts.get(id(value))
        if found is None:
            found = self._texts[id(value)] = _literal_text(value)
        return found

    def typed(self, value: Value) -> str:
        return f"{self.type(value)} {self.name(value)}"

    def label(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}{self.labels}"

    def temporary(self, text: str) -> str:
        self.labels += 1
        name = f"%x{self.labels}"
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, text: str) -> None:
        self.declared[text] = None

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def define(self, item: Instruction, text: str) -> None:
        assert item.result is not None
        self.lines.append(f"  %v{item.result.number} = {text}")

    def intrinsic(self, name: str, result: Value, operands: tuple[Value, ...], flags: str = "") -> str:
        kind = self.type(result)
        full = f"@llvm.{name}.{suffix(result)}"
        self.declare(f"declare {kind} {full}({', '.join(self.type(o) for o in operands)})")
        return f"call {flags}{kind} {full}({', '.join(self.typed(o) for o in operands)})"


def _literal_text(value: Value) -> str:
    constant = value.constant
    if not value.lanes:
        return _number(value.kind, constant)
    element = type_of(value.kind)
    if isinstance(constant, tuple):
        return "<" + ", ".join(f"{element} {_number(value.kind, c)}" for c in constant) + ">"
    text = _number(value.kind, constant)
    return "zeroinitializer" if text in ("0", "false", "0x0000000000000000") else f"splat ({element} {text})"


def _number(kind: str, value: object) -> str:
    if kind == "i1":
        return "true" if value else "false"
    if kind in ("f32", "f64"):
        assert isinstance(value, (int, float))
        number = float(value)
        if kind == "f32" and math.isfinite(number):
            number = _single(number)
        if number != number:  # noqa: PLR0124 - NaN
            return "0x7FF8000000000000"
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    assert isinstance(value, int)
    bits = BITS[kind]
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def _single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
