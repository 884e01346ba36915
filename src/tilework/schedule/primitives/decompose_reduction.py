"""decompose_reduction: the start of a reduction becomes a nest of its own in front of the outermost reduction loop.

serial i < 64                                 serial i < 64
  serial k < 512                                s.init: c[i] = 0
    s: c[i] += a[i, k]  init 0 over k   ->      serial k < 512
                                                  s: c[i] += a[i, k]
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Constant, Expression, cast
from tilework.loops.program import Compute, Loop, replace_node, sequence
from tilework.schedule.footprint import read_buffers, written_buffers
from tilework.schedule.iterators import determines
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import copied, derived, loop_bounds, loop_names, renamed, runs, statement_names
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
        if any(loop.extent.names() & {other.variable for other in inside} for loop in inside):
            return unknown("a loop's extent depends on another", *inside)
        bounds = loop_bounds(setting.program)
        free = {loop.variable: loop.extent for loop in inside if loop.variable not in found.reduction}
        for loop in inside:
            if loop.variable in found.reduction and not runs(loop, bounds):
                return unknown(f"where {loop.variable} has no iteration nothing may start", loop)
            # starts that are all done first must not undo what an iteration has added
            if loop.variable in free and not all(
                determines(target.index, loop.variable, free) for target in found.targets
            ):
                return unknown(f"iterations of {loop.variable} may meet in what {self.statement} writes", loop)
        if read_buffers(inside[0]) & written_buffers(found):
            return unknown(f"{self.statement} reads what it writes beside updating it", found)
        for value, target in zip(found.init, found.targets, strict=True):
            if not _exact(value, setting.program.buffers[target.buffer].dtype):
                return illegal(1517, f"{target.buffer} cannot hold the start {value.value} of {self.statement}", found)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        found = setting.statement(self.statement)
        assert found.init is not None
        inside = self._loops(setting, found)
        buffers = setting.program.buffers
        kept = [loop for loop in inside if loop.variable not in found.reduction]
        names = renamed(kept, "init", loop_names(setting.program))
        start_name = derived(self.statement, "init", statement_names(setting.program))
        values: tuple[Expression, ...] = tuple(
            cast(value, buffers[target.buffer].dtype) for value, target in zip(found.init, found.targets, strict=True)
        )
        guards = tuple(guard for guard in found.guards if not guard.names() & set(found.reduction))
        start = Compute(start_name, found.targets, values, guards=guards)
        begin = copied(kept, names, start)
        rest = replace_node(inside[0], found, replace(found, init=None))
        body = replace_node(setting.program.body, inside[0], sequence(begin, rest))
        return Applied(setting.program.with_body(body), {self.statement: (start_name, self.statement)})


def _exact(value: Constant, dtype: DType) -> bool:
    """Whether a type holds a start as it is."""
    if value.dtype == dtype:
        return True
    with np.errstate(all="ignore"):
        there = np.asarray(value.value).astype(dtype.numpy)
        back = there.astype(value.dtype.numpy)
    return bool(back == np.asarray(value.value).astype(value.dtype.numpy))


PRIMITIVE = DecomposeReduction
