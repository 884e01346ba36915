"""reverse_compute_at: an elementwise consumer runs at the end of a loop's body, over the box that the body writes.

    serial i < 64                               serial i < 64
      serial j < 16                               serial j < 16
        c: c[i, j] = ...                            c: c[i, j] = ...
    serial y < 64                       ->        serial y < 1
      serial x < 16                                 serial x < 16
        d: d[y, x] = max(c[y, x], 0)                  d: d[i + y, x] = max(c[i + y, x], 0)

It keeps a nest of its own, so its loops can still be split and marked.
"""

from __future__ import annotations

from typing import ClassVar

from tilework.dims import dim
from tilework.fast_dataclass import dataclass
from tilework.loops.program import EMPTY, Loop, Node, path, rewrite, sequence
from tilework.schedule.consumers import Consumer, clear_way, consumer, finished, writers_below
from tilework.schedule.footprint import Box, box, loops_inside, writes_of, written_buffers
from tilework.schedule.marks import marks_after
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import add_guard, loop_bounds, needed_guards, replace_variables
from tilework.schedule.verdict import Verdict, illegal, unknown


@dataclass(frozen=True)
class ReverseComputeAt(Primitive):
    """Legal for an elementwise statement whose input is final at the end of the iteration: every loop around writes
    other elements in each iteration; and where nothing in between uses its result or overwrites what it reads.
    """

    name: ClassVar[str] = "reverse_compute_at"
    statement: str
    at: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        plan = self._plan(setting)
        if isinstance(plan, Verdict):
            return plan
        return marks_after(setting.program, self.apply(setting).program, setting.numerics)

    def _plan(self, setting: Setting) -> tuple[Consumer, Loop, Box] | Verdict:
        program = setting.program
        loop = setting.loop(self.at)
        if path(loop, setting.statement(self.statement)):
            return illegal(1520, f"{self.statement} is inside {self.at} already", loop)
        found = consumer(setting, self.statement, written_buffers(loop.body))
        if isinstance(found, Verdict):
            return found
        if path(found.own, loop):
            return illegal(1520, f"{self.at} is a loop of {self.statement} itself", loop)
        stopped = writers_below(program, found, loop.body)
        if stopped is not None:
            return stopped
        between = clear_way(program, found, loop)
        if isinstance(between, Verdict):
            return between
        stopped = finished(program, found.source, between[0], loop)
        if stopped is not None:
            return stopped
        shape = program.buffers[found.source].shape
        sides = box(writes_of(found.source, loop.body), loops_inside(loop.body), shape, clamp=True)
        if sides is None:
            return unknown(f"what {self.at} writes of {found.source} is no box", loop)
        for side, name in zip(sides, found.loops, strict=True):
            if not name and (side.start != 0 or side.size != 1):
                return unknown(f"what {self.at} writes of {found.source} is no box", loop)
        return found, loop, sides

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        plan = self._plan(setting)
        assert not isinstance(plan, Verdict)
        found, loop, sides = plan
        program = setting.program
        bounds = loop_bounds(program)
        shape = program.buffers[found.source].shape
        places = {name: d for d, name in enumerate(found.loops) if name}

        def narrow(node: Node) -> Node:
            if not isinstance(node, Loop) or node.variable not in places:
                return node
            d = places[node.variable]
            side = sides[d]
            if side.start == 0 and side.size == shape[d]:
                return node
            index = side.start + dim(node.variable)
            here = {**bounds, node.variable: (0, max(0, side.size.bounds(bounds)[1] - 1))}
            body = replace_variables(node.body, {node.variable: index})
            return Loop(node.variable, side.size, node.kind, add_guard(body, *needed_guards(index, shape[d], here)))

        inside = sequence(loop.body, rewrite(found.own, narrow))
        there = Loop(loop.variable, loop.extent, loop.kind, inside)

        def change(node: Node) -> Node:
            return EMPTY if node is found.own else there if node is loop else node

        return Applied(program.with_body(rewrite(program.body, change)))


PRIMITIVE = ReverseComputeAt
