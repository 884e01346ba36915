"""Rewrites that several primitives share: renaming and replacing loop variables, guards, perfect nests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilework.dims import Bound, Dim
from tilework.loops.expressions import Expression, substitute
from tilework.loops.program import (
    Access,
    AsyncCopy,
    Compute,
    Loop,
    LoopKind,
    LoopProgram,
    Node,
    Prefetch,
    Storage,
    rewrite,
    walk,
)  # fmt: skip


def replace_variables(node: Node, values: Mapping[str, Dim]) -> Node:
    """Replace loop variables by dims everywhere below a node; a reduction over a variable is over those that replace it."""
    table = dict(values)
    memo: dict[int, Expression] = {}

    def access(target: Access) -> Access:
        return Access(target.buffer, tuple(i.substitute(table) for i in target.index))

    def change(found: Node) -> Node:
        match found:
            case Compute():
                reduction = tuple(
                    dict.fromkeys(
                        new
                        for old in found.reduction
                        for new in (sorted(table[old].names()) if old in table else (old,))
                    )
                )
                return replace(
                    found,
                    targets=tuple(access(t) for t in found.targets),
                    values=tuple(substitute(v, table, memo=memo) for v in found.values),
                    reduction=reduction,
                    guards=tuple(g.substitute(table) for g in found.guards),
                )
            case Prefetch():
                return replace(
                    found, target=access(found.target), guards=tuple(g.substitute(table) for g in found.guards)
                )
            case AsyncCopy():
                return replace(
                    found, target=access(found.target), source=access(found.source),
                    guards=tuple(g.substitute(table) for g in found.guards),
                )  # fmt: skip
            case Loop():
                return replace(found, extent=found.extent.substitute(table))
            case Storage():
                shape = tuple(d.substitute(table) for d in found.buffer.shape)
                return (
                    found if shape == found.buffer.shape else replace(found, buffer=replace(found.buffer, shape=shape))
                )
            case _:
                return found

    return rewrite(node, change)


def add_guard(node: Node, guard: Dim) -> Node:
    """Add a guard to every statement and prefetch below a node."""

    def change(found: Node) -> Node:
        if isinstance(found, (Compute, Prefetch, AsyncCopy)):
            return replace(found, guards=(*found.guards, guard))
        return found

    return rewrite(node, change)


def nest(loops: tuple[tuple[str, Dim, LoopKind], ...], body: Node) -> Node:
    """Loops around a body, the first outermost."""
    for variable, extent, kind in reversed(loops):
        body = Loop(variable, extent, kind, body)
    return body


def band(outermost: Loop) -> tuple[Loop, ...]:
    """The loops of the perfect nest that starts here: each but the last has one loop as its whole body."""
    loops = [outermost]
    while isinstance(loops[-1].body, Loop):
        loops.append(loops[-1].body)
    return tuple(loops)


def loop_bounds(program: LoopProgram) -> dict[str, tuple[Bound, Bound]]:
    """Inclusive bounds of every symbol and loop variable."""
    bounds: dict[str, tuple[Bound, Bound]] = {symbol.name: symbol.bounds for symbol in program.symbols}
    for node in walk(program.body):
        if isinstance(node, Loop):
            bounds[node.variable] = (0, node.extent.bounds(bounds)[1] - 1)
    return bounds
