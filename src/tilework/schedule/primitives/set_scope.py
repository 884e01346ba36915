"""set_scope: a temporary lives in another memory scope, and, with `at`, only while one iteration of a loop runs.

global t[64]                       serial i < 8
  serial i < 8                       register t[8]
    serial j < 8           ->          serial j < 8
      s: t[8*i + j] = ...                s: t[j] = ...
    serial k < 8                       serial k < 8
      u: b[8*i + k] = t[8*i + k]         u: b[8*i + k] = t[k]
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.loops.program import Loop, LoopProgram, Node, Scope, Storage, path, rewrite, walk
from tilework.schedule.footprint import touched_buffers
from tilework.schedule.marks import marks_after
from tilework.schedule.moving import narrowed, only_life
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import PRIVATE, SCOPES
from tilework.schedule.verdict import Verdict, illegal


@dataclass(frozen=True)
class SetScope(Primitive):
    """Legal for a temporary; `register`, `fragment` and `shared` need a constant size, and the first two one thread.

    `at`: the loop inside which the buffer lives afterwards, shrunk to what an iteration uses (empty: where it does
    now). Legal where each iteration uses elements of its own.
    """

    name: ClassVar[str] = "set_scope"
    buffer: str
    scope: Scope
    at: str = ""

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        if self.scope not in SCOPES:
            return illegal(1505, f"scope={self.scope!r} is none of {', '.join(SCOPES)}")
        placed = self._placed(setting)
        if isinstance(placed, Verdict):
            return placed
        life = only_life(placed, self.buffer, self.name)
        assert isinstance(life, Storage)
        old = only_life(setting.program, self.buffer, self.name)
        assert isinstance(old, Storage)
        if self.scope != "global" and any(extent.value is None for extent in life.buffer.shape):
            return illegal(1522, f"{self.scope} storage has a constant size; {self.buffer} has not", old)
        if self.scope in PRIVATE:
            for loop in walk(life.body):
                threads = isinstance(loop, Loop) and loop.kind not in ("serial", "unrolled", "vectorized")
                if isinstance(loop, Loop) and threads and self.buffer in touched_buffers(loop):
                    return illegal(1522, f"iterations of {loop.variable} ({loop.kind}) share no registers", old)
        return marks_after(setting.program, self.apply(setting).program, setting.numerics)

    def _placed(self, setting: Setting) -> LoopProgram | Verdict:
        life = only_life(setting.program, self.buffer, self.name)
        if isinstance(life, Verdict):
            return life
        if not self.at:
            return setting.program
        loop = setting.loop(self.at)
        if not path(life.body, loop):
            return illegal(1520, f"{self.buffer} does not live around {self.at}", life, loop)
        return narrowed(setting.program, life, loop)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        placed = self._placed(setting)
        assert isinstance(placed, LoopProgram)

        def change(node: Node) -> Node:
            if isinstance(node, Storage) and node.buffer.name == self.buffer:
                return replace(node, buffer=replace(node.buffer, scope=self.scope))
            return node

        return Applied(placed.with_body(rewrite(placed.body, change)))


PRIMITIVE = SetScope
