"""Small programs that many tests use."""

from __future__ import annotations

from collections.abc import Callable

from tilework.dims import Symbol, dim
from tilework.dtypes import DType
from tilework.loops.expressions import Expression, Load
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, Node


def elementwise(
    value: Callable[..., Expression], inputs: tuple[DType, ...], output: DType, lanes: int = 8, kind: str = "serial"
) -> LoopProgram:
    """y[i] = value(x0[i], x1[i], ...) for N elements, `lanes` at a time (0: one by one)."""
    extent = dim("N")
    buffers = [Buffer(f"x{n}", (extent,), dtype) for n, dtype in enumerate(inputs)]
    target = Buffer("y", (extent,), output)
    place = dim("i") * lanes + dim("l") if lanes else dim("i")
    loads = [Load(b.name, (place,), b.dtype) for b in buffers]
    node: Node = Compute("y", (Access("y", (place,)),), (value(*loads),), guards=(extent - 1 - place,) if lanes else ())
    if lanes:
        node = Loop("l", dim(lanes), "vectorized", node)
    outer = extent.ceildiv(lanes) if lanes else extent
    body = Loop("i", outer, "parallel" if kind == "parallel" else "serial", node)
    arguments = (*(Argument(b, "read") for b in buffers), Argument(target, "write"))
    return LoopProgram("elementwise", arguments, body, (Symbol("N"),))
