"""vectorize: the loop's iterations become the lanes of vector instructions, each statement for all lanes at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.loops.program import Loop, replace_node, walk
from tilework.schedule.iterators import kind
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.verdict import LEGAL, Dependence, Verdict, Witness, illegal, unknown

WIDEST = 64
"""Lanes of the widest vector loop; a machine's registers hold fewer, code generation cuts it up."""


@dataclass(frozen=True)
class Vectorize(Primitive):
    """Legal for an independent loop, and for a reduction where reassociation is allowed."""

    name: ClassVar[str] = "vectorize"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        extent = loop.extent.value
        if extent is None or extent > WIDEST:
            split = f"split {self.loop} by the number of lanes and vectorize the inner loop"
            return illegal(
                1510,
                f"{self.loop} has {loop.extent} iterations; it must be a constant <= {WIDEST}",
                loop,
                alternative=split,
            )
        around = [n for n in setting.enclosing(loop) if n.kind == "vectorized"]
        inside = [n for n in walk(loop.body) if isinstance(n, Loop) and n.kind in ("vectorized", "parallel")]
        if around or inside:
            other = (around + inside)[0]
            return illegal(
                1511,
                f"{other.variable} ({other.kind}) and {self.loop} are nested; only one loop can be the lanes",
                loop,
                other,
            )
        match kind(setting.program, loop):
            case "independent":
                return LEGAL
            case "reduction" if setting.numerics.reassociate:
                return LEGAL
            case "reduction":
                return illegal(
                    1512, f"lanes of {self.loop} would regroup a sum, and numerics are strict", loop,
                    dependence=Dependence("flow", "the reduction's target", (self.loop,), ("<",)),
                    witness=Witness({self.loop: 0}, {self.loop: 1}),
                )  # fmt: skip
            case _:
                return unknown(f"iterations of {self.loop} may depend on each other", loop)

    def apply(self, setting: Setting) -> Applied:
        loop = setting.loop(self.loop)
        new = replace(loop, kind="vectorized")
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Vectorize
