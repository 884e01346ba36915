"""Small programs that many tests use."""

from __future__ import annotations

from collections.abc import Callable

from tilework.dims import Symbol, dim
from tilework.dtypes import DType
from tilework.loops.expressions import Expression, Load
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, Node, sequence


def elementwise(
    value: Callable[..., Expression],
    inputs: tuple[DType, ...],
    output: DType,
    lanes: int = 8,
    kind: str = "serial",
    tag: str = "",
) -> LoopProgram:
    """y[i] = value(x0[i], x1[i], ...) for N elements, `lanes` at a time (0: one by one). `tag` ends every name."""
    extent = dim("N" + tag)
    buffers = [Buffer(f"x{n}{tag}", (extent,), dtype) for n, dtype in enumerate(inputs)]
    target = Buffer("y" + tag, (extent,), output)
    lane, step = "l" + tag, "i" + tag
    place = dim(step) * lanes + dim(lane) if lanes else dim(step)
    loads = [Load(b.name, (place,), b.dtype) for b in buffers]
    node: Node = Compute(
        "y" + tag, (Access("y" + tag, (place,)),), (value(*loads),), guards=(extent - 1 - place,) if lanes else ()
    )
    if lanes:
        node = Loop(lane, dim(lanes), "vectorized", node)
    outer = extent.ceildiv(lanes) if lanes else extent
    body = Loop(step, outer, "parallel" if kind == "parallel" else "serial", node)
    arguments = (*(Argument(b, "read") for b in buffers), Argument(target, "write"))
    return LoopProgram("elementwise", arguments, body, (Symbol("N" + tag),))


def together(programs: list[LoopProgram]) -> LoopProgram:
    """Programs of different tags as one: one kernel to compile."""
    arguments = tuple(a for p in programs for a in p.arguments)
    symbols = tuple(s for p in programs for s in p.symbols)
    return LoopProgram("together", arguments, sequence(*(p.body for p in programs)), symbols)
