"""prefetch: what a statement will store is brought near at the start of a loop's body; values do not change.

    serial i < 64                       serial i < 64
      serial k < 512                      prefetch c[i] for writing
        s: c[i] += ...            ->      serial k < 512
                                            s: c[i] += ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.dims import dim
from tilework.loops.program import Loop, Storage, path, replace_node, sequence
from tilework.loops.program import Prefetch as PrefetchNode
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import nest, replace_variables
from tilework.schedule.verdict import LEGAL, Verdict, illegal


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
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        loop, found = setting.loop(self.at), setting.statement(self.statement)
        target = found.targets[0]
        used = {name for entry in target.index for name in entry.names()}
        inside = [n for n in path(loop.body, found) if isinstance(n, Loop) and n.variable in used]
        reduced = set(found.reduction)
        guards = tuple(guard for guard in found.guards if not guard.names() & reduced)
        names = {n.variable: f"{n.variable}.{self.statement}.near" for n in inside}
        bare = PrefetchNode(f"{self.statement}.near", target, guards, write=True)
        moved = replace_variables(bare, {old: dim(new) for old, new in names.items()})
        near = nest(tuple((names[n.variable], n.extent, n.kind) for n in inside), moved)
        new = replace(loop, body=sequence(near, loop.body))
        return Applied(setting.program.with_body(replace_node(setting.program.body, loop, new)))


PRIMITIVE = Prefetch
