"""Bounds of names and intervals of atoms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from tilework.dims.atoms import Atom, Extreme, FloorDiv, Mod

Bound: TypeAlias = float
"""An integer, or an infinity where nothing bounds the value."""
Bounds: TypeAlias = Mapping[str, tuple[Bound, Bound]]
"""Inclusive lower and upper bound of each name."""


def atom_bounds(atom: Atom, of: Bounds) -> tuple[Bound, Bound]:
    """An interval that holds the atom when every name lies in its own."""
    if isinstance(atom, str):
        return of.get(atom, (-math.inf, math.inf))
    if isinstance(atom, FloorDiv):
        low, high = atom.numerator.bounds(of)
        small, large = atom.denominator.bounds(of)
        small = max(small, 1)
        large = max(large, small)
        ends = [_floor_quotient(x, k) for x in (low, high) for k in (small, large)]
        return min(ends), max(ends)
    if isinstance(atom, Mod):
        low, high = atom.value.bounds(of)
        small, large = atom.modulus.bounds(of)
        if low >= 0 and high < small:
            return low, high
        return 0, min(large - 1, high) if low >= 0 else large - 1
    if isinstance(atom, Extreme):
        each = [a.bounds(of) for a in atom.arguments]
        pick = max if atom.name == "max" else min
        return pick(low for low, _ in each), pick(high for _, high in each)
    return -math.inf, math.inf


def times(a: Bound, b: Bound) -> Bound:
    """The product of two ends, where nothing times an infinity is nothing."""
    return 0 if a == 0 or b == 0 else a * b


def _floor_quotient(a: Bound, k: Bound) -> Bound:
    if math.isinf(a):
        return a
    return a // k if not math.isinf(k) else (0 if a >= 0 else -1)
