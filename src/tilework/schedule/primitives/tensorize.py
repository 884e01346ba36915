"""tensorize: a loop nest that means just what a machine instruction means becomes that instruction.

    serial i < 64                                   serial i < 64
      vectorized l < 16                               intrinsic dot_product
        serial r < 2                        ->          vectorized l < 16
          c: c[i, l] += a[i, r] * b[r, l]                 serial r < 2
                                                            c: c[i, l] += a[i, r] * b[r, l]

The machine states an instruction's meaning as a small loop program; the nest has to be that program, node for node, up
to names and to where in its buffers it works (see `loops/match.py`). The nest stays below the instruction as its
meaning.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from tilework.fast_dataclass import dataclass
from tilework.loops.match import Difference, Match, match
from tilework.loops.program import Compute, Intrinsic, LoopProgram, replace_node, statements
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import loop_bounds, within
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@runtime_checkable
class Instructions(Protocol):
    """A machine with instructions."""

    def intrinsic(self, name: str) -> LoopProgram | None:
        """What an instruction means, its operands being the program's arguments; None where there is none such."""
        ...

    def exact(self, name: str) -> bool:
        """Whether an instruction means that to the bit; else it may add in another order than its meaning."""
        ...


@dataclass(frozen=True)
class Tensorize(Primitive):
    """Legal where the nest is the instruction's meaning: same loops, extents, types, accesses, reducer and start.

    The nest may be guarded where no loop inside is named; a guard that names the loop of the lanes needs operands that
    exist without it. An instruction that adds in an order of its own needs numerics that allow it.
    """

    name: ClassVar[str] = "tensorize"
    looks_at: ClassVar[Reach] = "nest"
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
        found = match(setting.program.buffers, loop, meaning)
        if isinstance(found, Difference):
            return illegal(1521, f"{self.instruction}: {found.reason}", found.node)
        for statement in statements(loop):
            verdict = self._statement(setting, statement, found, machine.exact(self.instruction))
            if not verdict.legal:
                return verdict
        return LEGAL

    def _statement(self, setting: Setting, statement: Compute, found: Match, exact: bool) -> Verdict:
        reducer = statement.reducer
        if not exact and reducer is not None and not (setting.numerics.reassociate and reducer.relaxable):
            return illegal(1512, f"{self.instruction} would regroup partial results of {statement.name}", statement)
        return self._masked(setting, statement, found)

    def _masked(self, setting: Setting, statement: Compute, found: Match) -> Verdict:
        """Whether the operands exist in lanes that a guard leaves out: the instruction reads them all the same."""
        masks = [guard for guard in statement.guards if guard.names() & set(found.loops.values())]
        if not masks:
            return LEGAL
        bounds = loop_bounds(setting.program)
        kept = [guard for guard in statement.guards if guard not in masks]
        for access in (*statement.targets, *statement.loads):
            shape = setting.program.buffers[access.buffer].shape
            if not all(within(entry, extent, kept, bounds) for entry, extent in zip(access.index, shape, strict=True)):
                reason = f"{self.instruction} works on all lanes, and {access.buffer} may end before the last"
                return illegal(1521, reason, statement)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        new = Intrinsic(self.instruction, loop)
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Tensorize
