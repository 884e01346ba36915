"""partition: serial loops are cut where a guard changes truth, so that most pieces need none.

    serial i < 13                                        serial i < 12
      vectorized j < 8                                     vectorized j < 8
        s: a[8*i + j] = ...  where 99 - 8*i - j >= 0  ->     s: a[8*i + j] = ...
                                                         vectorized j.1 < 8
                                                           s: a[96 + j.1] = ...  where 3 - j.1 >= 0

Code generation does not do it: as a step it lets the pieces be scheduled apart, and the schedule says what a nest may
spend on them. A statement in a piece keeps its name: later steps find the first of that name.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from tilework.fast_dataclass import dataclass
from tilework.loops.partition import partition
from tilework.loops.program import LoopProgram, path, statements
from tilework.schedule.marks import marks_after
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.verdict import Verdict, illegal


@dataclass(frozen=True)
class Partition(Primitive):
    """Always keeps values; refused where nothing can be cut, or where a mark could no longer be shown to be legal.

    `loop`: the nest (empty: all). `budget`: nodes that the program may grow to; past it guards stay. `inside`: whether
    loops inside that one are cut as well, or stay "whole".
    """

    name: ClassVar[str] = "partition"
    loop: str = ""
    budget: int = 20000
    inside: Literal["cut", "whole"] = "cut"

    def _cut(self, setting: Setting) -> LoopProgram:
        only = setting.loop(self.loop) if self.loop else None
        return partition(setting.program, self.budget, only, alone=self.inside == "whole")

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        if self.budget < 1:
            return illegal(1505, f"the budget is {self.budget} nodes; it must be at least 1")
        if self.inside not in ("cut", "whole"):
            return illegal(1505, f'inside is {self.inside!r}; loops inside are "cut" or stay "whole"')
        if self.inside == "whole" and not self.loop:
            return illegal(1505, "which loop is to be cut without those inside it is not said")
        only = setting.loop(self.loop) if self.loop else None
        found = [s for s in statements(setting.program.body) if only is None or path(only, s)]
        if not any(s.guards for s in found):
            return illegal(
                1505, f"nothing in {self.loop or 'the program'} is guarded", *(() if only is None else (only,))
            )
        after = self._cut(setting)
        if after.body is setting.program.body:
            return illegal(1505, f"no serial loop can be cut within {self.budget} nodes")
        # pieces of a loop inside a parallel one may no longer show that its iterations stay apart
        return marks_after(setting.program, after, setting.numerics)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        after = self._cut(setting)
        before = setting.names()
        now = Setting(after, setting.numerics, setting.machine).names()
        forwards: dict[str, tuple[str, ...]] = {}
        for name in before:
            pieces = sorted(n for n in now - before if re.fullmatch(re.escape(name) + r"(\.\d+)+", n))
            here = ((name,) if name in now else ()) + tuple(pieces)
            if here != (name,):
                forwards[name] = here
        return Applied(after, forwards)


PRIMITIVE = Partition
