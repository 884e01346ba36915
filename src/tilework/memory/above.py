"""What stands on what: the part of a placement that is kept when sizes change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tilework.fast_dataclass import dataclass
from tilework.memory.lifetimes import Lifetimes

Sizes: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
"""By item and point: the values of the symbols that are looked at."""


@dataclass(frozen=True, eq=False)
class Above:
    """Items in an order from below, and for each those that it stands on: it conflicts with them, and no other that
    does is between them.
    """

    order: tuple[int, ...]
    stands_on: tuple[tuple[int, ...], ...]

    def ends(self, sizes: Sizes) -> Sizes:
        """Where each item ends, at every point."""
        ends = np.zeros_like(sizes)
        for item in self.order:
            below = self.stands_on[item]
            ends[item] = sizes[item] + (ends[list(below)].max(0) if below else 0)
        return ends

    def carried(self, sizes: Sizes) -> Sizes:
        """What each item and those above it take from its start on, at every point."""
        found = np.array(sizes)
        for item in reversed(self.order):
            for below in self.stands_on[item]:
                found[below] = np.maximum(found[below], sizes[below] + found[item])
        return found

    def heights(self, sizes: Sizes) -> Sizes:
        """What holds all items, at every point."""
        return self.ends(sizes).max(0)


def above(lifetimes: Lifetimes, offsets: Sequence[int]) -> Above:
    """What stands on what where items have these offsets."""
    order = sorted(range(len(offsets)), key=lambda i: (offsets[i], i))
    rank = {item: position for position, item in enumerate(order)}
    below = [0] * len(offsets)
    stands_on: list[tuple[int, ...]] = [()] * len(offsets)
    for item in order:
        lower = [other for other in lifetimes.neighbours[item] if rank[other] < rank[item]]
        covered = 0
        for other in lower:
            below[item] |= 1 << other
            covered |= below[other]
        stands_on[item] = tuple(other for other in lower if not covered >> other & 1)
    return Above(tuple(order), tuple(stands_on))
