"""Who may not share bytes with whom, and who is live together: intervals of time, or happens-before over queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tilework.fast_dataclass import dataclass
from tilework.plan.order import Order, bits

Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Items by number. `conflicts[i]` are the items that may not share bytes with item i; each of `moments` is a set of
    items that conflict with one another (so their sizes add up); `starts` and `ends` say roughly when an item lives.
    """

    conflicts: tuple[Indices, ...]
    moments: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.conflicts)

    @cached_property
    def neighbours(self) -> tuple[list[int], ...]:
        """The conflicts as lists."""
        return tuple(near.tolist() for near in self.conflicts)


def from_intervals(intervals: Sequence[tuple[int, int]]) -> Lifetimes:
    """Lifetimes on one line of time: item i lives from `intervals[i][0]` up to but not including `intervals[i][1]`."""
    conflicts: list[list[int]] = [[] for _ in intervals]
    moments: list[tuple[int, ...]] = []
    live: list[int] = []
    grown = False
    for index in sorted(range(len(intervals)), key=lambda i: intervals[i]):
        start, end = intervals[index]
        if end <= start:
            continue
        kept = [other for other in live if intervals[other][1] > start]
        if grown and len(kept) < len(live):
            moments.append(tuple(live))
        for other in kept:
            conflicts[other].append(index)
            conflicts[index].append(other)
        kept.append(index)
        live, grown = kept, True
    if live:
        moments.append(tuple(live))
    return Lifetimes(
        tuple(np.array(sorted(found), np.int64) for found in conflicts),
        tuple(moments),
        tuple(start for start, _ in intervals),
        tuple(end for _, end in intervals),
    )


def from_order(order: Order, lives: Sequence[int]) -> Lifetimes:
    """Lifetimes over the queues of a plan: `lives` are sets of nodes (`Order.life`), one per item.

    Two items may share bytes if every node of one comes before every node of the other, or excludes it.
    """
    position = {node: index for index, node in enumerate(order.linear)}
    spans = [_span(life, position) for life in lives]
    if order.total:
        return from_intervals([(low, high + 1) for low, high in spans])
    followers = [order.followers(life) if life else -1 for life in lives]
    conflicts: list[list[int]] = [[] for _ in lives]
    for index, life in enumerate(lives):
        for other in range(index if life else 0):
            if lives[other] and life & ~followers[other] and lives[other] & ~followers[index]:
                conflicts[index].append(other)
                conflicts[other].append(index)
    return Lifetimes(
        tuple(np.array(sorted(found), np.int64) for found in conflicts),
        _moments(order, lives),
        tuple(low for low, _ in spans),
        tuple(high + 1 for _, high in spans),
    )


def _span(life: int, position: Mapping[int, int]) -> tuple[int, int]:
    times = [position[node] for node in bits(life)]
    return (min(times), max(times)) if times else (0, -1)


def _moments(order: Order, lives: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """For each node, the items that have a node at or before it and one at or after it: none of them can be over before
    another begins.
    """
    before = [1 << node for node in range(len(order.nodes))]
    for node in order.linear:
        for target in order.successors[node]:
            before[target] |= before[node]
    found: dict[tuple[int, ...], None] = {}
    for node in range(len(order.nodes)):
        upto, since = before[node], order.after[node] | (1 << node)
        found[tuple(i for i, life in enumerate(lives) if life & upto and life & since)] = None
    return tuple(found)


def lower_bound(lifetimes: Lifetimes, sizes: Iterable[int]) -> int:
    """The most that live items ask for at any moment: no placement is smaller."""
    known = tuple(sizes)
    return max((sum(known[i] for i in moment) for moment in lifetimes.moments), default=0)
