"""cache_write: a statement computes its tile inside a loop in a buffer of its own, and writes it back when it is done.

    serial i < 64                           serial i < 64
      serial k < 512                          register acc[16]
        vectorized j < 16                       vectorized j.acc.init < 16
          c: c[i, j] += ...          ->           c.init: acc[j.acc.init] = 0
                                                serial k < 512
                                                  vectorized j < 16
                                                    c: acc[j] += ...
                                                vectorized j.acc.back < 16
                                                  c.back: c[i, j.acc.back] = acc[j.acc.back]

Reduction loops named in `axes` become further dimensions of the tile, so that partial results are kept apart and only
combined by the write-back: with that it is the field's rfactor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tilework.dims import dim
from tilework.dtypes import DType
from tilework.loops.expressions import Constant, Expression, Load, walk
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
from tilework.schedule.iterators import determines
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import nest, replace_variables
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class CacheWrite(Primitive):
    """Legal where the statement alone is inside the loop, nobody else touches its target there, and regrouping the
    reduction (with `axes`, or with reduction loops left outside) is allowed by reducer and numerics.

    `at`: the loop (empty: the whole nest). `buffer`: the new buffer's name. Kinds of loops are copied, so mark the tile's
    loops before.
    """

    name: ClassVar[str] = "cache_write"
    statement: str
    at: str
    buffer: str
    axes: tuple[str, ...] = ()
    scope: Scope = "register"

    def _nest(self, setting: Setting) -> tuple[Compute, tuple[Loop, ...], tuple[Loop, ...]]:
        """The statement, all loops around it, and those of them inside `at`."""
        found = setting.statement(self.statement)
        around = setting.enclosing(found)
        if not self.at:
            return found, around, around
        position = next((p for p, loop in enumerate(around) if loop.variable == self.at), None)
        return found, around, () if position is None else around[position + 1 :]

    def check(self, setting: Setting) -> Verdict:
        if self.at:
            setting.loop(self.at)
        found, around, inside = self._nest(setting)
        if not inside:
            return illegal(1508, f"{self.statement} is not inside a loop of {self.at or 'the program'}", found)
        if len(found.targets) != 1:
            return unknown(f"{self.statement} has several results", found)
        target = found.target
        if self.buffer in setting.program.buffers:
            return illegal(1507, f"a buffer is already called {self.buffer}", found)
        for outer, inner in zip(inside, (*inside[1:], found), strict=True):
            if outer.body is not inner:
                return illegal(1508, f"{outer.variable} holds more than {self.statement}", outer)
        marked = [loop for loop in inside if loop.kind not in ("serial", "unrolled", "vectorized")]
        if marked:
            return illegal(1511, f"{marked[0].variable} is {marked[0].kind} inside the tile", marked[0])
        wrong = [axis for axis in self.axes if axis not in found.reduction or axis not in {l.variable for l in inside}]
        if wrong:
            return illegal(1505, f"{wrong[0]} is no reduction loop of {self.statement} inside {self.at}", found)
        tile = self._tile(found, inside)
        if any(loop.extent.names() & {l.variable for l in around} for loop in tile):
            return unknown("the tile's extents depend on loops", *tile)
        if self._reads_target(found):
            return unknown(f"{self.statement} reads {target.buffer} beside updating it", found)
        if any(load for entry in target.index for load in entry.loads()):
            return unknown(f"{self.statement} writes where data say", found)
        gone = self._gone(found, inside)
        left = [v for v in found.reduction if v not in gone]
        regroups = bool(left) or (found.reducer is not None and found.init is None)
        if regroups and not (found.reducer is not None and found.reducer.relaxable and setting.numerics.reassociate):
            return illegal(1512, f"partial results of {self.statement} would be regrouped", found)
        if found.reducer is None and len(tile) != len(inside):
            return unknown(f"{self.statement} overwrites its target in loops that do not index it", found)
        used = {name for entry in target.index for name in entry.names()}
        if [loop for loop in inside if loop.variable in used] and not self._own_cells(found, tile):
            return unknown(f"iterations of the tile may meet in {target.buffer}", found)
        return LEGAL

    def _own_cells(self, found: Compute, tile: Sequence[Loop]) -> bool:
        """Whether different tile positions are different elements of the target (so that each has a cell of its own)."""
        free = {loop.variable: loop.extent for loop in tile}
        inner = [loop.variable for loop in tile if loop.variable not in self.axes]
        return all(determines(found.target.index, variable, free) for variable in inner)

    def _reads_target(self, found: Compute) -> bool:
        read = {node.buffer for value in found.values for node in walk(value) if isinstance(node, Load)}
        return found.target.buffer in read

    def _tile(self, found: Compute, inside: Sequence[Loop]) -> tuple[Loop, ...]:
        used = {name for entry in found.target.index for name in entry.names()}
        return tuple(loop for loop in inside if loop.variable in used or loop.variable in self.axes)

    def _gone(self, found: Compute, inside: Sequence[Loop]) -> set[str]:
        """Reduction variables whose whole reduction happens in the tile."""
        return {loop.variable for loop in inside if loop.variable in found.reduction and loop.variable not in self.axes}

    def apply(self, setting: Setting) -> Applied:
        found, _, inside = self._nest(setting)
        tile, gone = self._tile(found, inside), self._gone(found, inside)
        target = found.target
        kept = setting.program.buffers[target.buffer]
        dtype: DType = found.accumulate or kept.dtype
        cells = Buffer(self.buffer, tuple(loop.extent for loop in tile), dtype, self.scope)

        def copy_of(mark: str, statement: Compute) -> Node:
            names = {loop.variable: f"{loop.variable}.{self.buffer}.{mark}" for loop in tile}
            moved = replace_variables(statement, {old: dim(new) for old, new in names.items()})
            return nest(tuple((names[loop.variable], loop.extent, loop.kind) for loop in tile), moved)

        index = tuple(dim(loop.variable) for loop in tile)
        cell = Load(self.buffer, index, dtype)
        left = tuple(v for v in found.reduction if v not in gone)
        regroups = bool(left) or (found.reducer is not None and found.init is None)
        guards = tuple(guard for guard in found.guards if not guard.names() & gone)
        result: Expression = cell
        back = Compute(
            f"{self.statement}.back", found.targets, (result,), found.reducer if regroups else None,
            found.init if left else None, left, guards, found.accumulate,
        )  # fmt: skip
        parts: list[Node] = []
        if found.reducer is not None:
            start: Constant = found.reducer.identity[0] if regroups or found.init is None else found.init[0]
            begin = Compute(f"{self.statement}.init", (Access(self.buffer, index),), (start,))
            parts.append(copy_of("init", begin))
        update = replace(found, targets=(Access(self.buffer, index),), init=None, reduction=(), accumulate=None)
        top = inside[0]
        parts.append(replace_node(top, found, update))
        parts.append(copy_of("back", back))
        body = replace_node(setting.program.body, top, Storage(cells, sequence(*parts)))
        names = (f"{self.statement}.init", self.statement, f"{self.statement}.back")
        return Applied(
            setting.program.with_body(body), {self.statement: names if found.reducer is not None else names[1:]}
        )


PRIMITIVE = CacheWrite
