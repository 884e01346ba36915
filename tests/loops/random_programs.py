"""Random loop programs over small integers: guards, reductions, padding, symbols, nested kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, Symbol, dim
from tilework.dtypes import DType
from tilework.loops.expressions import Expression, Load, call, cast, constant, index
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, Node, Storage, sequence
from tilework.loops.reducers import reducer

Generator = np.random.Generator


@dataclass
class Drawn:
    """A program, arrays for it, and values for its symbols."""

    program: LoopProgram
    arrays: dict[str, np.ndarray]
    symbols: dict[str, int]

    def copies(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self.arrays.items()}


def random_program(random: Generator) -> Drawn:
    """A guarded reduction (or copy) of rank two over one or two reduction loops, after an optional temporary."""
    dtype = [dtypes.float32, dtypes.int32, dtypes.float64][int(random.integers(3))]
    symbolic = bool(random.integers(2))
    sizes = {name: int(random.integers(0 if symbolic else 1, 7)) for name in ("I", "J", "K", "L")}
    if symbolic and random.integers(4):
        sizes = {name: max(1, size) for name, size in sizes.items()}
    extents = {name: dim(name) if symbolic and random.integers(2) else dim(size) for name, size in sizes.items()}
    pad = int(random.integers(0, 3))
    pads = [e + 2 * pad for e in (extents["I"] + extents["K"], extents["J"] + extents["L"])]
    x = Buffer("x", (extents["I"] + extents["K"], extents["J"] + extents["L"]), dtype)
    y = Buffer("y", (extents["I"], extents["J"]), dtype)
    i, j, k, m = dim("i"), dim("j"), dim("k"), dim("m")
    rows, columns = i + k - pad, j + m - pad
    guards = [rows, columns, x.shape[0] - 1 - rows, x.shape[1] - 1 - columns]
    guards += [random_guard(random) for _ in range(int(random.integers(0, 3)))]
    del pads
    value: Expression = Load("x", (rows, columns), dtype)
    if random.integers(2):
        value = value * constant(int(random.integers(-2, 3)), dtype) + cast(index(k - j), dtype)
    if random.integers(3) == 0:
        value = call("maximum", value, 0)
    name = ["sum", "maximum", "minimum"][int(random.integers(3))]
    found = reducer(name, dtype)
    start = constant(int(random.integers(-3, 4)), dtype)
    random.shuffle(guards)
    statement = Compute("y", (Access("y", (i, j)),), (value,), found, (start,), ("k", "m"), tuple(guards))
    loops = [("i", extents["I"]), ("j", extents["J"]), ("k", extents["K"]), ("m", extents["L"])]
    random.shuffle(loops)
    kinds = ["serial", "serial", "serial", "unrolled"]
    body: Node = statement
    splits = int(random.integers(0, 3))
    for variable, extent in reversed(loops):
        kind = kinds[int(random.integers(len(kinds)))]
        if splits and random.integers(2):
            splits -= 1
            body = split(body, variable, extent, int(random.integers(2, 5)), kind)
        else:
            body = Loop(variable, extent, kind, body)  # type: ignore[arg-type]
    body = sequence(zeroed(y), body)
    if random.integers(3) == 0:
        body = through_temporary(body, y, random)
    symbols = tuple(Symbol(n, 0) for n, e in extents.items() if e == dim(n))
    program = LoopProgram("drawn", (Argument(x, "read"), Argument(y, "write")), body, symbols)
    values = {symbol.name: sizes[symbol.name] for symbol in symbols}
    arrays = {b.name: integers(random, [int(e.evaluate(values)) for e in b.shape], dtype) for b in (x, y)}
    return Drawn(program, arrays, values)


def integers(random: Generator, shape: list[int], dtype: DType, low: int = -4, high: int = 5) -> np.ndarray:
    return random.integers(low, high, shape).astype(dtype.numpy)


def random_guard(random: Generator) -> Dim:
    """A condition over the loops, with small coefficients."""
    names = [n for n in ("i", "j", "k", "m") if random.integers(2)]
    total = dim(int(random.integers(-3, 5)))
    for name in names:
        total = total + dim(name) * int(random.integers(-2, 3))
    if random.integers(5) == 0:
        total = total + dim("i") % 2 - dim("k") // 2
    return total


def zeroed(buffer: Buffer) -> Node:
    """A nest that writes every element, so that a reduction over nothing leaves something defined."""
    names = [f"{buffer.name}.z{n}" for n in range(len(buffer.shape))]
    body: Node = Compute(
        f"{buffer.name}.zero", (Access(buffer.name, tuple(map(dim, names))),), (constant(7, buffer.dtype),)
    )
    for name, extent in reversed(list(zip(names, buffer.shape, strict=True))):
        body = Loop(name, extent, "serial", body)
    return body


def split(body: Node, variable: str, extent: Dim, factor: int, kind: str) -> Node:
    """`variable` as an outer loop and an inner one of `factor`, the overhang guarded."""
    from tilework.loops.program import rewrite
    from tilework.loops.substitute import substitute

    outer, inner = f"{variable}.o", f"{variable}.n"
    whole = dim(outer) * factor + dim(inner)

    def guarded(node: Node) -> Node:
        if not isinstance(node, Compute):
            return node
        from dataclasses import replace

        return replace(node, guards=(*node.guards, extent - 1 - dim(variable)))

    body = substitute(rewrite(body, guarded), {variable: whole})
    inside = Loop(inner, dim(factor), kind, body)  # type: ignore[arg-type]
    return Loop(outer, extent.ceildiv(factor), "serial", inside)


def through_temporary(body: Node, y: Buffer, random: Generator) -> Node:
    """The same work, then a temporary that holds the result plus one, and back."""
    t = Buffer("t", y.shape, y.dtype)
    names = [("t.a", "t.b"), ("t.c", "t.d")]
    nests: list[Node] = []
    for (a, b), target, source in ((names[0], t, y), (names[1], y, t)):
        value = Load(source.name, (dim(a), dim(b)), y.dtype) + 1
        nest: Node = Compute(f"to.{target.name}", (Access(target.name, (dim(a), dim(b))),), (value,))
        kind = "parallel" if random.integers(2) else "serial"
        nests.append(Loop(a, y.shape[0], kind, Loop(b, y.shape[1], "serial", nest)))  # type: ignore[arg-type]
    return sequence(body, Storage(t, sequence(*nests)))
