"""Emission into nested scopes: equal pure values are computed once, in the outermost scope where their operands exist.

Address strength reduction, scheduling and the rest are left to the target's own code generator; numbering values only
keeps the text small and the compile short.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

from tilework.dtypes import DType
from tilework.errors import CodegenError
from tilework.lowering.registers import Block, Instruction, Literal, Value

_INDEX_LIMIT = 1 << 63
"""Indices are signed numbers of 64 bits."""


class Scope:
    """A block under construction. `written`: buffers that something inside stores to; `branch`: runs conditionally."""

    __slots__ = ("block", "branch", "certain", "memo", "written")

    def __init__(self, written: frozenset[str] = frozenset(), *, branch: bool = False, certain: bool = True) -> None:
        self.block = Block()
        self.memo: dict[Any, Value] = {}
        self.written = written
        self.branch = branch
        self.certain = certain


class Builder:
    """Emits instructions of one function."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = [Scope()]
        self.numbers = 0
        self.constants: dict[tuple[str, int, Any], Value] = {}
        self.widened: dict[tuple[Value, DType], Value] = {}
        """Elements of small floats by the register values that they were widened to: storing those rounds nothing."""
        self.floor = 0
        """Nothing is placed in a scope further out than this one."""

    # -- scopes --------------------------------------------------------------------------------------------------------
    @property
    def depth(self) -> int:
        """How many scopes enclose what is emitted now."""
        return len(self.scopes) - 1

    def fresh(self, kind: str, lanes: int = 0, depth: int | None = None) -> Value:
        """A value that no instruction defines (yet)."""
        self.numbers += 1
        return Value(kind, lanes, self.depth if depth is None else depth, self.numbers)

    def known(self, key: tuple[Any, ...]) -> Value | None:
        """What was kept under a key and still exists here."""
        for scope in reversed(self.scopes):
            found = scope.memo.get(key)
            if found is not None:
                return found
        return None

    def keep(self, key: tuple[Any, ...], value: Value) -> Value:
        """Keep a value as long as the scope that it stands in is open: until then, what it depends on is the same."""
        self.scopes[value.depth].memo[key] = value
        return value

    # -- literals ------------------------------------------------------------------------------------------------------
    def constant(self, kind: str, value: Literal, lanes: int = 0) -> Value:
        """A literal; a tuple gives each lane its own."""
        key = (kind, lanes, value.hex() if isinstance(value, float) else value)
        found = self.constants.get(key)
        if found is None:
            if isinstance(value, tuple) and all(v == value[0] for v in value):
                return self.constant(kind, value[0], lanes)
            found = self.constants[key] = Value(kind, lanes, 0, 0, value)
        return found

    def integer(self, value: int) -> Value:
        """An i64 literal of an index; raises `CodegenError` 1609 for one that 64 bits do not hold."""
        if not -_INDEX_LIMIT <= value < _INDEX_LIMIT:
            raise CodegenError(1609, f"an index, an extent or a guard has the constant {value}")
        return self.constant("i64", value)

    # -- instructions --------------------------------------------------------------------------------------------------
    def pure(
        self, name: str, kind: str, lanes: int, operands: tuple[Value, ...], extra: Any = None, depth: int = 0
    ) -> Value:
        """An instruction without side effects, in the outermost scope that has its operands (`depth` at least)."""
        depth = max(depth, self.floor)
        for operand in operands:
            if operand.depth > depth:  # noqa: PLR1730 - called for every instruction
                depth = operand.depth
        scope = self.scopes[depth]
        key = (name, kind, lanes, operands, extra)
        found = scope.memo.get(key)
        if found is None:
            self.numbers += 1
            found = scope.memo[key] = Value(kind, lanes, depth, self.numbers)
            scope.block.items.append(Instruction(name, operands, found, extra))
        return found

    def effect(self, name: str, operands: tuple[Value, ...], extra: Any = None) -> None:
        """An instruction that is kept where it stands and has no result."""
        self.scopes[-1].block.items.append(Instruction(name, operands, None, extra))

    def wide(self, value: Value, lanes: int) -> Value:
        """The value in every lane."""
        if value.lanes == lanes:
            return value
        if value.constant is not None:
            return self.constant(value.kind, value.constant, lanes)
        assert value.lanes == 0, f"{value} has other lanes than {lanes}"
        return self.pure("splat", value.kind, lanes, (value,))

    def op(self, name: str, kind: str, *operands: Value, extra: Any = None) -> Value:
        """A lane by lane instruction; scalars are spread where another operand is a vector."""
        lanes = 0
        for operand in operands:
            if operand.lanes:
                lanes = operand.lanes
        if lanes:
            operands = tuple([o if o.lanes else self.wide(o, lanes) for o in operands])
        return self.pure(name, kind, lanes, operands, extra)

    # -- integers ------------------------------------------------------------------------------------------------------
    def add(self, a: Value, b: Value) -> Value:
        if a.constant is not None and b.constant is not None and not (a.lanes or b.lanes):
            return self.constant(a.kind, _wrap(a.constant + b.constant, a.kind))  # type: ignore[operator]
        if a.constant == 0:
            return b if b.lanes or not a.lanes else self.wide(b, a.lanes)
        if b.constant == 0:
            return a if a.lanes or not b.lanes else self.wide(a, b.lanes)
        return self.op("add", a.kind, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        if a.constant is not None and b.constant is not None and not (a.lanes or b.lanes):
            return self.constant(a.kind, _wrap(a.constant * b.constant, a.kind))  # type: ignore[operator]
        if b.constant == 1 and not b.lanes:
            return a
        if a.constant == 1 and not a.lanes:
            return b
        return self.op("mul", a.kind, a, b)

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """An integer comparison, by LLVM's predicate."""
        if a.constant is not None and b.constant is not None and not (a.lanes or b.lanes) and predicate in _COMPARE:
            return self.constant("i1", bool(_COMPARE[predicate](a.constant, b.constant)))
        return self.op("icmp", "i1", a, b, extra=predicate)

    def both(self, a: Value | None, b: Value | None) -> Value | None:
        """Conjunction of conditions or masks, None standing for true."""
        if a is None or a.constant is True:
            return b
        if b is None or b.constant is True or a is b:
            return a
        if a.constant is False and not a.lanes:
            return a
        if b.constant is False and not b.lanes:
            return b
        return self.op("and", "i1", a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Lane by lane where the condition has lanes; a scalar condition picks whole vectors."""
        if condition.constant is True or a is b:
            return a if a.lanes >= b.lanes else self.wide(a, b.lanes)
        if condition.constant is False:
            return b if b.lanes >= a.lanes else self.wide(b, a.lanes)
        lanes = condition.lanes or a.lanes or b.lanes
        if lanes:
            a, b = self.wide(a, lanes), self.wide(b, lanes)
        return self.pure("select", a.kind, lanes, (condition, a, b))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "sge": operator.ge,
    "sgt": operator.gt,
    "slt": operator.lt,
    "sle": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}


def _wrap(value: int, kind: str) -> int:
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def single(value: float) -> float:
    """The nearest float32 (an infinity past its range)."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
