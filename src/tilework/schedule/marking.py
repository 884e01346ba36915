"""What the primitives that mark a loop share: the loop is serial before, its mark may stand, and nothing moves."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.loops.program import replace_node
from tilework.schedule.marks import Mark, mark_verdict
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.verdict import Verdict, illegal


@dataclass(frozen=True)
class Marking(Primitive):
    """A serial loop gets a mark; `marks.mark_verdict` says whether it may bear it."""

    looks_at: ClassVar[Reach] = "nest"
    mark: ClassVar[Mark]
    loop: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        return mark_verdict(setting.program, setting.numerics, loop, self.mark)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        marked = replace(loop, kind=self.mark)
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, marked)))
