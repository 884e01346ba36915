"""unroll: the loop's iterations are written out one after another in the generated code.

serial i < 4            unrolled i < 4
  s: a[i] = ...   ->      s: a[i] = ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.loops.program import replace_node
from tilework.schedule.marks import mark_verdict
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.verdict import Verdict, illegal


@dataclass(frozen=True)
class Unroll(Primitive):
    """Order is kept; the extent must be a constant of at most 1024."""

    name: ClassVar[str] = "unroll"
    looks_at: ClassVar[Reach] = "nest"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        return mark_verdict(setting.program, setting.numerics, loop, "unrolled")

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        new = replace(loop, kind="unrolled")
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Unroll
