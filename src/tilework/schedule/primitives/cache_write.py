"""cache_write: a statement computes its tile inside a loop in a buffer of its own, and writes it back when it is done.

    serial i < 64                           serial i < 64
      serial k < 512                          register acc[16]
        vectorized j < 16                       vectorized j.init < 16
          c: c[i, j] += ...          ->           c.init: acc[j.init] = 0
                                                serial k < 512
                                                  vectorized j < 16
                                                    c: acc[j] += ...
                                                vectorized j.back < 16
                                                  c.back: c[i, j.back] = acc[j.back]

Reduction loops named in `axes` become further dimensions of the tile, so that partial results are kept apart and only
combined by the write-back: with that it is the field's rfactor. A sum that goes on with what is there (its start is
elsewhere, see decompose_reduction) may do so in the tile: that then begins as a copy, and nothing is regrouped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, get_args

from tilework.dims import dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Load, cast
from tilework.loops.program import (
    Access,
    Buffer,
    Compute,
    Loop,
    Node,
    Scope,
    Storage,
    replace_node,
    sequence,
)
from tilework.schedule.footprint import read_buffers
from tilework.schedule.iterators import determines
from tilework.schedule.primitive import Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import (
    SCOPES,
    copied,
    derived,
    loop_bounds,
    loop_names,
    renamed,
    runs,
    statement_names,
    within,
)
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown

Start = Literal["identity", "target"]
STARTS: tuple[str, ...] = get_args(Start)


@dataclass(frozen=True)
class CacheWrite(Primitive):
    """Legal where the statement alone is inside the loop, nobody else touches its target there, and regrouping the
    reduction (with `axes`, or with reduction loops left outside) is allowed by reducer and numerics. With
    `start="target"`: where the statement has no start of its own, and its target holds partial results unrounded.

    `at`: the loop (empty: the whole nest). `buffer`: the new buffer's name. Kinds of loops are copied, so mark the
    tile's loops before.
    """

    name: ClassVar[str] = "cache_write"
    looks_at: ClassVar[Reach] = "nest"
    statement: str
    at: str
    buffer: str
    axes: tuple[str, ...] = ()
    scope: Scope = "register"
    start: Start = "identity"

    @property
    def _goes_on(self) -> bool:
        return self.start == "target"

    def _nest(self, setting: Setting) -> tuple[Compute, tuple[Loop, ...], tuple[Loop, ...]]:
        """The statement, all loops around it, and those of them inside `at`."""
        found = setting.statement(self.statement)
        around = setting.enclosing(found)
        if not self.at:
            return found, around, around
        position = next((p for p, loop in enumerate(around) if loop.variable == self.at), None)
        return found, around, () if position is None else around[position + 1 :]

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        if self.at:
            setting.loop(self.at)
        found, around, inside = self._nest(setting)
        if not inside:
            return illegal(1508, f"{self.statement} is not inside a loop of {self.at or 'the program'}", found)
        if len(found.targets) != 1:
            return unknown(f"{self.statement} has several results", found)
        target = found.target
        if self.buffer in setting.program.buffers or not self.buffer:
            return illegal(1507, f"a buffer is already called {self.buffer!r}", found)
        if self.start not in STARTS:
            return illegal(1505, f"start={self.start!r} is none of {', '.join(STARTS)}", found)
        if self._goes_on and (found.reducer is None or found.init is not None or self.axes):
            return illegal(1505, f"{self.statement} has a start of its own: decompose_reduction first", found)
        narrow = found.accumulate not in (None, setting.program.buffers[target.buffer].dtype)
        if self._goes_on and narrow and any(loop.variable in found.reduction for loop in around if loop not in inside):
            return illegal(1512, f"partial results of {self.statement} would be rounded to {target.buffer}", found)
        if self.scope not in SCOPES:
            return illegal(1505, f"scope={self.scope!r} is none of {', '.join(SCOPES)}", found)
        if self.scope != "global" and any(t.extent.value is None for t in self._tile(found, inside)):
            return illegal(1522, f"a tile in {self.scope} storage has a constant size", found)
        for outer, inner in zip(inside, (*inside[1:], found), strict=True):
            if outer.body is not inner:
                return illegal(1508, f"{outer.variable} holds more than {self.statement}", outer)
        marked = [loop for loop in inside if loop.kind not in ("serial", "unrolled", "vectorized")]
        if marked:
            return illegal(1511, f"{marked[0].variable} is {marked[0].kind} inside the tile", marked[0])
        names = {loop.variable for loop in inside}
        # a sum that goes on with what is there has no start: its reduction loops are those that do not move the target
        summed_over = found.reduction
        if found.reducer is not None and found.init is None:
            moved = {name for entry in found.target.index for name in entry.names()}
            summed_over = tuple(name for name in names if name not in moved)
        wrong = [axis for axis in self.axes if axis not in summed_over or axis not in names]
        if wrong:
            return illegal(1505, f"{wrong[0]} is no reduction loop of {self.statement} inside {self.at}", found)
        tile = self._tile(found, inside)
        if any(loop.extent.names() & {outer.variable for outer in around} for loop in inside):
            return unknown("the tile's extents depend on loops", *inside)
        if target.buffer in read_buffers(inside[0]):
            return unknown(f"{self.statement} reads {target.buffer} beside updating it", found)
        if any(load for entry in target.index for load in entry.loads()):
            return unknown(f"{self.statement} writes where data say", found)
        gone = self._gone(found, inside)
        _, regroups = self._left(found, gone)
        bounds = loop_bounds(setting.program)
        summed = {loop.variable: loop for loop in inside if loop.variable in found.reduction}
        if any(name in summed for entry in target.index for name in entry.names()):
            return unknown(f"a reduction loop of {self.statement} indexes what it writes", found)
        if found.reducer is not None and found.init is not None:
            again = [n for n in inside if n.variable not in summed and n not in tile]
            if again:
                return unknown(f"{self.statement} starts again in every iteration of {again[0].variable}", again[0])
            idle = [n for n in summed.values() if not runs(n, bounds)]
            if idle:
                return unknown(f"where {idle[0].variable} has no iteration nothing may start", idle[0])
        elif found.reducer is not None and any(g.names() & gone for g in found.guards):
            shape = setting.program.buffers[target.buffer].shape
            kept = tuple(g for g in found.guards if not g.names() & gone)
            # a loop over all of a dimension stays inside
            whole = [(dim(loop.variable), loop.extent) for loop in around]
            checked = [pair for pair in zip(target.index, shape, strict=True) if pair not in whole]
            if not all(within(entry, size, kept, bounds) for entry, size in checked):
                return unknown(f"a guard that keeps {self.statement} inside {target.buffer} names a reduction", found)
        if regroups and not (found.reducer is not None and found.reducer.relaxable and setting.numerics.reassociate):
            return illegal(1512, f"partial results of {self.statement} would be regrouped", found)
        if found.reducer is None and len(tile) != len(inside):
            return unknown(f"{self.statement} overwrites its target in loops that do not index it", found)
        used = {name for entry in target.index for name in entry.names()}
        if [loop for loop in inside if loop.variable in used] and not self._own_cells(found, tile):
            return unknown(f"iterations of the tile may meet in {target.buffer}", found)
        return LEGAL

    def _own_cells(self, found: Compute, tile: Sequence[Loop]) -> bool:
        """Whether different tile positions are different elements of the target: each has a cell of its own."""
        free = {loop.variable: loop.extent for loop in tile}
        inner = [loop.variable for loop in tile if loop.variable not in self.axes]
        return all(determines(found.target.index, variable, free) for variable in inner)

    def _tile(self, found: Compute, inside: Sequence[Loop]) -> tuple[Loop, ...]:
        used = {name for entry in found.target.index for name in entry.names()}
        return tuple(loop for loop in inside if loop.variable in used or loop.variable in self.axes)

    def _gone(self, found: Compute, inside: Sequence[Loop]) -> set[str]:
        """Loops that the write-back does not run in: what they combine is combined in the tile."""
        kept = self._tile(found, inside)
        return {loop.variable for loop in inside if loop not in kept}

    def _left(self, found: Compute, gone: set[str]) -> tuple[tuple[str, ...], bool]:
        """Reductions that the write-back goes on with, and whether it combines at all."""
        left = tuple(v for v in found.reduction if v not in gone)
        return left, found.reducer is not None and not self._goes_on and (bool(left) or found.init is None)

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        found, _, inside = self._nest(setting)
        tile, gone = self._tile(found, inside), self._gone(found, inside)
        target = found.target
        kept = setting.program.buffers[target.buffer]
        dtype: DType = found.accumulate or kept.dtype
        cells = Buffer(self.buffer, tuple(loop.extent for loop in tile), dtype, self.scope)

        taken, named = loop_names(setting.program), statement_names(setting.program)

        def copy_of(mark: str, statement: Compute) -> Node:
            return copied(tile, renamed(tile, mark, taken), statement)

        index = tuple(dim(loop.variable) for loop in tile)
        cell = Load(self.buffer, index, dtype)
        left, regroups = self._left(found, gone)
        guards = tuple(guard for guard in found.guards if not guard.names() & gone)
        result: Expression = cell if regroups else cast(cell, kept.dtype)
        back = Compute(
            derived(self.statement, "back", named), found.targets, (result,), found.reducer if regroups else None,
            found.init if left else None, left if regroups else (), guards, found.accumulate if regroups else None,
        )  # fmt: skip
        names = (self.statement, back.name)
        parts: list[Node] = []
        if found.reducer is not None:
            first: Expression = found.reducer.identity[0] if regroups or found.init is None else found.init[0]
            if self._goes_on:
                first = cast(Load(target.buffer, target.index, kept.dtype), dtype)
            begin = Compute(
                derived(self.statement, "init", named), (Access(self.buffer, index),), (first,),
                guards=guards if self._goes_on else (),
            )  # fmt: skip
            parts.append(copy_of("init", begin))
            names = (begin.name, *names)
        update = replace(found, targets=(Access(self.buffer, index),), init=None, reduction=(), accumulate=None)
        top = inside[0]
        parts.append(replace_node(top, found, update))
        parts.append(copy_of("back", back))
        body = replace_node(setting.program.body, top, Storage(cells, sequence(*parts)))
        return Applied(setting.program.with_body(body), {self.statement: names})


PRIMITIVE = CacheWrite
