"""split: one loop becomes two, `outer` over pieces and `inner` within a piece of `factor` iterations.

serial i < 100            serial i.outer < 13
  s: a[i] = ...     ->      serial i.inner < 8
                              s: a[8*i.outer + i.inner] = ...  where 99 - 8*i.outer - i.inner >= 0
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from tilework.dims import dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import Loop, replace_node, walk
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import add_guard, instructions, loop_names, replace_variables
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class Split(Primitive):
    """Order is kept, so a split is legal wherever its arguments make sense.

    `tail` says what happens to a last piece that is not full: `guard` tests every iteration of it; `mask` does the same
    but promises that the inner loop becomes vector lanes (so `factor` is at most 64).
    """

    name: ClassVar[str] = "split"
    looks_at: ClassVar[Reach] = "nest"
    loop: str
    factor: int
    outer: str = ""
    inner: str = ""
    tail: Literal["guard", "mask"] = "guard"

    def _names(self) -> tuple[str, str]:
        return self.outer or f"{self.loop}.outer", self.inner or f"{self.loop}.inner"

    def check(self, setting: Setting) -> Verdict:
        loop = setting.loop(self.loop)
        if self.factor < 1:
            return illegal(1505, f"the factor is {self.factor}; it must be at least 1", loop)
        if self.tail not in ("guard", "mask"):
            return illegal(1505, f"tail={self.tail!r} is neither 'guard' nor 'mask'", loop)
        if self.tail == "mask" and self.factor > 64:
            return illegal(1505, f"a masked piece has at most 64 lanes, not {self.factor}", loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind}; split it before it is marked", loop)
        outer, inner = self._names()
        taken = (loop_names(setting.program) - {self.loop}) & {outer, inner}
        if taken or outer == inner:
            return illegal(1507, f"a loop or symbol is already called {min(taken) if taken else outer}", loop)
        if loop.extent % self.factor == 0:
            return LEGAL
        held = instructions(loop)
        if held:
            return illegal(1519, f"{held[0].instruction} knows no guard, and {self.factor} does not divide", held[0])
        if any(isinstance(n, Loop) and n.extent.loads() for n in walk(loop.body)):
            return unknown("past the last iteration, data would say how often an inner loop runs", loop)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        loop = setting.loop(self.loop)
        outer, inner = self._names()
        value = dim(outer) * self.factor + dim(inner)
        bounds = {inner: (0, self.factor - 1), outer: (0, math.inf)}
        body = replace_variables(loop.body, {self.loop: value}, {self.loop: (outer, inner)}, bounds)
        if loop.extent % self.factor != 0:
            body = add_guard(body, loop.extent - 1 - value)
        pieces = loop.extent.ceildiv(self.factor)
        new = Loop(outer, pieces, "serial", Loop(inner, dim(self.factor), "serial", body))
        program = setting.program.with_body(replace_node(setting.program.body, loop, new))
        return Applied(program, {self.loop: (outer, inner)})


PRIMITIVE = Split
