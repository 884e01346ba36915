"""vectorize: the loop's iterations become the lanes of vector instructions, each statement for all lanes at once.

serial j < 16              vectorized j < 16
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
class Vectorize(Primitive):
    """Legal for an independent loop of at most 64 iterations, and for a reduction where reassociation is allowed."""

    name: ClassVar[str] = "vectorize"
    looks_at: ClassVar[Reach] = "nest"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        return mark_verdict(setting.program, setting.numerics, loop, "vectorized")

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        new = replace(loop, kind="vectorized")
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Vectorize
