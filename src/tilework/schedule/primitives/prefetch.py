"""prefetch: what a statement will store is brought near at the start of a loop's body; values do not change.

serial i < 64                       serial i < 64
  serial k < 512                      prefetch c[i] for writing
    s: c[i] += ...            ->      serial k < 512
                                        s: c[i] += ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.dims import Dim
from tilework.loops.program import Compute, Loop, Storage, path, replace_node, sequence, walk
from tilework.loops.program import Prefetch as PrefetchNode
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import copied, derived, loop_names, renamed, statement_names
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class Prefetch(Primitive):
    """Legal for a statement inside the loop whose target is in memory and lives at the start of the loop's body."""

    name: ClassVar[str] = "prefetch"
    statement: str
    at: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop, found = setting.loop(self.at), setting.statement(self.statement)
        if not path(loop, found):
            return illegal(1508, f"{self.statement} is not inside {self.at}", loop, found)
        buffer = setting.program.buffers[found.targets[0].buffer]
        if buffer.scope != "global":
            return illegal(1518, f"{buffer.name} is in {buffer.scope} storage; only memory can be brought near", found)
        if any(isinstance(n, Storage) and n.buffer.name == buffer.name for n in path(loop.body, found)):
            return illegal(1518, f"{buffer.name} does not live yet at the start of {self.at}", loop)
        if any(entry.loads() for entry in (*found.targets[0].index, *found.guards)):
            return unknown(f"data say where {self.statement} stores", found)
        inner = {n.variable for n in walk(loop.body) if isinstance(n, Loop)}
        moved = self._loops(setting)
        if any(n.extent.names() & inner or n.extent.loads() for n in moved):
            return unknown("a loop's extent depends on another", *moved)
        reach = {n.variable for n in moved}
        if any(g.names() & inner - reach for g in self._guards(found)):
            return unknown(f"a guard of {self.statement} names a loop that its target does not", found)
        return LEGAL

    def _loops(self, setting: Setting) -> tuple[Loop, ...]:
        """The loops inside `at` that move the element stored."""
        loop, found = setting.loop(self.at), setting.statement(self.statement)
        used = {name for entry in found.targets[0].index for name in entry.names()}
        return tuple(n for n in path(loop.body, found) if isinstance(n, Loop) and n.variable in used)

    def _guards(self, found: Compute) -> tuple[Dim, ...]:
        return tuple(guard for guard in found.guards if not guard.names() & set(found.reduction))

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop, found = setting.loop(self.at), setting.statement(self.statement)
        inside = self._loops(setting)
        name = derived(self.statement, "near", statement_names(setting.program))
        bare = PrefetchNode(name, found.targets[0], self._guards(found), write=True)
        near = copied(inside, renamed(inside, "near", loop_names(setting.program)), bare)
        new = replace(loop, body=sequence(near, loop.body))
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Prefetch
