"""Which part of a buffer some accesses cover while the loops inside a point run: a box, per dimension a start and a size.

The start depends on the loops outside; the size does not. Where accesses start at different places, or an index cannot be
split into what moves inside and what does not, there is no box, and who asked refuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilework.dims import Bound, Dim, FloorDiv, Mod, dim
from tilework.loops.expressions import Load, walk
from tilework.loops.program import AsyncCopy, Compute, Loop, Node, Prefetch, statements
from tilework.loops.program import walk as walk_tree


@dataclass(frozen=True)
class Side:
    """One dimension of a box: `size` elements from `start`."""

    start: Dim
    size: Dim


Box = tuple[Side, ...]


def box(indices: Sequence[tuple[Dim, ...]], inside: Mapping[str, Dim], shape: Sequence[Dim]) -> Box | None:
    """The smallest box that holds all indices while the variables in `inside` (with their extents) run.

    `shape` is the buffer's: a dimension that is walked whole has that size. None where there is no such box.
    """
    bounds: dict[str, tuple[Bound, Bound]] = {}
    for name, extent in inside.items():
        known = extent.value
        bounds[name] = (0, math.inf if known is None else known - 1)
    sides: list[Side] = []
    for d, extent in enumerate(shape):
        side = _side([index[d] for index in indices], inside, bounds, extent)
        if side is None:
            return None
        sides.append(side)
    return tuple(sides)


def _side(
    entries: Sequence[Dim], inside: Mapping[str, Dim], bounds: dict[str, tuple[Bound, Bound]], extent: Dim
) -> Side | None:
    if all(_walks_whole(entry, inside, extent) for entry in entries):
        return Side(dim(0), extent)
    starts: set[Dim] = set()
    low: Bound = math.inf
    high: Bound = -math.inf
    for entry in entries:
        parts = _apart(entry, inside)
        if parts is None:
            return None
        outer, inner = parts
        a, b = inner.bounds(bounds)
        starts.add(Dim(outer.terms, 0))
        low, high = min(low, a + outer.constant), max(high, b + outer.constant)
    if len(starts) != 1 or math.isinf(low) or math.isinf(high):
        return None
    return Side(starts.pop() + int(low), dim(int(high - low) + 1))


def _walks_whole(entry: Dim, inside: Mapping[str, Dim], extent: Dim) -> bool:
    return any(entry == dim(name) and size == extent for name, size in inside.items())


def _apart(entry: Dim, inside: Mapping[str, Dim]) -> tuple[Dim, Dim] | None:
    """The dim as (what does not move inside) + (what moves inside only); None where a term mixes both."""
    outer: list[tuple[tuple[object, ...], int]] = []
    inner: list[tuple[tuple[object, ...], int]] = []
    for monomial, coefficient in entry.terms:
        names = Dim(((monomial, 1),)).names()
        if not names & inside.keys():
            outer.append((monomial, coefficient))
        elif names <= inside.keys() and all(isinstance(atom, (str, FloorDiv, Mod)) for atom in monomial):
            inner.append((monomial, coefficient))
        else:
            return None
    return Dim(tuple(outer), entry.constant), Dim(tuple(inner))  # type: ignore[arg-type]


def loops_inside(node: Node) -> dict[str, Dim]:
    """The extents of all loops below a node, by variable."""
    return {found.variable: found.extent for found in walk_tree(node) if isinstance(found, Loop)}


def reads_of(buffer: str, body: Iterable[Compute]) -> list[tuple[Dim, ...]]:
    """The indices at which statements' values read a buffer."""
    return [
        part.index
        for statement in body
        for value in statement.values
        for part in walk(value)
        if isinstance(part, Load) and part.buffer == buffer
    ]


def reads_in_dims(node: Node) -> set[str]:
    """Buffers whose elements the indices and guards below a node are made from."""
    dims: list[Dim] = []
    for found in walk_tree(node):
        match found:
            case Compute():
                dims += [*found.guards, *(entry for target in found.targets for entry in target.index)]
                for value in found.values:
                    for part in walk(value):
                        if isinstance(part, Load):
                            dims.extend(part.index)
            case Prefetch():
                dims += [*found.guards, *found.target.index]
            case AsyncCopy():
                dims += [*found.guards, *found.target.index, *found.source.index]
            case _:
                pass
    return {load.buffer for entry in dims for load in entry.loads()}


def writes_of(buffer: str, body: Node) -> list[tuple[Dim, ...]]:
    """The indices at which statements below a node write a buffer."""
    return [target.index for s in statements(body) for target in s.targets if target.buffer == buffer]
