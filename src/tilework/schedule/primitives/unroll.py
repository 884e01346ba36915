"""unroll: the loop's iterations are written out one after another in the generated code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.loops.program import replace_node
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.verdict import LEGAL, Verdict, illegal

LARGEST = 1024
"""Iterations beyond which writing them out only costs compile time."""


@dataclass(frozen=True)
class Unroll(Primitive):
    """Order is kept; the extent must be a constant of at most 1024."""

    name: ClassVar[str] = "unroll"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        extent = loop.extent.value
        if extent is None or extent > LARGEST:
            split = f"split {self.loop} first and unroll the inner loop"
            return illegal(
                1510,
                f"{self.loop} has {loop.extent} iterations; it must be a constant <= {LARGEST}",
                loop,
                alternative=split,
            )
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        loop = setting.loop(self.loop)
        new = replace(loop, kind="unrolled")
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Unroll
