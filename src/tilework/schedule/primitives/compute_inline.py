"""compute_inline: every read of an elementwise stage is replaced by its expression; the stage and its storage go away.

global t[100]                   serial j < 100
  serial i < 100                  u: b[j] = (a[j] + 1) * 2
    s: t[i] = a[i] + 1      ->
  serial j < 100
    u: b[j] = t[j] * 2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Call, Expression, Load, cast, rewrite, substitute
from tilework.loops.program import (
    EMPTY,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Sequence,
    Storage,
    path,
    statements,
)  # fmt: skip
from tilework.loops.program import rewrite as rewrite_tree
from tilework.loops.program import walk as walk_tree
from tilework.schedule.footprint import (
    read_buffers,
    reads_in_dims,
    reads_of,
    runs_after,
    special_users,
    touched_buffers,
    written_buffers,
)
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import instructions, own_nest
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class ComputeInline(Primitive):
    """Legal for a statement without reduction or guards that alone writes a temporary, each element once, from buffers
    that nobody writes later, and whose readers read only what it wrote. Where a position that data name is checked
    against its extents, something that it reads itself must have the same extent there.
    """

    name: ClassVar[str] = "compute_inline"
    statement: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        program = setting.program
        found = setting.statement(self.statement)
        if found.reducer is not None or len(found.targets) != 1:
            return illegal(1514, f"{self.statement} is no elementwise statement", found)
        target = found.target
        if any(a.buffer.name == target.buffer for a in program.arguments):
            return illegal(1514, f"{target.buffer} is an argument; its values must be stored", found)
        every = list(statements(program.body))
        if any(other is not found and t.buffer == target.buffer for other in every for t in other.targets):
            return illegal(1514, f"{target.buffer} is written by more than {self.statement}", found)
        if found.guards:
            return unknown(f"{self.statement} is guarded", found)
        own = own_nest(program, [found], loops_only=True)
        loops = {node.variable: node for node in walk_tree(own) if isinstance(node, Loop)}
        shape = program.buffers[target.buffer].shape
        used: set[str] = set()
        for entry, extent in zip(target.index, shape, strict=True):
            if entry.value == 0 and extent == 1:
                continue
            names = list(entry.names())
            if len(names) != 1 or entry != Dim((((names[0],), 1),)) or names[0] not in loops or names[0] in used:
                return unknown(f"{target.buffer} is not indexed by one loop a dimension", found)
            if loops[names[0]].extent != extent:
                return unknown(f"{self.statement} does not write all of {target.buffer}", found)
            used.add(names[0])
        if set(loops) != used:
            return unknown(f"{self.statement} overwrites {target.buffer} in loops that do not index it", found)
        if target.buffer in reads_in_dims(program.body):
            return unknown(f"{target.buffer} is read by an index or a guard", found)
        special = special_users(target.buffer, program.body)
        if special:
            return unknown(f"{target.buffer} is copied or prefetched", special[0])
        for instruction in instructions(program.body):
            if target.buffer in touched_buffers(instruction):
                return illegal(1519, f"{instruction.instruction} reads {target.buffer}", instruction)
        sources = read_buffers(found)
        if target.buffer in sources:
            return illegal(1514, f"{self.statement} reads what it writes", found)
        writers = [n for n in runs_after(program, found) if written_buffers(n) & sources]
        if writers:
            return illegal(1514, f"a later statement overwrites what {self.statement} reads", found, writers[0])
        local = sources - {a.buffer.name for a in program.arguments}
        for reader in every:
            if reads_of(target.buffer, [reader]):
                alive = {n.buffer.name for n in path(program.body, reader) if isinstance(n, Storage)}
                if not local <= alive:
                    return illegal(
                        1514, f"{min(local - alive)} does not live where {reader.name} stands", found, reader
                    )
            for read in reads_of(target.buffer, [reader]):
                for place in unchecked(program, found, read):
                    text = (
                        f"data name positions in dimension {place} of {target.buffer}, which nothing else would check"
                    )
                    return unknown(text, found, reader)
        if setting.enclosing(own):
            return unknown(f"{self.statement} runs inside {setting.enclosing(own)[-1].variable}", found)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        program = setting.program
        found = setting.statement(self.statement)
        target = found.target
        value = cast(found.values[0], program.buffers[target.buffer].dtype)
        own = own_nest(program, [found], loops_only=True)
        made: dict[tuple[Dim, ...], Expression] = {}

        def inlined(index: tuple[Dim, ...]) -> Expression:
            if index not in made:
                moved = {
                    next(iter(entry.names())): actual
                    for entry, actual in zip(target.index, index, strict=True)
                    if entry.terms
                }
                made[index] = substitute(value, moved)
            return made[index]

        def leaf(node: Expression) -> Expression:
            return inlined(node.index) if isinstance(node, Load) and node.buffer == target.buffer else node

        memo: dict[int, Expression] = {}

        def change(node: Node) -> Node:
            if node is own:
                return EMPTY
            if isinstance(node, Storage) and node.buffer.name == target.buffer:
                return node.body
            if isinstance(node, Compute) and node is not found:
                values = tuple(rewrite(v, leaf, memo) for v in node.values)
                return (
                    replace(node, values=values)
                    if any(a is not b for a, b in zip(values, node.values, strict=True))
                    else node
                )
            return node

        body = rewrite_tree(program.body, change)
        if isinstance(body, Sequence) and not body.children:
            return Applied(program.with_body(EMPTY), {self.statement: ()})
        return Applied(program.with_body(body), {self.statement: ()})


def unchecked(program: LoopProgram, found: Compute, read: tuple[Dim, ...]) -> Iterator[int]:
    """The dimensions in which data name the position that is read, and no load of the expression, in its place, would
    be refused for the same positions: a slice reads on in the whole, a spread number is read anywhere.
    """
    target = found.target
    for place, (position, own, extent) in enumerate(
        zip(read, target.index, program.buffers[target.buffer].shape, strict=True)
    ):
        if position.loads() and not any(
            own.terms and entry == own and program.buffers[load.buffer].shape[dimension] == extent
            for load in _always_loaded(found.values[0])
            for dimension, entry in enumerate(load.index)
        ):
            yield place


def _always_loaded(expression: Expression) -> Iterator[Load]:
    """The loads of an expression but for those of which a selection may want another."""
    left, seen = [expression], set[int]()
    while left:
        top = left.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        if isinstance(top, Load):
            yield top
        elif isinstance(top, Call):
            left.extend(top.arguments[:1] if top.function == "select" else top.arguments)


PRIMITIVE = ComputeInline
