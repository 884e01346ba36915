"""Whether a nest means what an instruction means: that program, node for node, up to names and to where it works.

Guards that name no loop inside are no part of the meaning: the instruction then runs where they hold. A guard may name
the outermost loop inside where the meaning's is vectorized: lanes in which it does not hold keep what they had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass, field
from tilework.loops.equal import same_expression
from tilework.loops.expressions import Call, Constant, Expression, Index, Load
from tilework.loops.program import Access, Buffer, Compute, Loop, LoopProgram, Node, Reducer, Sequence, children

_COMMUTATIVE = ("add", "multiply")
_IN_REGISTERS = ("register", "fragment")


@dataclass(frozen=True)
class Match:
    """What stands for what: the nest's loop for each of the meaning's, the element where each operand begins, and the
    guards under which the nest's statement runs.
    """

    loops: Mapping[str, str] = field(default_factory=dict[str, str])
    operands: Mapping[str, Access] = field(default_factory=dict[str, Access])
    guards: tuple[Dim, ...] = ()


@dataclass(frozen=True)
class Difference:
    """The first difference, in words, and the node it is about."""

    reason: str
    node: Node


def match(buffers: Mapping[str, Buffer], nest: Node, meaning: LoopProgram) -> Match | Difference:
    """Compare a nest over some buffers with what an instruction means."""
    matching = _Matching(buffers, meaning, nest)
    reason = matching.nodes(nest, meaning.body)
    return matching.found if reason is None else Difference(reason, matching.at)


class _Matching:
    def __init__(self, buffers: Mapping[str, Buffer], meaning: LoopProgram, nest: Node) -> None:
        self._here = buffers
        self._there = meaning.buffers
        outermost = meaning.body
        lanes = isinstance(outermost, Loop) and outermost.kind == "vectorized"
        self._lanes = outermost.variable if lanes and isinstance(outermost, Loop) else None
        self.found = Match()
        self.at = nest

    def nodes(self, here: Node, there: Node) -> str | None:
        """The first difference in words; None where there is none."""
        self.at = here
        if type(here) is not type(there):
            return f"a {type(there).__name__} is expected, not a {type(here).__name__}"
        match here, there:
            case Loop(), Loop():
                if here.extent.value is None or here.extent != there.extent:
                    wanted = f"{there.variable} of the instruction {there.extent}"
                    return f"{here.variable} has {here.extent} iterations, {wanted}"
                if here.kind not in ("serial", "unrolled", "vectorized"):
                    return f"{here.variable} is {here.kind}"
                self.found = replace(self.found, loops={**self.found.loops, there.variable: here.variable})
            case Compute(), Compute():
                return self._statement(here, there)
            case Sequence(), Sequence():
                pass
            case _:
                return f"a {type(here).__name__} is no part of what instructions mean"
        below, expected = children(here), children(there)
        if len(below) != len(expected):
            return f"{len(expected)} nodes are expected, not {len(below)}"
        for a, b in zip(below, expected, strict=True):
            reason = self.nodes(a, b)
            if reason is not None:
                return reason
        return None

    def _statement(self, here: Compute, there: Compute) -> str | None:
        inside = {name for variable, name in self.found.loops.items() if variable != self._lanes}
        if any(guard.names() & inside or guard.loads() for guard in here.guards):
            return f"{here.name} is guarded"
        if (here.init is None) != (there.init is None):
            return f"{here.name} {'starts' if here.init is not None else 'does not start'} its reduction here"
        if here.init is not None and there.init is not None:
            if not all(same_expression(a, b) for a, b in zip(here.init, there.init, strict=False)):
                return f"{here.name} starts from another value"
            if set(here.reduction) != {self.found.loops.get(v, v) for v in there.reduction}:
                return f"{here.name} reduces over other loops"
        if here.accumulate != there.accumulate or not _same_reducer(here.reducer, there.reducer):
            return f"{here.name} combines otherwise"
        if len(here.targets) != len(there.targets):
            return f"{here.name} has {len(here.targets)} results, not {len(there.targets)}"
        self.found = replace(self.found, guards=here.guards)
        for a, b in zip(here.targets, there.targets, strict=True):
            reason = self._access(a, b)
            if reason is not None:
                return reason
        for a, b in zip(here.values, there.values, strict=True):
            reason = self._value(a, b)
            if reason is not None:
                return reason
        return None

    def _access(self, here: Access, there: Access) -> str | None:
        """Same element up to where the operand begins, which is the same for all accesses of the operand."""
        a, b = self._here[here.buffer], self._there[there.buffer]
        if a.dtype != b.dtype:
            return f"{here.buffer} holds {a.dtype}, the instruction's {there.buffer} {b.dtype}"
        loops, operands = self.found.loops, self.found.operands
        known = operands.get(there.buffer)
        if known is not None and known.buffer != here.buffer:
            return f"{there.buffer} of the instruction would be both {known.buffer} and {here.buffer}"
        for other, operand in operands.items():
            if operand.buffer == here.buffer and other != there.buffer:
                return f"{here.buffer} would be two operands"
        inside = set(loops.values())
        wanted = [entry.substitute({v: dim(n) for v, n in loops.items()}) for entry in there.index]
        lead = len(here.index) - len(wanted)
        if lead < 0:
            return f"{here.buffer} has {len(here.index)} dimensions, {there.buffer} of the instruction {len(wanted)}"
        origin = tuple(entry - want for entry, want in zip(here.index, [dim(0)] * lead + wanted, strict=True))
        if any(entry.names() & inside or entry.loads() for entry in origin):
            return (
                f"{here.buffer}[{', '.join(map(str, here.index))}] is not walked like {there.buffer} of the instruction"
            )
        if known is not None and known.index != origin:
            return f"{here.buffer} begins in two places"
        if a.scope not in _IN_REGISTERS:
            for far, near, extent in zip(a.strides[lead:], b.strides, b.shape, strict=True):
                if far != near and extent != 1:
                    return (
                        f"elements of {here.buffer} are {far} apart, those of {there.buffer} of the instruction {near}"
                    )
        self.found = replace(self.found, operands={**operands, there.buffer: Access(here.buffer, origin)})
        return None

    def _value(self, here: Expression, there: Expression) -> str | None:
        if type(here) is not type(there) or here.dtype != there.dtype:
            return "it computes another expression"
        match here, there:
            case Load(), Load():
                return self._access(Access(here.buffer, here.index), Access(there.buffer, there.index))
            case Call(), Call():
                return self._call(here, there)
            case Index(), Index():
                same = here.value == there.value.substitute({v: dim(n) for v, n in self.found.loops.items()})
                return None if same else "it uses another number"
            case Constant(), Constant():
                return None if same_expression(here, there) else "it uses another constant"
            case _:
                return None if same_expression(here, there) else "it computes another expression"

    def _call(self, here: Call, there: Call) -> str | None:
        if here.function != there.function or len(here.arguments) != len(there.arguments):
            return f"it computes {here.function}, not {there.function}"
        before = self.found
        reason = self._arguments(here.arguments, there.arguments)
        if reason is not None and here.function in _COMMUTATIVE:
            after, self.found = self.found, before
            if self._arguments(here.arguments[::-1], there.arguments) is None:
                return None
            self.found = after
        return reason

    def _arguments(self, here: tuple[Expression, ...], there: tuple[Expression, ...]) -> str | None:
        for a, b in zip(here, there, strict=True):
            reason = self._value(a, b)
            if reason is not None:
                return reason
        return None


def _same_reducer(a: Reducer | None, b: Reducer | None) -> bool:
    if a is None or b is None:
        return a is b
    parts = [(a.left, b.left), (a.right, b.right), (a.combine, b.combine), (a.identity, b.identity)]
    pairs = cast("list[tuple[tuple[Expression, ...], tuple[Expression, ...]]]", parts)
    return a.relaxable == b.relaxable and all(
        len(x) == len(y) and all(same_expression(p, q) for p, q in zip(x, y, strict=True)) for x, y in pairs
    )
