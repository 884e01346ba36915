"""tensorize: a loop nest that means just what a machine instruction means becomes that instruction.

    serial i < 64                                   serial i < 64
      vectorized l < 16                               intrinsic dot_product
        serial r < 2                        ->          vectorized l < 16
          c: c[i, l] += a[i, r] * b[r, l]                 serial r < 2
                                                            c: c[i, l] += a[i, r] * b[r, l]

The machine states an instruction's meaning as a small loop program; the nest has to be that program, node for node, up
to names and to where in its buffers it works. The nest stays below the instruction as its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, runtime_checkable

from tilework.dims import Dim, dim
from tilework.loops.equal import same_expression
from tilework.loops.expressions import Call, Constant, Expression, Index, Load
from tilework.loops.program import (
    Access,
    Compute,
    Intrinsic,
    Loop,
    LoopProgram,
    Node,
    Reducer,
    Sequence,
    children,
    replace_node,
)
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@runtime_checkable
class Instructions(Protocol):
    """A machine with instructions."""

    def intrinsic(self, name: str) -> LoopProgram | None:
        """What an instruction means, its operands being the program's arguments; None where there is none such."""
        ...


@dataclass(frozen=True)
class Tensorize(Primitive):
    """Legal where the nest is the instruction's meaning: same loops, extents, types, accesses, reducer and start."""

    name: ClassVar[str] = "tensorize"
    loop: str
    instruction: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop = setting.loop(self.loop)
        machine: object = setting.machine
        if not isinstance(machine, Instructions):
            return unknown("the machine declares no instructions", loop)
        meaning = machine.intrinsic(self.instruction)
        if meaning is None:
            return illegal(1521, f"the machine has no instruction {self.instruction}", loop)
        match = _Match(setting.program, meaning)
        reason = match.nodes(loop, meaning.body)
        if reason is not None:
            return illegal(1521, f"{self.instruction}: {reason}", *match.blamed(loop))
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        new = Intrinsic(self.instruction, loop)
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


class _Match:
    """Compares a nest with an instruction's meaning, learning which loop and buffer stands for which."""

    def __init__(self, program: LoopProgram, meaning: LoopProgram) -> None:
        self._program = program
        self._meaning = meaning
        self._loops: dict[str, str] = {}
        self._buffers: dict[str, str] = {}
        self._origins: dict[str, tuple[Dim, ...]] = {}
        self._at: Node | None = None

    def blamed(self, otherwise: Node) -> tuple[Node, ...]:
        return (self._at if self._at is not None else otherwise,)

    def nodes(self, here: Node, there: Node) -> str | None:
        """The first difference in words; None where there is none."""
        self._at = here
        if type(here) is not type(there):
            return f"a {type(there).__name__} is expected, not a {type(here).__name__}"
        match here, there:
            case Loop(), Loop():
                if here.extent.value is None or here.extent != there.extent:
                    wanted = f"{there.variable} of the instruction {there.extent}"
                    return f"{here.variable} has {here.extent} iterations, {wanted}"
                if here.kind not in ("serial", "unrolled", "vectorized"):
                    return f"{here.variable} is {here.kind}"
                self._loops[there.variable] = here.variable
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
        if here.guards or there.guards:
            return f"{here.name} is guarded"
        if (here.init is None) != (there.init is None):
            return f"{here.name} {'starts' if here.init is not None else 'does not start'} its reduction here"
        if here.init is not None and there.init is not None:
            if not all(same_expression(a, b) for a, b in zip(here.init, there.init, strict=False)):
                return f"{here.name} starts from another value"
            if set(here.reduction) != {self._loops.get(v, v) for v in there.reduction}:
                return f"{here.name} reduces over other loops"
        if here.accumulate != there.accumulate or not _same_reducer(here.reducer, there.reducer):
            return f"{here.name} combines otherwise"
        if len(here.targets) != len(there.targets):
            return f"{here.name} has {len(here.targets)} results, not {len(there.targets)}"
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
        a, b = self._program.buffers[here.buffer], self._meaning.buffers[there.buffer]
        if a.dtype != b.dtype:
            return f"{here.buffer} holds {a.dtype}, the instruction's {there.buffer} {b.dtype}"
        if self._buffers.setdefault(there.buffer, here.buffer) != here.buffer:
            return f"{there.buffer} of the instruction would be both {self._buffers[there.buffer]} and {here.buffer}"
        for other, buffer in self._buffers.items():
            if buffer == here.buffer and other != there.buffer:
                return f"{here.buffer} would be two operands"
        inside = set(self._loops.values())
        wanted = [entry.substitute({v: dim(n) for v, n in self._loops.items()}) for entry in there.index]
        lead = len(here.index) - len(wanted)
        if lead < 0:
            return f"{here.buffer} has {len(here.index)} dimensions, {there.buffer} of the instruction {len(wanted)}"
        origin = [entry - want for entry, want in zip(here.index, [dim(0)] * lead + wanted, strict=True)]
        if any(entry.names() & inside or entry.loads() for entry in origin):
            return (
                f"{here.buffer}[{', '.join(map(str, here.index))}] is not walked like {there.buffer} of the instruction"
            )
        if self._origins.setdefault(there.buffer, tuple(origin)) != tuple(origin):
            return f"{here.buffer} begins in two places"
        return None

    def _value(self, here: Expression, there: Expression) -> str | None:
        if type(here) is not type(there) or here.dtype != there.dtype:
            return "it computes another expression"
        match here, there:
            case Load(), Load():
                return self._access(Access(here.buffer, here.index), Access(there.buffer, there.index))
            case Call(), Call():
                if here.function != there.function or len(here.arguments) != len(there.arguments):
                    return f"it computes {here.function}, not {there.function}"
                for a, b in zip(here.arguments, there.arguments, strict=True):
                    reason = self._value(a, b)
                    if reason is not None:
                        return reason
                return None
            case Index(), Index():
                same = here.value == there.value.substitute({v: dim(n) for v, n in self._loops.items()})
                return None if same else "it uses another number"
            case Constant(), Constant():
                return None if same_expression(here, there) else "it uses another constant"
            case _:
                return None if same_expression(here, there) else "it computes another expression"


def _same_reducer(a: Reducer | None, b: Reducer | None) -> bool:
    if a is None or b is None:
        return a is b
    parts = [(a.left, b.left), (a.right, b.right), (a.combine, b.combine), (a.identity, b.identity)]
    pairs = cast("list[tuple[tuple[Expression, ...], tuple[Expression, ...]]]", parts)
    return a.relaxable == b.relaxable and all(
        len(x) == len(y) and all(same_expression(p, q) for p, q in zip(x, y, strict=True)) for x, y in pairs
    )


PRIMITIVE = Tensorize
