"""Which of two symbolic sizes is never smaller, for many sizes at once.

Sizes are rows of coefficients of one list of terms. Each term lies between two polynomials of the symbols' distances
from their lower bounds: `n` is `low + n'`, `(n + 1) // 2` lies between `n / 2` and `(n + 1) / 2`. A difference is never
negative where its terms, each at the end that makes it least, add up to a polynomial without negative coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from tilework.dims import Atom, Bounds, Dim, Extreme, FloorDiv, Monomial
from tilework.dims.atoms import monomial_key
from tilework.fast_dataclass import dataclass

Rows: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
_Form: TypeAlias = "dict[tuple[str, ...], Fraction]"
"""A polynomial of the distances: coefficients by the names that they are with."""
_End: TypeAlias = "_Form | None"
"""One without negative coefficients; None where nothing is known."""
_Known: TypeAlias = "dict[Atom, tuple[_End, _End]]"

_EXACT = 2.0**62
"""Magnitude up to which 64-bit integers are used."""


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms that rows are of, and the polynomials that each lies between; where nothing bounds one from above,
    `bounded` is 0. The constant is the first term.
    """

    monomials: tuple[Monomial, ...]
    lower: Rows
    upper: Rows
    unbounded: Rows

    def kept(self, rows: Rows) -> Rows:
        """The rows, without those than which another is never smaller."""
        rows = _distinct(rows)
        if len(rows) < 2:
            return rows
        more = rows[:, None, :] - rows[None, :, :]
        above, below = np.maximum(more, 0), np.maximum(-more, 0)
        largest = float(np.abs(more).max()) * float(max(np.abs(self.lower).max(), np.abs(self.upper).max()))
        if largest * len(self.monomials) > _EXACT:
            above, below = above.astype(object), below.astype(object)
        never_smaller = ((above @ self.lower - below @ self.upper) >= 0).all(-1) & ((below @ self.unbounded) == 0)
        number = np.arange(len(rows))
        wins = never_smaller & (~never_smaller.T | (number[:, None] < number[None, :]))
        np.fill_diagonal(wins, val=False)
        return rows[~wins.any(0)]


def never_negative(size: Dim, bounds: Bounds) -> bool:
    """Whether a size is seen to be at least 0 in this way."""
    return size.bounds(bounds)[0] >= 0 or _dim_ends(size, bounds, {})[0] is not None


def _distinct(rows: Rows) -> Rows:
    found = {str(row): number for number, row in enumerate(rows.tolist())}
    return rows[list(found.values())]


def terms_of(sizes: Sequence[Dim], bounds: Bounds) -> Terms:
    """The terms, in the order that dims have them, of sizes whose every term is never negative."""
    found = dict.fromkeys(monomial for size in sizes for monomial, _ in size.terms)
    monomials = ((), *sorted(found, key=lambda monomial: monomial_key((monomial, 1))))
    known_ends: _Known = {}
    pairs = [_ends(monomial, bounds, known_ends) for monomial in monomials]
    known = [end for pair in pairs for end in pair if end is not None]
    names = list(dict.fromkeys(name for end in known for name in end))
    scale = math.lcm(*(value.denominator for end in known for value in end.values()))
    tables: list[list[list[int]]] = [
        [[int((pair[side] or {}).get(name, 0) * scale) for name in names] for pair in pairs] for side in (0, 1)
    ]
    largest = max((value for table in tables for row in table for value in row), default=0)
    lower, upper = (np.array(table, np.int64 if largest < 1 << 40 else object) for table in tables)
    shape = len(monomials), len(names)
    unbounded = np.array([pair[1] is None for pair in pairs], np.int64)
    return Terms(monomials, lower.reshape(shape), upper.reshape(shape), unbounded)


def _ends(monomial: Monomial, bounds: Bounds, known: _Known) -> tuple[_End, _End]:
    """Polynomials without negative coefficients that a product lies between; None where none is known."""
    low: _End = {(): Fraction(1)}
    high: _End = {(): Fraction(1)}
    for atom in monomial:
        if atom not in known:
            known[atom] = _atom_ends(atom, bounds, known)
        under, over = known[atom]
        low = None if low is None or under is None else _product(low, under)
        high = None if high is None or over is None else _product(high, over)
    return low, high


def _atom_ends(atom: Atom, bounds: Bounds, known: _Known) -> tuple[_End, _End]:
    least, most = Dim((((atom,), 1),)).bounds(bounds)
    if least < 0:
        return None, None
    floor: _Form = {(): Fraction(int(least))} if least else {}
    ceiling: _End = {(): Fraction(int(most))} if most < math.inf else None
    match atom:
        case str():
            exact: _Form = {**floor, (atom,): Fraction(1)}
            return exact, exact
        case FloorDiv(numerator=numerator, denominator=denominator) if not denominator.terms:
            k = denominator.constant
            low, high = _dim_ends(numerator - (k - 1), bounds, known)[0], _dim_ends(numerator, bounds, known)[1]
            return _parts(low, k) or floor, ceiling if high is None else _parts(high, k)
        case Extreme(name="max", arguments=arguments):
            each = [_dim_ends(argument, bounds, known) for argument in arguments]
            above: _End = {}
            for _, high in each:
                above = None if above is None or high is None else _added(above, high, 1)
            return max((low for low, _ in each if low is not None), key=len, default=floor), above or ceiling
        case Extreme(arguments=arguments):
            highs = [
                high for _, high in (_dim_ends(argument, bounds, known) for argument in arguments) if high is not None
            ]
            return floor, ceiling if ceiling is not None else next(iter(highs), None)
        case _:
            return floor, ceiling


def _dim_ends(value: Dim, bounds: Bounds, known: _Known) -> tuple[_End, _End]:
    low: _End = {}
    high: _End = {}
    for monomial, coefficient in (*value.terms, ((), value.constant)):
        under, over = _ends(monomial, bounds, known)
        if coefficient < 0:
            under, over = over, under
        low = None if low is None or under is None else _added(low, under, coefficient)
        high = None if high is None or over is None else _added(high, over, coefficient)
    if low is not None and any(value < 0 for value in low.values()):
        low = None
    # what is taken off can be left out of an upper end
    return low, None if high is None else {name: value for name, value in high.items() if value > 0}


def _parts(form: _End, count: int) -> _End:
    return None if form is None else {name: value / count for name, value in form.items()}


def _added(form: _Form, other: _Form, factor: int) -> _Form:
    found = dict(form)
    for name, value in other.items():
        found[name] = found.get(name, Fraction(0)) + value * factor
    return found


def _product(a: _Form, b: _Form) -> _Form:
    found: _Form = {}
    for left, p in a.items():
        for right, q in b.items():
            name = tuple(sorted(left + right))
            found[name] = found.get(name, Fraction(0)) + p * q
    return found
