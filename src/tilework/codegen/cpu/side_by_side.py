"""Vectors wider than a register, in long chains: every operation is done for all parts before the next one.

A chain of dependent operations waits for each of its results. A processor fills the wait with what comes later in the
program, as far ahead as it can look; where the parts of a wide vector take turns, it need not look far. LLVM splits a
wide vector into parts itself, but its scheduler then sorts them part by part, to save registers. A `tie` after an
operation holds all parts of its result at one point of the program; it costs no instruction.

What is loaded first and used again at the end would keep a register for every part meanwhile: it is loaded again.
"""

from __future__ import annotations

from tilework.lowering.registers import BITS, Block, Branch, Instruction, Item, Loop, Module, Value

LONG = 8
"""Slow operations in a row from which on a chain is long."""
_SLOW = frozenset(["fma", "fadd", "fsub", "fmul", "fdiv", "sqrt", "maximum", "minimum"])
"""Operations on floating point that take some cycles."""
_ABOVE = 1 << 30
"""Lowering numbers values from 1; no function has so many."""


def side_by_side(module: Module, register_bits: int, registers: int) -> None:
    """Put ties and second loads into the blocks of a module where chains are long.

    A value of more parts than a quarter of the `registers` is left to LLVM: an operation holds two or three such.
    """
    for function in (module.entry, *module.regions):
        _Ties(register_bits, registers // 4).block(function.body)


class _Ties:
    """Treats the blocks of one function."""

    def __init__(self, bits: int, most: int) -> None:
        self.bits = bits
        self.most = most
        self.added = _ABOVE

    def block(self, block: Block) -> None:
        for item in block.items:
            if isinstance(item, Loop):
                self.block(item.body)
            elif isinstance(item, Branch):
                self.block(item.then)
                self.block(item.otherwise)
        if self.longest(block.items) >= LONG:
            block.items[:] = self.held(block.items)

    def longest(self, items: list[Item]) -> int:
        """How many slow operations on wide vectors depend on each other."""
        depths: dict[Value, int] = {}
        for item in items:
            if isinstance(item, Instruction) and item.result is not None:
                before = max((depths.get(operand, 0) for operand in item.operands), default=0)
                depths[item.result] = before + self.slow(item)
        return max(depths.values(), default=0)

    def wide(self, value: Value) -> bool:
        """Whether a value takes some registers: a power of two, so that the parts join in pairs."""
        count, rest = divmod(BITS[value.kind] * value.lanes, self.bits)
        return rest == 0 and 1 < count <= self.most and count & (count - 1) == 0

    def slow(self, item: Instruction) -> bool:
        value = item.result
        return item.name in _SLOW and value is not None and value.kind in ("f32", "f64") and self.wide(value)

    def held(self, items: list[Item]) -> list[Item]:
        """The same items with ties after slow operations, and loads again before uses that come late."""
        made: list[Item] = []
        loads: dict[Value, tuple[Instruction, int]] = {}
        since = 0
        for item in items:
            if not isinstance(item, Instruction):
                loads.clear()
                made.append(item)
                continue
            if item.result is None:
                loads.clear()  # it may write what was loaded
                made.append(item)
                continue
            operands = list(item.operands)
            for place, operand in enumerate(operands):
                known = loads.get(operand)
                if known is not None and since - known[1] >= LONG:
                    operands[place] = self.fresh(operand)
                    made.append(Instruction("load", known[0].operands, operands[place], known[0].extra))
            if self.slow(item):
                apart = self.fresh(item.result)
                made.append(Instruction(item.name, tuple(operands), apart, item.extra))
                made.append(Instruction("tie", (apart,), item.result, self.bits))
                since += 1
            else:
                made.append(Instruction(item.name, tuple(operands), item.result, item.extra))
            if item.name == "load" and self.wide(item.result):
                loads[item.result] = (item, since)
        return made

    def fresh(self, like: Value) -> Value:
        self.added += 1
        return Value(like.kind, like.lanes, like.depth, self.added)
