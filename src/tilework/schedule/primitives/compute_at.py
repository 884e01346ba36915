"""compute_at: a producer computes, at the start of a loop's body, the box that the body reads; its storage shrinks.

    global t[66]                                  serial i < 64
      serial p < 66                                 global t[3]
        t: t[p] = a[p] * 2                ->          serial p < 3
      serial i < 64                                     t: t[p] = a[i + p] * 2
        serial d < 3                                  serial d < 3
          s: b[i] += t[i + d]                           s: b[i] += t[d]

What neighbouring iterations both read is computed by each of them; `store_at` keeps it instead.
"""

from __future__ import annotations

from typing import ClassVar

from tilework.dims import dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import EMPTY, Compute, Loop, Node, Storage, path, rewrite, sequence, statements
from tilework.loops.program import walk as walk_tree
from tilework.schedule.footprint import Box, read_buffers, reads_in_dims, reads_of, written_buffers
from tilework.schedule.iterators import kind
from tilework.schedule.marks import marks_after
from tilework.schedule.moving import box_inside, only_life, plain_use, shifted, siblings, smaller
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import add_guard, instructions, loop_bounds, needed_guards, own_nest, replace_variables
from tilework.schedule.verdict import Verdict, illegal, unknown


@dataclass(frozen=True)
class _Plan:
    life: Storage
    own: Node
    loop: Loop
    sides: Box
    moved: dict[str, int]
    """Loops of the producer that now walk over the box, and the dimension that each of them indexes."""


