"""A placement that is good at several sizes of the same items: greedy ones, and the best of them changed.

Each is judged by what stands on what in it. While some size needs more than the lower bound, one of the items that
stand on one another up to the highest end is placed earlier, which is kept where the whole gets no worse.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilework.fast_dataclass import dataclass
from tilework.memory.above import Above, Sizes, above
from tilework.memory.lifetimes import Lifetimes, lower_bound
from tilework.memory.offsets import best_offsets, effort, greedy, orders

_WORK = 500_000
"""Neighbour visits of greedy placements, and again of changed ones."""
_TRIES = 300
"""Changes that are tried."""


@dataclass(frozen=True, eq=False)
class _Tried:
    """A placement, the order in which greedy placement takes its items, and by how much it exceeds the bounds: for each
    point the share of it, counted by the digits of its bytes, as what is small matters less.
    """

    found: Above
    order: Sequence[int]
    excess: float


class _Search:
    def __init__(self, lifetimes: Lifetimes, sizes: Sequence[Sequence[int]]) -> None:
        self.lifetimes = lifetimes
        self.points = sizes
        self.sizes: Sizes = np.array(sizes, np.float64).T
        self.bounds = [lower_bound(lifetimes, at) for at in sizes]
        self.tries = min(_WORK // max(effort(lifetimes), 1), _TRIES)

    def judged(self, offsets: Sequence[int], order: Sequence[int]) -> _Tried:
        found = above(self.lifetimes, offsets)
        heights: list[float] = found.heights(self.sizes).tolist()
        shares = [
            (high / max(low, 1) - 1) * max(low, 1).bit_length()
            for high, low in zip(heights, self.bounds, strict=True)
            if high > low
        ]
        return _Tried(found, order, sum(shares))

    def greedy(self) -> Iterator[_Tried]:
        """The best for each point, then by one order at each of them, by the next, and so on."""
        for at in self.points:
            offsets = best_offsets(self.lifetimes, at)[0]
            yield self.judged(offsets, sorted(range(len(offsets)), key=lambda i: (offsets[i], i)))
        each = [orders(self.lifetimes, at) for at in self.points]
        for number in range(min(len(each[0]), self.tries // len(each))):
            for at, known in zip(self.points, each, strict=True):
                yield self.judged(greedy(self.lifetimes, at, known[number]), known[number])

    def changed(self, best: _Tried) -> _Tried:
        """The best that changes lead to."""
        generator = random.Random(0)
        for _ in range(self.tries):
            if not best.excess:
                break
            order = list(best.order)
            moved = self.in_the_way(best.found, generator)
            place = order.index(moved)
            del order[place]
            order.insert(generator.randrange(place) if place else generator.randrange(len(order) + 1), moved)
            tried = self.judged(greedy(self.lifetimes, generator.choice(self.points), order), order)
            if tried.excess <= best.excess:
                best = tried
        return best

    def in_the_way(self, found: Above, generator: random.Random) -> int:
        """One of the items that stand on one another up to the highest end, at a point that needs too much."""
        ends = found.ends(self.sizes)
        heights: Any = ends.max(0)
        point = generator.choice([p for p, low in enumerate(self.bounds) if heights[p] > low])
        at: list[float] = ends[:, point].tolist()
        item = generator.choice([i for i, end in enumerate(at) if end == heights[point]])
        tower = [item]
        while found.stands_on[item]:
            highest = max(at[below] for below in found.stands_on[item])
            item = generator.choice([below for below in found.stands_on[item] if at[below] == highest])
            tower.append(item)
        return generator.choice(tower)


def best_above(lifetimes: Lifetimes, sizes: Sequence[Sequence[int]]) -> tuple[Above, list[int]]:
    """What stands on what where items have these sizes (>= 0, one for each item at every point); and the lower bounds.

    There is at least one item, and one point.
    """
    search = _Search(lifetimes, sizes)
    best: _Tried | None = None
    for tried in search.greedy():
        if best is None or tried.excess < best.excess:
            best = tried
        if not best.excess:
            break
    assert best is not None
    return search.changed(best).found, search.bounds
