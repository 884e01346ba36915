"""fuse_into_store: an elementwise consumer becomes part of the statement that stores what it reads.

    global t[64]                                serial i < 64
      serial i < 64                               d: d[i] = max(a[i] * 2, 0)
        s: t[i] = a[i] * 2              ->
      serial x < 64
        d: d[x] = max(t[x], 0)

A temporary that nobody else reads goes away. Compared with `reverse_compute_at` there is no second pass over the box,
but more code where the store is unrolled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Load, cast, rewrite, substitute
from tilework.loops.program import EMPTY, Access, Compute, Loop, Node, Storage, path, sequence, statements, walk
from tilework.loops.program import rewrite as rewrite_tree
from tilework.schedule.consumers import Consumer, clear_way, consumer, writers_below
from tilework.schedule.footprint import reads_of
from tilework.schedule.iterators import determines
from tilework.schedule.marks import marks_after
from tilework.schedule.moving import loops_between
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.verdict import Verdict, illegal, unknown


@dataclass(frozen=True)
class FuseIntoStore(Primitive):
    """Legal where `into` stores each element once and for good, the consumer reads the elements one by one, and nothing
    in between uses the consumer's result or overwrites what else it reads.
    """

    name: ClassVar[str] = "fuse_into_store"
    statement: str
    into: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        plan = self._plan(setting)
        if isinstance(plan, Verdict):
            return plan
        return marks_after(setting.program, self.apply(setting).program, setting.numerics)

    def _plan(self, setting: Setting) -> tuple[Consumer, Compute] | Verdict:
        program = setting.program
        store = setting.statement(self.into)
        if store.reducer is not None:
            return illegal(1520, f"what {self.into} stores is not final: it goes on reducing", store)
        found = consumer(setting, self.statement, {t.buffer for t in store.targets})
        if isinstance(found, Verdict):
            return found
        if len(store.targets) != 1:
            return unknown(f"{self.into} has several results", store)
        writers = [s for s in statements(program.body) if any(t.buffer == found.source for t in s.targets)]
        other = next((s for s in writers if s is not store), None)
        if other is not None:
            return illegal(1520, f"{other.name} writes {found.source} too", other, store)
        stopped = writers_below(program, found, store)
        if stopped is not None:
            return stopped
        between = clear_way(program, found, store)
        if isinstance(between, Verdict):
            return between
        around = [n for n in (between[0], *loops_between(program, between[0], store)) if isinstance(n, Loop)]
        free = {n.variable: n.extent for n in around}
        for loop in around:
            if (loop.extent.value or 2) > 1 and not determines(store.target.index, loop.variable, free):
                return unknown(f"iterations of {loop.variable} may store the same element of {found.source}", loop)
        extra = [n for n in walk(found.own) if isinstance(n, Loop) and n.variable not in found.loops and n.extent != 1]
        if extra:
            return unknown(f"{extra[0].variable} does not index {found.source}", extra[0])
        alive = {n.buffer.name for n in path(program.body, store) if isinstance(n, Storage)}
        if found.source not in alive | {a.buffer.name for a in program.arguments}:
            return unknown(f"{found.source} does not live where {self.into} stands", store)
        return found, store

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        plan = self._plan(setting)
        assert not isinstance(plan, Verdict)
        found, store = plan
        program = setting.program
        source = program.buffers[found.source]
        values: dict[str, Dim] = {
            name: entry for name, entry in zip(found.loops, store.target.index, strict=True) if name
        }
        values = {n.variable: dim(0) for n in walk(found.own) if isinstance(n, Loop)} | values  # once where not named
        argument = any(a.buffer.name == found.source for a in program.arguments)
        others = [s for s in statements(program.body) if s is not found.statement and reads_of(found.source, [s])]
        stays = argument or bool(others)
        stored = cast(store.values[0], source.dtype)
        kept = Load(source.name, store.target.index, source.dtype)

        def leaf(node: Expression) -> Expression:
            return (kept if stays else stored) if isinstance(node, Load) and node.buffer == source.name else node

        value = rewrite(substitute(found.statement.values[0], values), leaf)
        target = found.statement.target
        fused = replace(
            found.statement,
            targets=(Access(target.buffer, tuple(entry.substitute(values) for entry in target.index)),),
            values=(value,),
            guards=tuple(dict.fromkeys((*store.guards, *(g.substitute(values) for g in found.statement.guards)))),
        )

        def change(node: Node) -> Node:
            if node is found.own:
                return EMPTY
            if node is store:
                return sequence(store, fused) if stays else fused
            return node.body if not stays and isinstance(node, Storage) and node.buffer.name == source.name else node

        forwards = {} if stays else {store.name: (found.statement.name,)}
        return Applied(program.with_body(rewrite_tree(program.body, change)), forwards)


PRIMITIVE = FuseIntoStore
