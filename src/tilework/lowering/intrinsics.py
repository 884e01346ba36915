"""Nests that a schedule gave to machine instructions: operands are loaded as the instruction wants them, and it is one
instruction of the register form.

Where the machine has no such instruction, where an operand does not lie as it has to, and in checked builds, which test
every access, the nest that states the meaning is lowered in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilework import dtypes
from tilework.dtypes import DType
from tilework.loops.match import Match, match
from tilework.loops.program import Access, Compute, Intrinsic, Loop, statements
from tilework.lowering.cells import unrolls
from tilework.lowering.registers import BITS, Value
from tilework.lowering.state import Lane, State, memory_kind
from tilework.lowering.statements import Statements
from tilework.machine.instructions import DotProduct

Instructions: TypeAlias = Callable[[str], DotProduct | None]
"""A machine's instruction of a name."""


class Intrinsics:
    """Emits instructions of the machine in the current function."""

    def __init__(self, state: State, statements: Statements, instructions: Instructions) -> None:
        self.state = state
        self.statements = statements
        self.memory = statements.memory
        self.instructions = instructions
        self._matches: dict[int, tuple[Intrinsic, Match | None]] = {}

    def emit(self, node: Intrinsic) -> bool:
        """Emit a nest's instruction where it stands; False where its body has to be lowered instead."""
        row = self.instructions(node.instruction)
        found = None if row is None or self.state.checked or self.state.lane is not None else self._match(node, row)
        if row is None or found is None:
            return False
        (statement,) = statements(node)
        state = self.state
        lanes, group = found.loops["l"], found.loops["r"]
        state.statement = statement.name
        state.lane = Lane(lanes, row.lanes)
        state.environment[group] = 0
        self.statements.conditional(found.guards, (), lambda mask: self._run(statement, row, found, mask))
        del state.environment[group]
        state.lane = None
        return True

    def _match(self, node: Intrinsic, row: DotProduct) -> Match | None:
        known = self._matches.get(id(node))
        if known is None:
            found = match(self.state.buffers, node.body, row.meaning)
            lanes = isinstance(node.body, Loop) and node.body.kind == "vectorized" and not unrolls(node.body)
            known = self._matches[id(node)] = (node, found if lanes and isinstance(found, Match) else None)
        found = known[1]
        layouts = self.statements.cells.layouts
        if found is None or any(found.operands[name].buffer in layouts for name in ("spread", "vector")):
            return None
        return found

    def _run(self, statement: Compute, row: DotProduct, found: Match, mask: Value | None) -> None:
        builder = self.state.builder
        lane, self.state.lane = self.state.lane, None  # operands are what all lanes read together
        spread = self._spread(found.operands["spread"], row)
        vector = self._vector(found.operands["vector"], row)
        self.state.lane = lane
        (target,) = statement.targets
        kind = _kind(row.result)
        sums = builder.wide(self.statements.read(target, row.result, None), row.lanes)
        operands = (spread, vector) if row.spread_first else (vector, spread)
        if row.accumulates:
            result = builder.pure("machine", kind, row.lanes, (sums, *operands), row.intrinsic)
        else:
            result = builder.op("add", kind, sums, builder.pure("machine", kind, row.lanes, operands, row.intrinsic))
        self.statements.write(target, result, row.result, mask)

    def _spread(self, operand: Access, row: DotProduct) -> Value:
        """The group that all lanes read, in each of them."""
        builder = self.state.builder
        held, wanted = row.memory[0], row.register[0]
        bits = f"i{row.group * wanted.bits}"
        if held == wanted:
            group = self.memory.load_neighbours(operand.buffer, operand.index, row.group, bits)
        else:
            narrow = self.memory.load_neighbours(operand.buffer, operand.index, row.group)
            group = builder.pure("bitcast", bits, 0, (_widened(self.state, narrow, held, wanted),))
        return builder.pure("bitcast", _kind(wanted), row.products, (builder.wide(group, row.lanes),))

    def _vector(self, operand: Access, row: DotProduct) -> Value:
        """A group for each lane, one after another in memory."""
        held, wanted = row.memory[1], row.register[1]
        found = self.memory.load_neighbours(operand.buffer, operand.index, row.products)
        if held != wanted:
            return _widened(self.state, found, held, wanted)
        return found if found.kind == _kind(wanted) else self.state.builder.op("bitcast", _kind(wanted), found)


def _widened(state: State, value: Value, held: DType, wanted: DType) -> Value:
    assert BITS[_kind(held)] < BITS[_kind(wanted)]
    return state.builder.op("sext" if held.kind == "signed" else "zext", _kind(wanted), value)


def _kind(dtype: DType) -> str:
    """The kind in which an instruction takes elements."""
    return "bf16" if dtype == dtypes.bfloat16 else memory_kind(dtype)
