"""decompose_reduction: the start of a reduction becomes a nest of its own in front of the outermost reduction loop.

    serial i < 64                                 serial i < 64
      serial k < 512                                s.init: c[i] = 0
        s: c[i] += a[i, k]  init 0 over k   ->      serial k < 512
                                                      s: c[i] += a[i, k]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.dims import dim
from tilework.loops.expressions import Expression, cast
from tilework.loops.program import Compute, Loop, replace_node, sequence
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import nest, replace_variables
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class DecomposeReduction(Primitive):
    """Legal for a statement with a start, alone in the loops from the outermost reduction loop inwards."""

    name: ClassVar[str] = "decompose_reduction"
    statement: str

    def _loops(self, setting: Setting, found: Compute) -> tuple[Loop, ...]:
        """The loops around the statement from the outermost reduction loop on."""
        around = setting.enclosing(found)
        first = next((p for p, loop in enumerate(around) if loop.variable in found.reduction), len(around))
        return around[first:]

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        found = setting.statement(self.statement)
        if found.init is None or found.reducer is None:
            return illegal(1517, f"{self.statement} has no start to take out", found)
        inside = self._loops(setting, found)
        if not inside:
            return illegal(1517, f"{self.statement} has no reduction loop", found)
        for outer, inner in zip(inside, (*inside[1:], found), strict=True):
            if outer.body is not inner:
                return illegal(1508, f"{outer.variable} holds more than {self.statement}", outer)
        free = {loop.variable for loop in inside if loop.variable not in found.reduction}
        if any(guard.names() & free and guard.names() & set(found.reduction) for guard in found.guards):
            return LEGAL  # a guard that names a reduction loop does not hold the start back
        if any(loop.extent.names() & {other.variable for other in inside} for loop in inside):
            return unknown("a loop's extent depends on another", *inside)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        found = setting.statement(self.statement)
        assert found.init is not None
        inside = self._loops(setting, found)
        buffers = setting.program.buffers
        kept = [loop for loop in inside if loop.variable not in found.reduction]
        names = {loop.variable: f"{loop.variable}.{self.statement}.init" for loop in kept}
        values: tuple[Expression, ...] = tuple(
            cast(value, buffers[target.buffer].dtype) for value, target in zip(found.init, found.targets, strict=True)
        )
        guards = tuple(guard for guard in found.guards if not guard.names() & set(found.reduction))
        start = Compute(f"{self.statement}.init", found.targets, values, guards=guards)
        moved = replace_variables(start, {old: dim(new) for old, new in names.items()})
        begin = nest(tuple((names[loop.variable], loop.extent, loop.kind) for loop in kept), moved)
        rest = replace_node(inside[0], found, replace(found, init=None))
        body = replace_node(setting.program.body, inside[0], sequence(begin, rest))
        return Applied(setting.program.with_body(body), {self.statement: (f"{self.statement}.init", self.statement)})


PRIMITIVE = DecomposeReduction
