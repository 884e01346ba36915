"""cache_read: the part of a buffer that a loop's body reads is first copied into a buffer of its own.

    serial i < 64                             serial i < 64
      serial k < 512                            global row[512]
        c: c[i] += a[i, k] * b[k]       ->        serial row.1 < 512
                                                    row: row[0, row.1] = a[i, row.1]
                                                  serial k < 512
                                                    c: c[i] += row[0, k] * b[k]

The copy keeps the tile as large as what is read, even where that sticks out of the buffer: guards leave the rest out.
Dimensions that are walked as one (`a[e // 32, e % 32]`) are one dimension of the copy.
With a `dtype` it holds the elements in a wider type, so that they are converted once and not at every read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from tilework.dims import Bound, Dim, dim
from tilework.dtypes import DType, dtype_named, holds
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Call, Expression, Load, cast
from tilework.loops.expressions import walk as walk_expression
from tilework.loops.program import (
    Access,
    Buffer,
    Compute,
    Loop,
    LoopKind,
    Node,
    Scope,
    Storage,
    replace_node,
    sequence,
    statements,
    walk,
)
from tilework.loops.program import rewrite as rewrite_tree
from tilework.schedule.footprint import (
    Span,
    loops_inside,
    reads_in_dims,
    reads_of,
    spans,
    touched_buffers,
    writes_of,
    written_whole,
)
from tilework.schedule.primitive import Applied, Primitive, Setting
from tilework.schedule.rewriting import (
    PRIVATE,
    SCOPES,
    instructions,
    loop_bounds,
    loop_names,
    nest,
    statement_names,
    unique,
)
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class CacheRead(Primitive):
    """Legal where nothing inside the loop writes the buffer, and all reads there lie in one box (see `spans`).

    `at`: the loop (empty: the whole program, for an argument that nobody writes). `copy`: the new buffer's name; its
    loops are `<copy>.<dimension>`. `dtype`: the copy's type, which has every value of the buffer's (empty: the same).
    """

    name: ClassVar[str] = "cache_read"
    buffer: str
    at: str
    copy: str
    scope: Scope = "global"
    dtype: str = ""

    def _held(self, source: DType) -> DType:
        return dtype_named(self.dtype) if self.dtype else source

    def _body(self, setting: Setting) -> Node:
        return setting.loop(self.at).body if self.at else setting.program.body

    def _box(self, setting: Setting) -> tuple[Span, ...] | None:
        body = self._body(setting)
        reads = reads_of(self.buffer, statements(body))
        return spans(reads, loops_inside(body), setting.program.buffers[self.buffer].shape) if reads else None

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        body = self._body(setting)
        buffers = setting.program.buffers
        if self.buffer not in buffers:
            return illegal(1501, f"there is no buffer {self.buffer!r}", alternative=f"buffers: {', '.join(buffers)}")
        if not self.copy or self.copy in buffers or self.copy in statement_names(setting.program):
            return illegal(1507, f"the name {self.copy!r} is taken")
        if self.scope not in SCOPES:
            return illegal(1505, f"scope={self.scope!r} is none of {', '.join(SCOPES)}")
        try:
            held = self._held(buffers[self.buffer].dtype)
        except UsageError as error:
            return illegal(1505, error.message)
        if not holds(held, buffers[self.buffer].dtype):
            return illegal(1505, f"{held} does not have every value of {buffers[self.buffer].dtype}")
        if writes_of(self.buffer, body if self.at else setting.program.body):
            return illegal(1516, f"{self.buffer} is written inside {self.at or 'the program'}")
        if self.buffer in reads_in_dims(body):
            return unknown(f"{self.buffer} is read by an index or a guard")
        if not reads_of(self.buffer, statements(body)):
            return illegal(1505, f"nothing inside {self.at or 'the program'} reads {self.buffer}")
        for instruction in instructions(body):
            if self.buffer in touched_buffers(instruction):
                return illegal(1519, f"{instruction.instruction} reads {self.buffer}", instruction)
        sides = self._box(setting)
        if sides is None:
            return unknown(f"the reads of {self.buffer} inside {self.at or 'the program'} are no box")
        if self.scope != "global" and any(part.side.size.value is None for part in sides):
            return illegal(1522, f"a tile in {self.scope} storage has a constant size")
        threads = [n for n in walk(body) if isinstance(n, Loop) and n.kind == "parallel"]
        if self.scope in PRIVATE and any(self.buffer in touched_buffers(loop) for loop in threads):
            return illegal(1522, f"threads of {threads[0].variable} share no registers", threads[0])
        if not written_whole(setting.program, self.buffer, body):
            return unknown(f"elements of {self.buffer} that nobody wrote would be copied")
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        program = setting.program
        body = self._body(setting)
        source = program.buffers[self.buffer]
        parts = self._box(setting)
        assert parts is not None
        held = self._held(source.dtype)
        cells = Buffer(self.copy, tuple(part.side.size for part in parts), held, self.scope)
        bounds = loop_bounds(program)
        taken = loop_names(program)
        loops: list[tuple[str, Dim, LoopKind]] = []
        target: list[Dim] = []
        origin: list[Dim] = []
        guards: list[Dim] = []
        for d, part in enumerate(parts):
            name, side, extent = unique(f"{self.copy}.{d}", taken), part.side, part.extent
            position = dim(0)
            if side.size != 1:
                loops.append((name, side.size, "serial"))
                position = dim(name)
            high: Bound = side.size.bounds(bounds)[1] - 1
            here = {**bounds, name: (0, high)}
            index = side.start + position
            target.append(position)
            origin.extend(part.index(index, source.shape))
            for guard in (index, extent - 1 - index):
                if guard.bounds(here)[0] < 0 and not (side.start == 0 and side.size == extent):
                    guards.append(guard)
        copy = Compute(
            self.copy,
            (Access(self.copy, tuple(target)),),
            (cast(Load(self.buffer, tuple(origin), source.dtype), held),),
            guards=tuple(guards),
        )

        def leaf(node: Expression) -> Expression:
            if isinstance(node, Load) and node.buffer == self.buffer:
                moved = tuple(part.flat(node.index, source.shape) - part.side.start for part in parts)
                return Load(self.copy, moved, held)
            return node

        memo: dict[int, Expression] = {}

        def change(node: Node) -> Node:
            if isinstance(node, Compute):
                return replace(node, values=tuple(_moved(value, leaf, memo) for value in node.values))
            return node

        new = Storage(cells, sequence(nest(tuple(loops), copy), rewrite_tree(body, change)))
        if not self.at:
            return Applied(program.with_body(new))
        loop = setting.loop(self.at)
        return Applied(
            program.with_body(replace_node(program.body, loop, Loop(loop.variable, loop.extent, loop.kind, new)))
        )


def _moved(value: Expression, leaf: Callable[[Expression], Expression], memo: dict[int, Expression]) -> Expression:
    """The expression with loads replaced; one that gives another type is converted back, or on to what is wanted."""
    for node in walk_expression(value):
        if id(node) in memo:
            continue
        if not isinstance(node, Call):
            memo[id(node)] = leaf(node)
        elif node.function == "cast":
            memo[id(node)] = cast(memo[id(node.arguments[0])], node.dtype)
        else:
            arguments = tuple(cast(memo[id(a)], a.dtype) for a in node.arguments)
            same = all(a is b for a, b in zip(arguments, node.arguments, strict=True))
            memo[id(node)] = node if same else Call(node.function, arguments, node.dtype)
    return cast(memo[id(value)], value.dtype)


PRIMITIVE = CacheRead
