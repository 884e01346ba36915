"""Replacing loop variables in a tree: what splitting, cutting and unrolling share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilework.dims import Dim, dim
from tilework.loops.expressions import Expression
from tilework.loops.expressions import substitute as substitute_expression
from tilework.loops.program import (
    Access,
    AsyncCopy,
    Compute,
    Intrinsic,
    Loop,
    Node,
    Prefetch,
    Sequence,
    Storage,
)  # fmt: skip

_NOTHING: Mapping[str, tuple[str, ...]] = {}


def substitute(node: Node, values: Mapping[str, Dim], reductions: Mapping[str, tuple[str, ...]] = _NOTHING) -> Node:
    """Replace loop variables by dims in every index, guard, extent and shape of a tree.

    A reduction variable becomes the variables of what replaces it (none for an integer), or what `reductions` says.
    Loops that are themselves renamed (their variable replaced by a name alone) get the new name.
    """
    table = dict(values)

    def dims(found: Iterable[Dim]) -> tuple[Dim, ...]:
        return tuple(d.substitute(table) for d in found)

    def access(found: Access) -> Access:
        return Access(found.buffer, dims(found.index))

    match node:
        case Sequence(children=nodes):
            return Sequence(tuple(substitute(child, values, reductions) for child in nodes))
        case Loop():
            renamed = table.get(node.variable)
            name = next(iter(renamed.names())) if renamed is not None else node.variable
            return Loop(name, node.extent.substitute(table), node.kind, substitute(node.body, values, reductions))
        case Storage():
            buffer = node.buffer
            shape = dims(buffer.shape)
            kept = buffer if shape == buffer.shape else replace(buffer, shape=shape)
            return Storage(kept, substitute(node.body, values, reductions))
        case Intrinsic():
            return Intrinsic(node.instruction, substitute(node.body, values, reductions))
        case Compute():
            memo: dict[int, Expression] = {}
            reduction: list[str] = []
            for name in node.reduction:
                if name in reductions:
                    reduction.extend(reductions[name])
                else:
                    reduction.extend(sorted(table[name].names()) if name in table else [name])
            return replace(
                node,
                targets=tuple(map(access, node.targets)),
                values=tuple(substitute_expression(v, table, memo=memo) for v in node.values),
                reduction=tuple(reduction),
                guards=dims(node.guards),
            )
        case Prefetch():
            return replace(node, target=access(node.target), guards=dims(node.guards))
        case AsyncCopy():
            moved = (access(node.target), access(node.source))
            return replace(node, target=moved[0], source=moved[1], guards=dims(node.guards))
        case _:
            return node


def fresh_copy(
    node: Node, values: Mapping[str, Dim], taken: set[str], reductions: Mapping[str, tuple[str, ...]] = _NOTHING
) -> Node:
    """A copy of a tree, with variables replaced and every loop inside renamed (`i.1`) where its name is taken.

    `taken` grows by the names given.
    """
    names = dict(values)
    for variable in loop_names(node):
        names[variable] = dim(fresh_name(variable, taken))
    return substitute(node, names, reductions)


def fresh_name(name: str, taken: set[str]) -> str:
    """`name` (without the number that an earlier call gave it) with the smallest free number; it is then taken."""
    base = re.sub(r"\.[0-9]+$", "", name)
    number = 1
    while f"{base}.{number}" in taken:
        number += 1
    found = f"{base}.{number}"
    taken.add(found)
    return found


def loop_names(node: Node) -> list[str]:
    """Variables of the loops of a tree, outermost first."""
    match node:
        case Sequence(children=nodes):
            return [name for child in nodes for name in loop_names(child)]
        case Loop(variable=variable, body=body):
            return [variable, *loop_names(body)]
        case Storage(body=body) | Intrinsic(body=body):
            return loop_names(body)
        case _:
            return []
