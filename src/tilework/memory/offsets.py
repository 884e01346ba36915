"""Offsets for items of known size: several greedy orders, best fit, and the first placement that meets the lower bound.

Greedy by size with best fit is what TensorFlow Lite and others use (Pisarchyk and Lee, "Efficient Memory Management for
Deep Neural Net Inference", 2020); no single order is best, so several are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilework.memory.lifetimes import Lifetimes, lower_bound

_WORK = 20_000_000
"""Neighbour visits after which no further order is tried."""
_DENSE = 40
"""Neighbours of an item, on average, from which on they are looked at all at once."""


def greedy(lifetimes: Lifetimes, sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """Place items one by one in `order`, each in the smallest gap between its placed neighbours that holds it, or above
    the lowest point where nothing is above. Offsets are multiples of whatever all sizes are multiples of.
    """
    if effort(lifetimes) > _DENSE * len(sizes) and sum(sizes) < 1 << 62:
        return _greedy_of_many(lifetimes, sizes, order)
    offsets = [-1] * len(sizes)
    ends = [0] * len(sizes)
    neighbours = lifetimes.neighbours
    for item in order:
        size, floor, place, smallest = sizes[item], 0, -1, 0
        for start, end in sorted((offsets[near], ends[near]) for near in neighbours[item] if offsets[near] >= 0):
            gap = start - floor
            if gap >= size and (place < 0 or gap < smallest):
                place, smallest = floor, gap
            floor = max(floor, end)
        offsets[item] = place if place >= 0 else floor
        ends[item] = offsets[item] + size
    return offsets


def _greedy_of_many(lifetimes: Lifetimes, sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """As `greedy`, the neighbours of an item all at once."""
    offsets = np.full(len(sizes), -1, np.int64)
    ends = np.zeros(len(sizes), np.int64)
    for item in order:
        near = lifetimes.conflicts[item]
        near = near[offsets[near] >= 0]
        rank = near[np.argsort(offsets[near], kind="stable")]
        floors = np.concatenate(([0], np.maximum.accumulate(ends[rank])))
        gaps = offsets[rank] - floors[:-1]
        fitting = np.flatnonzero(gaps >= sizes[item])
        offsets[item] = floors[fitting[np.argmin(gaps[fitting])]] if len(fitting) else floors[-1]
        ends[item] = offsets[item] + sizes[item]
    return [int(offset) for offset in offsets]


def height(offsets: Sequence[int], sizes: Sequence[int]) -> int:
    """The bytes that a placement needs."""
    return max((offset + size for offset, size in zip(offsets, sizes, strict=True)), default=0)


def best_offsets(lifetimes: Lifetimes, sizes: Sequence[int]) -> tuple[list[int], int]:
    """The best offsets found for items of these sizes (>= 0), and the lower bound on any placement's bytes."""
    bound = lower_bound(lifetimes, sizes)
    best: list[int] = []
    lowest = -1
    work, each = 0, effort(lifetimes)
    for tried in orders(lifetimes, sizes):
        found = greedy(lifetimes, sizes, tried)
        needed = height(found, sizes)
        if lowest < 0 or needed < lowest:
            best, lowest = found, needed
        work += each
        if lowest <= bound or work > _WORK:
            break
    return best, bound


def effort(lifetimes: Lifetimes) -> int:
    """Neighbour visits of one greedy placement."""
    return sum(len(near) for near in lifetimes.conflicts) + len(lifetimes)


def orders(lifetimes: Lifetimes, sizes: Sequence[int]) -> list[list[int]]:
    """Orders to place items in, those that are best most often first."""
    pressure = _pressure(lifetimes, sizes)
    starts, ends = lifetimes.starts, lifetimes.ends
    keys: tuple[Callable[[int], tuple[int, ...]], ...] = (
        lambda i: (-sizes[i], starts[i]),
        lambda i: (starts[i], -sizes[i]),
        lambda i: (-sizes[i] * (ends[i] - starts[i]),),
        lambda i: (-(ends[i] - starts[i]), -sizes[i]),
        lambda i: (-pressure[i], -sizes[i]),
        lambda i: (-pressure[i], -(ends[i] - starts[i]), -sizes[i]),
        lambda i: (-ends[i], -sizes[i]),
        lambda i: (-len(lifetimes.conflicts[i]), -sizes[i]),
        lambda i: (-sizes[i], -(ends[i] - starts[i])),
        lambda i: (starts[i], -(ends[i] - starts[i])),
    )
    return [sorted(range(len(sizes)), key=key) for key in keys]


def _pressure(lifetimes: Lifetimes, sizes: Sequence[int]) -> list[int]:
    """For each item, the bytes of the fullest moment that it is live in."""
    found = [0] * len(sizes)
    for moment in lifetimes.moments:
        total = sum(sizes[i] for i in moment)
        for item in moment:
            found[item] = max(found[item], total)
    return found
