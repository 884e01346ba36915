"""prefetch: what a statement will store, or load some iterations later, is brought near; values do not change.

serial i < 64                       serial i < 64
  serial k < 512                      prefetch c[i] for write
    s: c[i] += ...            ->      serial k < 512
                                        s: c[i] += ...

serial i < 64                       serial i < 64
  vectorized l < 32                   vectorized l.near < 32
    s: y[32*i + l] =          ->        prefetch x[32*(i + 8) + l.near] once
        exp(x[32*i + l])              vectorized l < 32
                                        s: y[32*i + l] = exp(x[32*i + l])
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import loads
from tilework.loops.program import Access, Compute, Loop, Storage, path, replace_node, sequence, walk
from tilework.loops.program import Prefetch as PrefetchNode
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import copied, derived, loop_names, renamed, statement_names
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class Prefetch(Primitive):
    """Legal for a statement inside the loop whose target is in memory and lives at the start of the loop's body.

    With the name of a `buffer`: what the statement loads from it, once, `ahead` iterations of the loop later (an
    element that does not exist is not fetched). Lanes that lie next to each other are fetched a cache line at a time;
    what is used once is fetched only where the nest is large enough to write past the caches.
    """

    name: ClassVar[str] = "prefetch"
    looks_at: ClassVar[Reach] = "nest"
    statement: str
    at: str
    buffer: str = ""
    ahead: int = 0

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        loop, found = setting.loop(self.at), setting.statement(self.statement)
        if not path(loop, found):
            return illegal(1508, f"{self.statement} is not inside {self.at}", loop, found)
        if self.ahead < 0 or (self.ahead and not self.buffer):
            return illegal(1518, f"{self.ahead} iterations ahead: only loads can be fetched, and only ahead", found)
        accesses = self._accesses(found)
        if not accesses:
            return illegal(1518, f"{self.statement} does not load {self.buffer}", found)
        if len(accesses) > 1:
            return unknown(f"{self.statement} loads several elements of {self.buffer}", found)
        access = next(iter(accesses))
        buffer = setting.program.buffers[access.buffer]
        if buffer.scope != "global":
            return illegal(1518, f"{buffer.name} is in {buffer.scope} storage; only memory can be brought near", found)
        if any(isinstance(n, Storage) and n.buffer.name == buffer.name for n in path(loop.body, found)):
            return illegal(1518, f"{buffer.name} does not live yet at the start of {self.at}", loop)
        if any(entry.loads() for entry in (*access.index, *found.guards)):
            verb = "loads from" if self.buffer else "stores"
            return unknown(f"data say where {self.statement} {verb}", found)
        inner = {n.variable for n in walk(loop.body) if isinstance(n, Loop)}
        moved = self._loops(setting, access)
        if any(n.extent.names() & inner or n.extent.loads() for n in moved):
            return unknown("a loop's extent depends on another", *moved)
        reach = {n.variable for n in moved}
        if any(g.names() & inner - reach for g in self._guards(found)):
            return unknown(f"a guard of {self.statement} names a loop that its {self._what()} does not", found)
        return LEGAL

    def _what(self) -> str:
        return "load" if self.buffer else "target"

    def _accesses(self, found: Compute) -> tuple[Access, ...]:
        """The element to bring near: one, unless the statement loads none or several of the buffer."""
        if not self.buffer:
            return found.targets[:1]
        read = (load.index for value in found.values for load in loads(value) if load.buffer == self.buffer)
        return tuple(Access(self.buffer, index) for index in dict.fromkeys(read))

    def _loops(self, setting: Setting, access: Access) -> tuple[Loop, ...]:
        """The loops inside `at` that move the element."""
        loop, found = setting.loop(self.at), setting.statement(self.statement)
        used = {name for entry in access.index for name in entry.names()}
        return tuple(n for n in path(loop.body, found) if isinstance(n, Loop) and n.variable in used)

    def _guards(self, found: Compute) -> tuple[Dim, ...]:
        return tuple(guard for guard in found.guards if not guard.names() & set(found.reduction))

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop, found = setting.loop(self.at), setting.statement(self.statement)
        (access,) = self._accesses(found)
        inside = self._loops(setting, access)
        later = {self.at: dim(self.at) + self.ahead}
        there = Access(access.buffer, tuple(entry.substitute(later) for entry in access.index))
        guards = tuple(guard.substitute(later) for guard in self._guards(found))
        name = derived(self.statement, "near", statement_names(setting.program))
        bare = PrefetchNode(name, there, guards, write=not self.buffer, once=bool(self.buffer))
        near = copied(inside, renamed(inside, "near", loop_names(setting.program)), bare)
        new = replace(loop, body=sequence(near, loop.body))
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Prefetch
