"""Indices whose lanes lie near each other in a way that is known: x[i // 2], or x[max(0, i // 2 - 1)] off the edge.

Such elements are read in a few whole vectors and put in order, which is far cheaper than fetching each on its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilework.dims import Dim, Extreme
from tilework.lowering.builder import Builder
from tilework.lowering.indices import Resolved
from tilework.lowering.registers import Value


def offsets_by_lane(found: Resolved, lane: str, width: int) -> tuple[int, ...] | None:
    """What each lane adds to the scalar part; None where that is not known before the code runs."""
    varying = Dim(tuple(found.vector))
    if varying.names() - {lane} or varying.loads():
        return None
    return tuple(found.lane * place + int(varying.evaluate({lane: place})) for place in range(width))


def without_clamps(index: Sequence[Dim], lane: str) -> tuple[tuple[Dim, ...], list[Dim]]:
    """The index with minima and maxima replaced by the argument that varies over the lanes, and the dims that have to
    be >= 0 in every lane for that to be the same.
    """
    rooms: list[Dim] = []
    return tuple(_without_clamps(entry, lane, rooms) for entry in index), rooms


def _without_clamps(value: Dim, lane: str, rooms: list[Dim]) -> Dim:
    total = Dim((), value.constant)
    for monomial, coefficient in value.terms:
        product = Dim((), coefficient)
        for atom in monomial:
            factor = Dim((((atom,), 1),))
            if isinstance(atom, Extreme):
                moving = [argument for argument in atom.arguments if lane in argument.names()]
                if len(moving) == 1:
                    factor = _without_clamps(moving[0], lane, rooms)
                    others = [argument for argument in atom.arguments if argument is not moving[0]]
                    rooms.extend(factor - o if atom.name == "max" else o - factor for o in others)
            product = product * factor
        total = total + product
    return total


def chunks(offsets: Sequence[int], width: int) -> tuple[int, list[int]]:
    """Elements in each vector to read (a power of two, at most `width`), and the offsets where vectors start, so that
    none reaches past the first and last element.
    """
    low, span = min(offsets), max(offsets) - min(offsets) + 1
    size = 1 << (min(span, width).bit_length() - 1)
    last = low + span - size
    return size, sorted({min(low + size * part, last) for part in range(-(-span // size))})


def in_order(builder: Builder, parts: Sequence[Value], starts: Sequence[int], offsets: Sequence[int]) -> Value:
    """The lanes at `offsets` out of vectors that start at `starts`: up to four, equally long."""
    size = parts[0].lanes
    pairs: list[Value] = []
    sources: list[int] = []
    for lane, offset in enumerate(offsets):
        sources.append(max(n for n, start in enumerate(starts) if start <= offset))
        assert 0 <= offset - starts[sources[lane]] < size
    for first in range(0, len(parts), 2):
        second = min(first + 1, len(parts) - 1)
        order = tuple(
            offset - starts[source] + (size if source != first else 0) if source in (first, second) else 0
            for offset, source in zip(offsets, sources, strict=True)
        )
        pairs.append(builder.pure("shuffle", parts[0].kind, len(order), (parts[first], parts[second]), order))
    if len(pairs) == 1:
        return pairs[0]
    order = tuple(lane if source < 2 else len(offsets) + lane for lane, source in enumerate(sources))
    return builder.pure("shuffle", parts[0].kind, len(order), (pairs[0], pairs[1]), order)


def spread_mask(builder: Builder, mask: Value, offsets: Sequence[int], step: int) -> Value:
    """A mask of lanes `step` elements apart as one of the elements at `offsets` from the first lane's."""
    width = len(offsets)
    if isinstance(mask.constant, tuple):
        lanes = mask.constant
        return builder.constant("i1", tuple(at % step == 0 and lanes[at // step] for at in offsets), width)
    order = tuple(width if at % step else at // step for at in offsets)
    return builder.pure("shuffle", "i1", width, (mask, builder.constant("i1", False, width)), order)
