"""transform_layout: a buffer's elements stand in memory in another layout, and every access follows.

    read b: float32[512, 64]                    read b: float32[64, 512]
      c: c[i, j] += a[i, k] * b[j, k]     ->      c: c[i, j] += a[i, k] * b[k, j]

The layout is written as `tilework.layout` prints it. A temporary is simply stored that way; an argument that is only
read must be given that way, by whoever owns it: weights are packed once, when the model is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from tilework.dims import Dim
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass
from tilework.layout import Layout, parse_layout
from tilework.loops.expressions import Expression, Load
from tilework.loops.expressions import rewrite as rewrite_expression
from tilework.loops.program import (
    Access,
    Argument,
    AsyncCopy,
    Compute,
    Node,
    Prefetch,
    Storage,
    rewrite,
)
from tilework.schedule.footprint import reads_in_dims, touched_buffers
from tilework.schedule.primitive import LARGEST, Applied, Primitive, Reach, Setting
from tilework.schedule.rewriting import instructions, loop_bounds
from tilework.schedule.verdict import LEGAL, Verdict, illegal, unknown


@dataclass(frozen=True)
class TransformLayout(Primitive):
    """Legal for temporaries and for arguments that are only read, where no index or guard reads the buffer."""

    name: ClassVar[str] = "transform_layout"
    looks_at: ClassVar[Reach] = "buffer"
    buffer: str
    layout: str

    def check(self, setting: Setting) -> Verdict:
        """See the class."""
        program = setting.program
        found = program.buffers.get(self.buffer)
        if found is None:
            there = ", ".join(program.buffers)
            return illegal(1501, f"there is no buffer {self.buffer!r}", alternative=f"the buffers are: {there}")
        try:
            layout = parse_layout(self.layout)
        except UsageError as error:
            return illegal(1505, error.message)
        if layout.rank != len(found.shape):
            return illegal(1505, f"{layout} is for {layout.rank} dimensions, {self.buffer} has {len(found.shape)}")
        if max(layout.multiples, default=1) > LARGEST:
            return illegal(1505, f"the blocks of {layout} are more than indices of 64 bits count")
        if any(a.buffer.name == self.buffer and a.access != "read" for a in program.arguments):
            return illegal(1515, f"{self.buffer} is a result that the caller expects row-major")
        if self.buffer in reads_in_dims(program.body):
            return unknown(f"{self.buffer} is read by an index or a guard")
        for instruction in instructions(program.body):
            if self.buffer in touched_buffers(instruction):
                return illegal(1519, f"{instruction.instruction} touches {self.buffer}", instruction)
        return LEGAL

    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""
        program = setting.program
        layout = parse_layout(self.layout)
        bounds = loop_bounds(program)

        def moved(index: tuple[Dim, ...]) -> tuple[Dim, ...]:
            return tuple(entry.simplify(bounds) for entry in layout.physical_index(index))

        def access(found: Access) -> Access:
            return replace(found, index=moved(found.index)) if found.buffer == self.buffer else found

        def leaf(node: Expression) -> Expression:
            if isinstance(node, Load) and node.buffer == self.buffer:
                return Load(node.buffer, moved(node.index), node.dtype)
            return node

        memo: dict[int, Expression] = {}

        def change(node: Node) -> Node:
            match node:
                case Compute():
                    values = tuple(rewrite_expression(value, leaf, memo) for value in node.values)
                    return replace(node, targets=tuple(map(access, node.targets)), values=values)
                case Prefetch():
                    return replace(node, target=access(node.target))
                case AsyncCopy():
                    return replace(node, target=access(node.target), source=access(node.source))
                case Storage() if node.buffer.name == self.buffer:
                    return replace(node, buffer=replace(node.buffer, shape=layout.physical_shape(node.buffer.shape)))
                case _:
                    return node

        arguments = tuple(
            Argument(replace(a.buffer, shape=layout.physical_shape(a.buffer.shape)), a.access)
            if a.buffer.name == self.buffer
            else a
            for a in program.arguments
        )
        return Applied(replace(program, arguments=arguments, body=rewrite(program.body, change)))


def argument_layouts(trace: tuple[Primitive, ...], arguments: tuple[str, ...]) -> Mapping[str, tuple[Layout, ...]]:
    """The layouts in which a trace wants each argument that it transforms: each of what the one before it gives."""
    found: dict[str, tuple[Layout, ...]] = {}
    for step in trace:
        if isinstance(step, TransformLayout) and step.buffer in arguments:
            found[step.buffer] = (*found.get(step.buffer, ()), parse_layout(step.layout))
    return found


PRIMITIVE = TransformLayout