@dataclass(frozen=True)
class ComputeAt(Primitive):
    """Legal for the only nest that writes a temporary, where all its readers are inside the loop, nothing in between
    overwrites what it reads, and the box is one that its loops can walk over.
    """

    name: ClassVar[str] = "compute_at"
    statement: str
    at: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        plan = self._plan(setting)
        if isinstance(plan, Verdict):
            return plan
        return marks_after(setting.program, self._apply(setting, plan).program, setting.numerics)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        plan = self._plan(setting)
        assert isinstance(plan, _Plan)
        return self._apply(setting, plan)

    def _plan(self, setting: Setting) -> _Plan | Verdict:
        program = setting.program
        found, loop = setting.statement(self.statement), setting.loop(self.at)
        if len(found.targets) != 1:
            return unknown(f"{self.statement} has several results", found)
        buffer = found.target.buffer
        life = only_life(program, buffer, self.name)
        if isinstance(life, Verdict):
            return life
        special = plain_use(buffer, program.body)
        if special is not None:
            return special
        every = list(statements(program.body))
        writers = [s for s in every if any(t.buffer == buffer for t in s.targets)]
        own = own_nest(program, writers)
        if path(loop, found):
            return illegal(1520, f"{self.statement} is computed inside {self.at} already", found, loop)
        if path(own, loop):
            return unknown(f"the statements that write {buffer} are no nest of their own", *writers)
        if path(loop, own):
            return illegal(1520, f"{buffer} is computed inside {self.at} already", found, loop)
        private = {n.buffer.name for n in walk_tree(own) if isinstance(n, Storage)}
        others = written_buffers(own) - private - {buffer}
        if others:
            return unknown(f"what computes {buffer} also writes {min(others)}", own)
        if buffer in read_buffers(own):
            return unknown(f"{self.statement} reads what it writes", found)
        if buffer in reads_in_dims(program.body):
            return unknown(f"{buffer} is read by an index or a guard", found)
        if instructions(own):
            return illegal(1519, f"{instructions(own)[0].instruction} stands for a whole tile", own)
        outside = [s for s in every if reads_of(buffer, [s]) and not path(loop.body, s)]
        if outside:
            return illegal(1520, f"{outside[0].name} reads {buffer} outside {self.at}", outside[0], loop)
        indices = reads_of(buffer, statements(loop.body))
        if not indices:
            return illegal(1520, f"nothing inside {self.at} reads {buffer}", loop)
        meeting = siblings(program, own, loop)
        if meeting is None or meeting[0].children[meeting[1]] is not own:
            return unknown(f"{self.statement} and {self.at} are no parts of one sequence", found, loop)
        if meeting[1] > meeting[2]:
            return illegal(1520, f"{self.statement} runs after {self.at}", found, loop)
        around = [n for n in path(life.body, meeting[0]) if isinstance(n, Loop)]
        if around:
            return unknown(f"values of earlier iterations of {around[0].variable} may be read", around[0])
        sources = read_buffers(own) - private
        for child in meeting[0].children[meeting[1] + 1 : meeting[2] + 1]:
            over = [n for n in walk_tree(child) if isinstance(n, Compute) and written_buffers(n) & sources]
            if over:
                return illegal(1520, f"{over[0].name} overwrites what {self.statement} reads", found, over[0])
            if written_buffers(child) & sources:
                return unknown(f"something in between overwrites what {self.statement} reads", found, child)
        sides = box_inside(program, buffer, loop.body, indices)
        if sides is None:
            return unknown(f"the reads of {buffer} inside {self.at} are no box", loop)
        moved = self._moved(setting, own, writers, sides, buffer)
        return moved if isinstance(moved, Verdict) else _Plan(life, own, loop, sides, moved)

    def _moved(
        self, setting: Setting, own: Node, writers: list[Compute], sides: Box, buffer: str
    ) -> dict[str, int] | Verdict:
        loops = {n.variable: n for n in walk_tree(own) if isinstance(n, Loop)}
        moved: dict[str, int] = {}
        for d, (side, extent) in enumerate(zip(sides, setting.program.buffers[buffer].shape, strict=True)):
            if side.start == 0 and side.size == extent:
                continue
            for writer in writers:
                entry = next(t.index[d] for t in writer.targets if t.buffer == buffer)
                if entry == side.start and side.size == 1:
                    continue
                name = next(iter(entry.names()), "")
                if name not in loops or entry != dim(name) or loops[name].extent != extent:
                    return unknown(f"dimension {d} of {buffer} is not walked by one loop of {writer.name}", writer)
                if moved.setdefault(name, d) != d:
                    return unknown(f"{name} walks over two dimensions of {buffer}", loops[name])
        for name in moved:
            if kind(setting.program, loops[name]) != "independent":
                return unknown(f"iterations of {name} may need each other", loops[name])
            if any(n.extent.loads() for n in walk_tree(loops[name].body) if isinstance(n, Loop)):
                return unknown("data say how often a loop runs", loops[name])
        return moved

    def _apply(self, setting: Setting, plan: _Plan) -> Applied:
        program = setting.program
        kept = plan.life.buffer
        bounds = loop_bounds(program)

        def narrow(node: Node) -> Node:
            if not isinstance(node, Loop) or node.variable not in plan.moved:
                return node
            d = plan.moved[node.variable]
            side = plan.sides[d]
            index = side.start + dim(node.variable)
            here = {**bounds, node.variable: (0, max(0, side.size.bounds(bounds)[1] - 1))}
            guards = needed_guards(index, kept.shape[d], here)
            values = {} if side.start == 0 else {node.variable: index}
            body = replace_variables(node.body, values, {node.variable: (node.variable,)}) if values else node.body
            return Loop(node.variable, side.size, node.kind, add_guard(body, *guards))

        origin = tuple(side.start for side in plan.sides)
        computed = shifted(rewrite(plan.own, narrow), kept.name, origin)
        inside = sequence(computed, shifted(plan.loop.body, kept.name, origin))
        there = Loop(plan.loop.variable, plan.loop.extent, plan.loop.kind, Storage(smaller(kept, plan.sides), inside))
        return Applied(program.with_body(moved_nest(program.body, plan.own, kept.name, plan.loop, there)))


def moved_nest(root: Node, gone: Node, buffer: str, loop: Loop, new: Loop) -> Node:
    """The tree without a nest and without a buffer's storage, and with a loop replaced."""

    def change(node: Node) -> Node:
        if node is gone:
            return EMPTY
        if node is loop:
            return new
        return node.body if isinstance(node, Storage) and node.buffer.name == buffer else node

    return rewrite(root, change)


PRIMITIVE = ComputeAt
