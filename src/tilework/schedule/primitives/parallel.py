"""parallel: the loop's iterations may run on different threads, in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.loops.program import Compute, replace_node, walk
from tilework.schedule.iterators import kind
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.verdict import LEGAL, Dependence, Verdict, Witness, illegal, unknown


@dataclass(frozen=True)
class Parallel(Primitive):
    """Legal for an independent loop only: threads that add into one element race, whatever the numerics."""

    name: ClassVar[str] = "parallel"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        around = [n for n in setting.enclosing(loop) if n.kind in ("parallel", "vectorized")]
        if around:
            return illegal(
                1511, f"{self.loop} is inside the {around[0].kind} loop {around[0].variable}", loop, around[0]
            )
        match kind(setting.program, loop):
            case "independent":
                return LEGAL
            case "reduction":
                into = next(
                    t.buffer
                    for n in walk(loop.body)
                    if isinstance(n, Compute) and n.reducer is not None
                    for t in n.targets
                )
                return illegal(
                    1513, f"iterations of {self.loop} add into the same element of {into}", loop,
                    dependence=Dependence("flow", into, (self.loop,), ("<",)),
                    witness=Witness({self.loop: 0}, {self.loop: 1}),
                    alternative="parallelise a loop that indexes the result",
                )  # fmt: skip
            case _:
                return unknown(f"iterations of {self.loop} may depend on each other", loop)

    def apply(self, setting: Setting) -> Applied:
        loop = setting.loop(self.loop)
        new = replace(loop, kind="parallel")
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Parallel
