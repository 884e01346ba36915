"""Symbolic integers: extents, indices, guards, offsets and byte counts are all a `Dim`.

A `Dim` is a polynomial with integer coefficients over atoms: names (symbols and loop variables), floor divisions,
remainders, minima, maxima, and elements loaded from a buffer. Arithmetic normalises, so equal polynomials are equal
objects by `==` and `hash`. Where a rule asks for less (quasi-affine in some variables), `affine_in` says so.
"""

from __future__ import annotations

from tilework.dims.atoms import Atom, Extreme, FloorDiv, Loaded, Mod, Monomial
from tilework.dims.intervals import Bound, Bounds
from tilework.dims.parse import parse_dim
from tilework.dims.polynomial import ONE, ZERO, Dim, IntLike, dim, loaded, maximum, minimum, product, total
from tilework.dims.symbols import Symbol, symbol_bounds

__all__ = [
    "ONE",
    "ZERO",
    "Atom",
    "Bound",
    "Bounds",
    "Dim",
    "Extreme",
    "FloorDiv",
    "IntLike",
    "Loaded",
    "Mod",
    "Monomial",
    "Symbol",
    "dim",
    "loaded",
    "maximum",
    "minimum",
    "parse_dim",
    "product",
    "symbol_bounds",
    "total",
]
