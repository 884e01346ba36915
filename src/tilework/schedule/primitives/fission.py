"""fission: a loop over several nodes becomes one loop over each, one after another.

serial i < 64                       serial i.first < 64
  c.init: c[i] = 0                    c.init: c[i.first] = 0
  serial k < N              ->      serial i < 64
    c: c[i] += a[i, k]                serial k < N
                                        c: c[i] += a[i, k]
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tilework.dims import dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import Loop, Sequence, replace_node, sequence
from tilework.schedule.iterators import kind
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import derived, replace_variables
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class Fission(Primitive):
    """Legal for an independent loop: what comes first for one iteration may come first for all. The last node keeps the
    loop's name, the others get names derived from it.
    """

    name: ClassVar[str] = "fission"
    looks_at: ClassVar[Reach] = "nest"
    loop: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop = setting.loop(self.loop)
        if loop.kind != "serial":
            return illegal(1506, f"{self.loop} is {loop.kind} already", loop)
        if not isinstance(loop.body, Sequence) or len(loop.body.children) < 2:
            return illegal(1508, f"{self.loop} holds one node only", loop)
        if kind(setting.program, loop) != "independent":
            return unknown(f"iterations of {self.loop} may depend on each other", loop)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop = setting.loop(self.loop)
        assert isinstance(loop.body, Sequence)
        taken = set(setting.names())
        parts: list[Loop] = []
        names: list[str] = []
        for node in loop.body.children[:-1]:
            name = derived(self.loop, "first", taken)
            taken.add(name)
            names.append(name)
            parts.append(Loop(name, loop.extent, "serial", replace_variables(node, {self.loop: dim(name)})))
        parts.append(replace(loop, body=loop.body.children[-1]))
        body = replace_node(setting.program.body, loop, sequence(*parts))
        return Applied(setting.program.with_body(body), {self.loop: (*names, self.loop)})


PRIMITIVE = Fission
