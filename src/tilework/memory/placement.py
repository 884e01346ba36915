"""Offsets for items whose sizes may be symbolic: right for every value of the symbols, chosen for one of them.

With symbols, placements are found for the sizes at representative values. What one says of two items that conflict,
which one is below, is kept for all values: each item starts above everything below it (`symbolic_offsets`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from tilework.dims import (
    Atom,
    Bounds,
    Dim,
    Extreme,
    FloorDiv,
    Mod,
    Monomial,
    Symbol,
    dim,
    maximum,
    minimum,
    symbol_bounds,
)
from tilework.errors import PlanError
from tilework.fast_dataclass import dataclass
from tilework.memory.lifetimes import Lifetimes
from tilework.memory.never_smaller import never_negative
from tilework.memory.search import best_above
from tilework.memory.symbolic_offsets import SymbolicSizes

Form = dict[Monomial, int]
"""A sum of (coefficient > 0) * (monomial that is never negative); the empty monomial is the constant."""

_FIRST = 3
"""Symbols that are planned for at their smallest, each with the others as usual."""
_FEW = 12
"""What all symbols are planned for together: a short sentence, a small picture."""


@dataclass(frozen=True)
class Placement:
    """An offset in bytes for each item, and the bytes needed. `lower_bound` bytes are needed by any placement: at the
    `representative` values where sizes are symbolic.
    """

    offsets: Mapping[str, Dim]
    total: Dim
    lower_bound: int
    representative: Mapping[str, int]


def place(
    names: Sequence[str],
    sizes: Sequence[Dim],
    lifetimes: Lifetimes,
    *,
    symbols: Iterable[Symbol] = (),
    representative: Mapping[str, int] | None = None,
    alignment: int = 64,
) -> Placement:
    """Offsets (multiples of `alignment`) such that items that conflict share no byte, whatever the symbols' values.

    Sizes are in bytes. A measured symbol in a size counts at its upper bound. `representative` values (the symbols'
    bounds nearest to 256 where not given) decide what is placed below what. Raises `PlanError` 1422 for a size that
    has no bound.
    """
    known = {symbol.name: symbol for symbol in symbols}
    values = dict(representative or {})
    for symbol in known.values():
        if not symbol.measured:
            values.setdefault(symbol.name, typical(symbol))
    bounds = symbol_bounds(known.values())
    bounded = [_without_measured(name, size, known) for name, size in zip(names, sizes, strict=True)]
    whole = [_whole(size, alignment, bounds) for size in bounded]
    points = _points(values, known)
    if not whole:
        return Placement(MappingProxyType({}), Dim(), 0, MappingProxyType(values))
    found, least = best_above(lifetimes, [[int(size.evaluate(point)) for size in whole] for point in points])
    symbolic = SymbolicSizes(whole, bounds, points)
    stack = symbolic.stacked(found)
    offsets = {name: symbolic.dim(rows) for name, rows in zip(names, stack.starts, strict=True)}
    return Placement(MappingProxyType(offsets), symbolic.dim(stack.total), least[0], MappingProxyType(values))


def _points(values: Mapping[str, int], symbols: Mapping[str, Symbol]) -> list[dict[str, int]]:
    """The values that are planned for; some with one symbol as small as may be, as a batch often is; and small ones."""
    named = [symbols[name] for name in values if name in symbols]
    found = [dict(values), *({**values, symbol.name: _near(symbol, 1)} for symbol in named[:_FIRST])]
    found.append({**values, **{symbol.name: _near(symbol, _FEW) for symbol in named}})
    return [point for number, point in enumerate(found) if point not in found[:number]]


def typical(symbol: Symbol) -> int:
    """A value to plan for where none was given: 256, or the nearest that the symbol may have."""
    return _near(symbol, 256)


def _near(symbol: Symbol, value: int) -> int:
    value = max(symbol.lower, value)
    if symbol.upper is not None:
        value = min(value, symbol.upper)
    down = value - value % symbol.multiple
    return down if down >= symbol.lower else down + symbol.multiple


def _without_measured(name: str, size: Dim, symbols: Mapping[str, Symbol]) -> Dim:
    """The size, or an upper bound of it without measured symbols."""
    limits: dict[str, int] = {}
    for used in sorted(size.names()):
        symbol = symbols.get(used)
        if symbol is None:
            raise PlanError(1422, f"the size of {name}, {size} bytes, uses {used!r}, which is no symbol of the plan")
        if symbol.measured:
            if symbol.upper is None:
                raise PlanError(1422, f"the size of {name}, {size} bytes, depends on {used}, which has no upper bound")
            limits[used] = symbol.upper
    return _largest(size, limits, symbol_bounds(symbols.values())) if limits else size


def _largest(value: Dim, limits: Mapping[str, int], bounds: Bounds) -> Dim:
    """An upper bound of a dim without the names in `limits`, given the largest value of each."""
    if not value.names() & limits.keys():
        return value
    total = dim(0)
    for monomial, coefficient in _form(value, bounds).items():
        factor = dim(coefficient)
        for atom in monomial:
            factor = factor * _largest_atom(atom, limits, bounds)
        total = total + factor
    return total


def _largest_atom(atom: Atom, limits: Mapping[str, int], bounds: Bounds) -> Dim:
    if isinstance(atom, str):
        return dim(limits.get(atom, atom))
    if isinstance(atom, FloorDiv) and not atom.denominator.names() & limits.keys():
        return _largest(atom.numerator, limits, bounds) // atom.denominator
    if isinstance(atom, Mod) and not atom.modulus.names() & limits.keys():
        return atom.modulus - 1 if atom.value.names() & limits.keys() else Dim((((atom,), 1),))
    if isinstance(atom, Extreme):
        pick = maximum if atom.name == "max" else minimum
        return pick(*(_largest(argument, limits, bounds) for argument in atom.arguments))
    raise PlanError(1422, f"{atom} in the size of a buffer has no bound that can be planned for")


def _form(size: Dim, bounds: Bounds) -> Form:
    """An upper bound of a size, equal to it where nothing in it is subtracted."""
    found: Form = {}
    if size.constant > 0:
        found[()] = size.constant
    for monomial, coefficient in size.terms:
        factor = Dim(((monomial, 1),))
        if factor.bounds(bounds)[0] >= 0:
            if coefficient > 0:
                found[monomial] = found.get(monomial, 0) + coefficient
            continue
        positive = maximum(factor if coefficient > 0 else -factor, 0)
        ((atom, _),) = positive.terms
        found[atom] = found.get(atom, 0) + abs(coefficient)
    return found


def _whole(size: Dim, alignment: int, bounds: Bounds) -> Dim:
    """A size rounded up to the alignment, at least 0, none of whose terms is ever negative."""
    if not _never_negative_terms(size, bounds) or not never_negative(size, bounds):
        size = maximum(size, 0).simplify(bounds)
    if size.constant % alignment or any(coefficient % alignment for _, coefficient in size.terms):
        size = size.ceildiv(alignment) * alignment
    return size if _never_negative_terms(size, bounds) else maximum(size, 0)


def _never_negative_terms(size: Dim, bounds: Bounds) -> bool:
    return all(Dim(((monomial, 1),)).bounds(bounds)[0] >= 0 for monomial, _ in size.terms)
