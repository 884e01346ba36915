"""Offsets for items whose sizes are symbolic: which item is above which is decided for some values of the symbols, and
each item then starts where the highest of those below it ends, for all values.

An end is a sum of sizes. Of the ends of all items below, those than which another is never smaller are left out
(`never_smaller`); what is left, a few sums, is an offset `max(...)`. Two sums are joined, to the bound of both,
term by term, where everything above still fits at the values that are planned for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tilework.dims import Bounds, Dim, maximum
from tilework.fast_dataclass import dataclass
from tilework.memory.above import Above
from tilework.memory.never_smaller import Rows, Terms, terms_of

Values: TypeAlias = "Mapping[str, int]"

_SUMS = 16
"""Sums in one offset, at most."""
_ROWS = 96
"""Sums that are compared with one another at a time."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Where every item starts and what holds all of them: rows of coefficients, the largest of which it is."""

    starts: tuple[Rows, ...]
    total: Rows


class SymbolicSizes:
    """Sizes whose every term is never negative, as rows of coefficients."""

    def __init__(self, sizes: Sequence[Dim], bounds: Bounds, points: Sequence[Values]) -> None:
        """`points` are the values that are planned for."""
        self.terms: Terms = terms_of(sizes, bounds)
        place = {monomial: number for number, monomial in enumerate(self.terms.monomials)}
        together = sum(abs(c) for size in sizes for c in (size.constant, *(c for _, c in size.terms)))
        self._kind = np.int64 if together < 1 << 62 else object
        self.rows: Rows = np.zeros((len(sizes), len(place)), self._kind)
        for row, size in zip(self.rows, sizes, strict=True):
            row[0] = size.constant
            for monomial, coefficient in size.terms:
                row[place[monomial]] = coefficient
        self._dims: dict[str, Dim] = {}
        worth = [[int(Dim(((m, 1),)).evaluate(point)) if m else 1 for point in points] for m in self.terms.monomials]
        self._worth: Rows = np.array(worth, np.float64).reshape(len(place), len(points))

    def stacked(self, found: Above) -> Stack:
        """Each item above those that it stands on, and where this takes no more at the values that are planned for, as
        few sums as may be.
        """
        worth = self.rows @ self._worth
        height = found.heights(worth)
        latest = height - found.carried(worth)
        starts: list[Rows] = [self.rows[:0]] * len(found.order)
        ends: list[Rows] = [self.rows[:0]] * len(found.order)
        for item in found.order:
            starts[item] = self._highest([ends[other] for other in found.stands_on[item]], latest[item])
            ends[item] = starts[item] + self.rows[item]
        return Stack(tuple(starts), self._highest(ends, height))

    def dim(self, rows: Rows) -> Dim:
        """The largest of the sums that rows are."""
        key = repr(rows.tolist())
        if key not in self._dims:
            self._dims[key] = maximum(*(self._sum(row) for row in rows.tolist()))
        return self._dims[key]

    def _sum(self, row: Sequence[int]) -> Dim:
        terms = zip(self.terms.monomials[1:], row[1:], strict=True)
        return Dim(tuple((monomial, coefficient) for monomial, coefficient in terms if coefficient), row[0])

    def _highest(self, ends: Sequence[Rows], latest: Rows) -> Rows:
        """The sums that may be the largest, joined as long as they stay below `latest`; at least one."""
        rows: Rows = np.zeros((1, self.rows.shape[1]), self._kind)
        for first in ends:
            rows = np.concatenate((rows, first))
            if len(rows) > _ROWS:
                rows = self._joined(self.terms.kept(rows), latest)
        return self._joined(self.terms.kept(rows), latest)

    def _joined(self, rows: Rows, latest: Rows) -> Rows:
        """Rows, two and two joined as long as they stay below `latest`, and beyond it while they are too many."""
        while len(rows) > 1:
            pairs: Any = np.triu_indices(len(rows), 1)
            both = np.maximum(rows[pairs[0]], rows[pairs[1]])
            raised = ((both @ self._worth) / np.maximum(latest, 1)).max(1)
            best = int(raised.argmin())
            if raised[best] > 1 and len(rows) <= _SUMS:
                break
            one, other = int(pairs[0][best]), int(pairs[1][best])
            rows = np.concatenate((np.delete(rows, (one, other), 0), both[best : best + 1]))
            rows = self.terms.kept(rows)
        return rows
