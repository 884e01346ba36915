"""fuse: two loops, one directly inside the other, become one over all pairs of iterations, in the same order.

serial i < 4            serial i_j < 32
  serial j < 8    ->      s: a[i_j // 8, i_j % 8] = ...
    s: a[i, j] = ...
"""

from __future__ import annotations

from typing import ClassVar

from tilework.dims import dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import Compute, Loop, replace_node, walk
from tilework.schedule.primitive import LARGEST, Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import loop_names, replace_variables
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class Fuse(Primitive):
    """Order is kept, so fusing is legal where the two loops are a perfect nest of serial loops."""

    name: ClassVar[str] = "fuse"
    looks_at: ClassVar[Reach] = "nest"
    first: str
    second: str
    fused: str = ""

    def check(self, setting: Setting) -> Verdict:
        outer, inner = setting.loop(self.first), setting.loop(self.second)
        if outer.body is not inner:
            return illegal(1508, f"{self.second} is not the whole body of {self.first}", outer, inner)
        if outer.kind != "serial" or inner.kind != "serial":
            return illegal(1506, "only serial loops can be fused; fuse before marking them", outer, inner)
        if inner.extent.names() & setting.names() or inner.extent.loads():
            return unknown(f"the extent of {self.second} is not the same for all iterations of all loops", inner)
        both = (outer.extent * inner.extent).value
        if both is not None and both > LARGEST:
            return illegal(1505, f"{both} iterations are more than indices of 64 bits count", outer, inner)
        # the fused variable stands for both, so a statement must reduce over both or neither
        for node in walk(inner.body):
            if isinstance(node, Compute) and (self.first in node.reduction) != (self.second in node.reduction):
                return illegal(
                    1509, f"{node.name} reduces over one of {self.first} and {self.second} only", outer, inner
                )
        name = self.fused or f"{self.first}_{self.second}"
        if name in loop_names(setting.program) - {self.first, self.second}:
            return illegal(1507, f"a loop or symbol is already called {name}", outer)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        outer, inner = setting.loop(self.first), setting.loop(self.second)
        name = self.fused or f"{self.first}_{self.second}"
        both = dim(name)
        known = inner.extent.value
        if known == 0:
            # no iteration runs; any divisor gives the same (empty) program
            values = {self.first: both, self.second: both}
        else:
            values = {self.first: both // inner.extent, self.second: both % inner.extent}
        body = replace_variables(inner.body, values, {self.first: (name,), self.second: (name,)})
        new = Loop(name, outer.extent * inner.extent, "serial", body)
        program = setting.program.with_body(replace_node(setting.program.body, outer, new))
        return Applied(program, {self.first: (name,), self.second: (name,)})


PRIMITIVE = Fuse
