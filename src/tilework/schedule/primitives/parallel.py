"""parallel: the loop's iterations may run on different threads, in any order.

serial i < 512             parallel i < 512
  s: a[i, j] = ...   ->      s: a[i, j] = ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.loops.program import replace_node
from tilework.schedule.marks import mark_verdict
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.verdict import Verdict, illegal


@dataclass(frozen=True)
class Parallel(Primitive):
    """Legal for an independent loop only: threads that combine into one element race, whatever the numerics."""

    name: ClassVar[str] = "parallel"
    looks_at: ClassVar[Reach] = "nest"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        return mark_verdict(setting.program, setting.numerics, loop, "parallel")

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        new = replace(loop, kind="parallel")
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Parallel
