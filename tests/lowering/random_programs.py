"""Random loop programs over integer-valued data: nests, schedules of them, guards, reductions, gathers, registers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, loaded
from tilework.dtypes import DType
from tilework.loops.expressions import Expression, Index, Load, call, cast, constant
from tilework.loops.program import (
    Access,
    Argument,
    Buffer,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Storage,
    sequence,
)  # fmt: skip
from tilework.loops.reducers import reducer

Item = TypeVar("Item")

TYPES = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.uint8,
    dtypes.int16,
)  # fmt: skip


@dataclass
class Draw:
    """A random program, arrays for it, and the values of its symbols."""

    program: LoopProgram
    arrays: dict[str, Any]
    symbols: dict[str, int]


@dataclass
class _State:
    rng: np.random.Generator
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self, *items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def shuffled(self, items: list[Item]) -> list[Item]:
        return [items[int(i)] for i in self.rng.permutation(len(items))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)


def draw(seed: int) -> Draw:
    """The program of a seed: one to three statements over two to four axes, each nest scheduled at random."""
    s = _State(np.random.default_rng(seed))
    dtype: DType = s.pick(*TYPES)
    axes = int(s.rng.integers(1, 4))
    extents = [_extent(s) for _ in range(axes)]
    reduce_axis = s.chance(0.5)
    arguments: list[Argument] = []
    nodes: list[Node] = []
    previous: Buffer | None = None
    for number in range(int(s.rng.integers(1, 3))):
        node, used, target = _stage(s, dtype, extents, reduce_axis and s.chance(0.7), previous, number)
        nodes.append(node)
        arguments += [a for a in used if a.buffer.name not in {b.buffer.name for b in arguments}]
        previous = target
        arguments.append(Argument(target, "write"))
    program = LoopProgram(
        f"random{seed}", tuple(arguments), sequence(*nodes), tuple(Symbol(name) for name in s.symbols)
    )
    arrays: dict[str, Any] = {}
    for argument in arguments:
        shape = tuple(int(e.evaluate(s.symbols)) for e in argument.buffer.shape)
        low, high = (0, 4) if argument.buffer.dtype.kind == "unsigned" else (-3, 4)
        if argument.buffer.name.startswith("index"):
            low, high = 0, 3
        arrays[argument.buffer.name] = s.rng.integers(low, high, shape).astype(argument.buffer.dtype.numpy)
    return Draw(program, arrays, s.symbols)


def _extent(s: _State) -> Dim:
    if s.chance(0.5):
        name = s.name("N")
        s.symbols[name] = int(s.pick(0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 19))
        return dim(name)
    return dim(int(s.pick(1, 2, 3, 4, 7, 8, 16, 19)))


def _stage(
    s: _State, dtype: DType, extents: list[Dim], reduces: bool, previous: Buffer | None, number: int
) -> tuple[Node, list[Argument], Buffer]:
    names = [s.name("i") for _ in extents]
    used: list[Argument] = []
    reduction = [(s.name("k"), _extent(s))] if reduces else []
    axes = list(zip(names, extents, strict=True))
    target = Buffer(f"out{number}", tuple(extents), dtype)
    value = _value(s, dtype, axes, reduction, used, previous)
    guards: tuple[Dim, ...] = ()
    loops = [*axes, *reduction]
    index = tuple(dim(n) for n in names)
    init = None
    found = None
    if reduces:
        kind = s.pick("sum", "maximum", "minimum")
        found = reducer(kind, dtype)
        init = found.identity
        if s.chance(0.4):  # a window's edge: a guard that names the reduction
            k, extent = reduction[0]
            guards = (extent - 2 - dim(k) + dim(names[-1]),)
        elif s.chance(0.3):
            guards = (dim(names[0]) - 1,)
    elif s.chance(0.3):
        guards = (s.pick(dim(names[-1]) - 1, extents[0] - 2 - dim(names[0]), dim(names[0]) + dim(names[-1]) - 2),)
    if not reduces and s.chance(0.15):
        guards = (*guards, 1 - (dim(names[0]) + 2 * dim(names[-1])) % 3)
    if s.chance(0.15):  # a condition that depends on data, read only where it exists
        which = Buffer(s.name("index"), (extents[0],), dtypes.uint8)
        used.append(Argument(which, "read"))
        guards = (loaded(which.name, (dim(names[0]),)) - 1, *guards)
    written = Compute(
        f"s{number}", (Access(target.name, index),), (value,), found, init, tuple(n for n, _ in reduction), guards
    )
    start: Node | None = None
    if guards or (reduces and reduction[0][1].bounds(dict.fromkeys(s.symbols, (0, 99)))[0] <= 0):
        # Everything has to be written by something: a nest of its own first.
        fresh = [s.name("z") for _ in extents]
        zero = Compute(f"zero{number}", (Access(target.name, tuple(map(dim, fresh))),), (constant(1, dtype),))
        start = _plain(list(zip(fresh, extents, strict=True)), zero)
    node = _scheduled(s, loops, written, {n for n, _ in reduction})
    return (sequence(start, node) if start is not None else node), used, target


def _plain(loops: list[tuple[str, Dim]], body: Node) -> Node:
    for name, extent in reversed(loops):
        body = Loop(name, extent, "serial", body)
    return body


def _value(
    s: _State, dtype: DType, axes: list[tuple[str, Dim]], reduction: list[tuple[str, Dim]], used: list[Argument],
    previous: Buffer | None,
) -> Expression:  # fmt: skip
    everything = [*axes, *reduction]

    def operand() -> Expression:
        kind = s.pick("load", "load", "load", "gather", "previous", "index", "constant", "flat", "bool")
        if kind == "previous" and previous is not None and not reduction:
            return Load(previous.name, tuple(dim(n) for n, _ in axes), dtype)
        if kind == "index":
            name = s.pick(*everything)[0]
            return cast(Index(dim(name) % 3), dtype)
        if kind == "constant":
            return constant(int(s.rng.integers(0, 3)), dtype)
        if kind == "flat":  # a reshaped read
            (a, m), (b, n) = s.pick(*everything), s.pick(*everything)
            buffer = Buffer(s.name("flat"), ((m + 1) * (n + 1) // 2 + 1,), dtype)
            used.append(Argument(buffer, "read"))
            flat = (dim(a) * (n + 1) + dim(b)) // 2
            return Load(buffer.name, (flat,), dtype)
        if kind == "gather":
            which = Buffer(s.name("index"), (everything[0][1],), dtypes.int64)
            table = Buffer(s.name("table"), (dim(3), everything[-1][1]), dtype)
            used.extend((Argument(which, "read"), Argument(table, "read")))
            row = loaded(which.name, (dim(everything[0][0]),))
            return Load(table.name, (row, dim(everything[-1][0])), dtype)
        order = s.shuffled(everything)
        order = order[: max(1, int(s.rng.integers(1, len(order) + 1)))]
        shift = int(s.pick(0, 0, 0, 1))
        step = int(s.pick(1, 1, 1, 2))
        shape = tuple(extent * step + shift for _, extent in order)
        buffer = Buffer(s.name("in"), shape, dtypes.boolean if kind == "bool" else dtype)
        used.append(Argument(buffer, "read"))
        places = tuple(dim(name) * step + shift for name, _ in order)
        if s.chance(0.15):
            places = tuple(extent * step + shift - 1 - p for (_, extent), p in zip(order, places, strict=True))
        loaded_value = Load(buffer.name, places, buffer.dtype)
        return cast(loaded_value, dtype)

    value = operand()
    for _ in range(int(s.rng.integers(0, 3))):
        value = call(s.pick("add", "multiply", "subtract", "maximum", "minimum"), value, operand())
    if s.chance(0.2):
        value = call("select", call("less", value, operand()), operand(), value)
    return value


def _scheduled(s: _State, loops: list[tuple[str, Dim]], statement: Compute, reduced: set[str]) -> Node:
    """A random legal schedule: splits with guards, an order, kinds."""
    guards = list(statement.guards)
    bindings: dict[str, Dim] = {}
    items: list[tuple[str, Dim, bool]] = []  # name, extent, whether it reduces
    order = s.shuffled(loops) if s.chance(0.6) else list(loops)
    inner: list[tuple[str, Dim, bool]] = []
    for name, extent in order:
        if s.chance(0.6):
            factor = int(s.pick(2, 3, 4, 5, 8, 16, 17))
            outside, inside = f"{name}.o", f"{name}.i"
            bindings[name] = dim(outside) * factor + dim(inside)
            items.append((outside, extent.ceildiv(factor), name in reduced))
            inner.append((inside, dim(factor), name in reduced))
            guards.append(extent - 1 - bindings[name])
        else:
            items.append((name, extent, name in reduced))
    nest = [*items, *s.shuffled(inner)]
    kinds = ["serial"] * len(nest)
    for position, (_, extent, reduces) in enumerate(nest):
        if extent.value is not None and extent.value <= 17 and s.chance(0.3):
            kinds[position] = "unrolled" if extent.value <= 5 else "serial"
        if not reduces and s.chance(0.3):
            kinds[position] = "parallel"
    last = nest[-1]
    if last[1].value is not None and s.chance(0.8):
        kinds[-1] = "vectorized"
    from tilework.loops.expressions import substitute

    memo: dict[int, Expression] = {}

    def moved(value: Dim) -> Dim:
        from tilework.dims import Loaded

        def load(element: Loaded) -> Dim:
            return loaded(element.buffer, tuple(i.substitute(bindings) for i in element.index))

        return value.substitute(bindings, load if value.loads() else None)

    values = tuple(substitute(v, bindings, None, memo) for v in statement.values)
    reduction: list[str] = []
    for name in statement.reduction:
        reduction += [f"{name}.o", f"{name}.i"] if name in bindings else [name]
    node: Node = Compute(
        statement.name, tuple(Access(t.buffer, tuple(map(moved, t.index))) for t in statement.targets), values,
        statement.reducer, statement.init, tuple(reduction), tuple(map(moved, guards)),
    )  # fmt: skip
    if s.chance(0.25) and statement.reducer is None and len(nest) > 1:
        # through a temporary: written and read in the same iteration
        scope = s.pick("register", "global")
        place = (dim(nest[-1][0]),) if s.chance(0.5) and nest[-1][1].value is not None else ()
        shape = (nest[-1][1],) if place else ()
        held = Buffer(s.name("held"), shape, values[0].dtype, scope)
        assert isinstance(node, Compute)
        first = Compute(f"{node.name}.held", (Access(held.name, place),), node.values, guards=node.guards)
        second = Compute(node.name, node.targets, (Load(held.name, place, held.dtype),), guards=node.guards)
        node = Storage(held, sequence(first, second))
        if place:
            name, extent, _ = nest.pop()
            kind = kinds.pop()
            kind = "serial" if kind == "parallel" else kind
            again = f"{name}.again"
            second = _rename(second, name, again)
            node = Storage(
                held,
                sequence(Loop(name, extent, kind, first), Loop(again, extent, kind, second)),  # type: ignore[arg-type]
            )
    for (name, extent, _), kind in zip(reversed(nest), reversed(kinds), strict=True):
        node = Loop(name, extent, kind, node)  # type: ignore[arg-type]
    return node


def _rename(statement: Compute, old: str, new: str) -> Compute:
    from dataclasses import replace

    from tilework.loops.expressions import substitute

    values = {old: dim(new)}
    return replace(
        statement,
        targets=tuple(Access(t.buffer, tuple(i.substitute(values) for i in t.index)) for t in statement.targets),
        values=tuple(substitute(v, values) for v in statement.values),
        guards=tuple(g.substitute(values) for g in statement.guards),
    )
