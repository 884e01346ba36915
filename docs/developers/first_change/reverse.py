"""reverse: a loop runs backwards.

serial i < 8                serial i < 8
  s: a[i] = ...       ->      s: a[7 - i] = ...
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tilework.dims import dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import replace_node
from tilework.schedule.iterators import kind
from tilework.schedule.marks import marks_after
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import instructions, replace_variables
from tilework.schedule.verdict import Verdict, illegal, unknown
from tilework.schedule.witness import conflict


@dataclass(frozen=True)
class Reverse(Primitive):
    """Legal for a serial loop whose iterations are independent, or combine where reassociation is allowed."""

    name: ClassVar[str] = "reverse"
    looks_at: ClassVar[Reach] = "nest"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        if held := instructions(loop.body):
            return illegal(1519, f"{held[0].instruction} knows its loops in their order", held[0], loop)
        found = kind(setting.program, loop)
        if found == "independent" or (found == "reduction" and setting.numerics.reassociate):
            return marks_after(setting.program, self.apply(setting).program, setting.numerics)
        verdict = unknown(f"the order of {self.loop} may matter", loop)
        shown = conflict(setting.program, loop)
        return verdict if shown is None else replace(verdict, dependence=shown.dependence, witness=shown.witness)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        backwards = {self.loop: loop.extent - 1 - dim(self.loop)}
        body = replace_variables(loop.body, backwards, over={self.loop: (self.loop,)})
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, replace(loop, body=body))))


PRIMITIVE = Reverse
