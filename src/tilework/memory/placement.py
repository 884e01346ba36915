"""Offsets for items whose sizes may be symbolic: right for every value of the symbols, chosen for one of them.

With symbols, a placement is found for the sizes at representative values. What it says of two items that conflict,
which one is below, is kept for all values: each item starts above everything below it. Sizes are bounded by sums of
monomials that are never negative, so "above" is a comparison of coefficients, and an offset stays a short polynomial.
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
from tilework.memory.offsets import best_offsets, height

Form = dict[Monomial, int]
"""A sum of (coefficient > 0) * (monomial that is never negative); the empty monomial is the constant."""


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
    forms = [_padded(_form(size, bounds), alignment) for size in bounded]
    numbers = [_round_up(_value(form, values), alignment) for form in forms]
    found, _ = best_offsets(lifetimes, numbers)
    exact = [_round_up(max(size.evaluate(values), 0), alignment) for size in bounded]
    bound = max((sum(exact[i] for i in moment) for moment in lifetimes.moments), default=0)
    if all(size.is_constant for size in bounded):
        offsets = {name: dim(offset) for name, offset in zip(names, found, strict=True)}
        return Placement(MappingProxyType(offsets), dim(height(found, numbers)), bound, MappingProxyType(values))
    starts, total = _stacked(lifetimes, forms, found)
    aligned = {name: _aligned(start, alignment) for name, start in zip(names, starts, strict=True)}
    return Placement(MappingProxyType(aligned), _aligned(total, alignment), bound, MappingProxyType(values))


def typical(symbol: Symbol) -> int:
    """A value to plan for where none was given: 256, or the nearest that the symbol may have."""
    value = max(symbol.lower, 256)
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


def _padded(form: Form, alignment: int) -> Form:
    """The bytes to keep for an item: where its size may be no multiple of the alignment, its end is rounded up.

    An item that starts at the rounded-up `o` then ends at or before the rounded-up `o + padded size`, whatever `o` is.
    """
    if all(coefficient % alignment == 0 for monomial, coefficient in form.items() if monomial):
        constant = _round_up(form.get((), 0), alignment)
        return {**form, (): constant} if constant else form
    return {**form, (): form.get((), 0) + alignment - 1}


def _stacked(lifetimes: Lifetimes, forms: Sequence[Form], offsets: Sequence[int]) -> tuple[list[Form], Form]:
    """Each item above all conflicting ones that the given offsets put below it; and what holds all of them."""
    order = sorted(range(len(forms)), key=lambda i: (offsets[i], i))
    rank = {item: position for position, item in enumerate(order)}
    starts: list[Form] = [{} for _ in forms]
    total: Form = {}
    for item in order:
        start: Form = {}
        for other in map(int, lifetimes.conflicts[item]):
            if rank[other] < rank[item]:
                _raise(start, _plus(starts[other], forms[other]))
        starts[item] = start
        _raise(total, _plus(start, forms[item]))
    return starts, total


def _plus(a: Form, b: Form) -> Form:
    return {monomial: a.get(monomial, 0) + b.get(monomial, 0) for monomial in (*a, *b)}


def _raise(form: Form, least: Form) -> None:
    for monomial, coefficient in least.items():
        if form.get(monomial, 0) < coefficient:
            form[monomial] = coefficient


def _sum(form: Form) -> Dim:
    total = dim(form.get((), 0))
    for monomial, coefficient in form.items():
        if monomial:
            total = total + Dim(((monomial, coefficient),))
    return total


def _aligned(form: Form, alignment: int) -> Dim:
    value = _sum(form)
    if all(coefficient % alignment == 0 for coefficient in form.values()):
        return value
    return value.ceildiv(alignment) * alignment


def _value(form: Form, values: Mapping[str, int]) -> int:
    return int(_sum(form).evaluate(values))


def _round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
