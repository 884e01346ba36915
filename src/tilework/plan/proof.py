"""Statements about symbolic integers that hold for every value of the symbols, and values to try the rest on."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping

from tilework.dims import Atom, Bounds, Dim, Extreme, FloorDiv, Mod, Monomial, Symbol
from tilework.errors import UsageError
from tilework.plan.guard import Guard

_EXPANSIONS = 64
"""How many divisions, remainders and extremes a proof may replace before it gives up."""


def nonnegative(value: Dim, bounds: Bounds) -> bool:
    """Whether `value >= 0` can be shown for all names within their bounds; False where it is wrong or not known.

    Divisions, remainders and extremes are replaced by what bounds them until intervals decide: `k * (n // k)` is at
    least `n - k + 1`, `max(a, b)` at least `a`.
    """
    return _nonnegative(value, bounds, [_EXPANSIONS])


def _nonnegative(value: Dim, bounds: Bounds, budget: list[int]) -> bool:
    if value.bounds(bounds)[0] >= 0:
        return True
    value = value.simplify(bounds)
    if value.bounds(bounds)[0] >= 0:
        return True
    if value.is_constant or budget[0] <= 0:
        return False
    budget[0] -= 1
    candidates = [
        (monomial, coefficient, atom)
        for monomial, coefficient in value.terms
        for atom in monomial
        if isinstance(atom, (FloorDiv, Mod, Extreme)) and _rest(monomial, atom).bounds(bounds)[0] >= 0
    ]
    if not candidates:
        return False
    # The outermost first: what is inside it may cancel against the rest.
    monomial, coefficient, atom = max(candidates, key=lambda item: len(str(item[2])))
    rest = _rest(monomial, atom)
    others = value - Dim(((monomial, coefficient),))
    if isinstance(atom, FloorDiv):
        if atom.denominator.terms:
            return False
        k = atom.denominator.constant
        least = atom.numerator - (k - 1) if coefficient > 0 else atom.numerator
        return _nonnegative(others * k + rest * least * coefficient, bounds, budget)
    if isinstance(atom, Mod):
        if coefficient > 0:
            return _nonnegative(others, bounds, budget)
        return _nonnegative(others + rest * (atom.modulus - 1) * coefficient, bounds, budget)
    one_is_enough = (atom.name == "max") == (coefficient > 0)
    quantifier = any if one_is_enough else all
    return quantifier(_nonnegative(others + rest * a * coefficient, bounds, budget) for a in atom.arguments)


def _rest(monomial: Monomial, atom: Atom) -> Dim:
    left = list(monomial)
    left.remove(atom)
    return Dim(((tuple(left), 1),)) if left else Dim((), 1)


def divisible(value: Dim, divisor: int) -> bool:
    """Whether `value` is a multiple of `divisor` for all values of its names; False where that is not known."""
    if value.constant % divisor:
        return False
    return all(
        coefficient % divisor == 0 or any(_atom_divisible(atom, divisor, coefficient) for atom in monomial)
        for monomial, coefficient in value.terms
    )


def _atom_divisible(atom: Atom, divisor: int, coefficient: int) -> bool:
    return isinstance(atom, Extreme) and all(divisible(a * coefficient, divisor) for a in atom.arguments)


def sample_symbols(
    symbols: Iterable[Symbol], guards: Iterable[Guard] = (), count: int = 12, seed: int = 0
) -> tuple[dict[str, int], ...]:
    """Values of the symbols to try things on: the corners of their bounds, 1, and random ones within bounds, divisors
    and guards (a guard on names that are not among the symbols is left out).
    """
    known = tuple(symbols)
    generator = random.Random(seed)
    found: dict[tuple[int, ...], dict[str, int]] = {}
    conditions = [guard for guard in guards if guard.value.names() <= {symbol.name for symbol in known}]
    for values in _candidates(known, count, generator):
        if all(_holds(guard, values) for guard in conditions):
            found.setdefault(tuple(values.values()), values)
    return tuple(found.values())


def _holds(guard: Guard, values: Mapping[str, int]) -> bool:
    try:
        return guard.holds(values)
    except UsageError:
        return False


def _candidates(symbols: tuple[Symbol, ...], count: int, generator: random.Random) -> Iterator[dict[str, int]]:
    if not symbols:
        yield {}
        return
    for fixed in (0, 1, 2, 3, 7, 64, 1000):
        yield {symbol.name: _clamp(symbol, fixed) for symbol in symbols}
    for _ in range(count):
        yield {symbol.name: _clamp(symbol, int(math.exp2(generator.uniform(0, 12)))) for symbol in symbols}


def _clamp(symbol: Symbol, value: int) -> int:
    """The nearest value that the symbol may have, towards its lower bound."""
    value = max(value, symbol.lower)
    if symbol.upper is not None:
        value = min(value, symbol.upper)
    step = symbol.multiple
    down = value - value % step
    return down if down >= symbol.lower else -(-symbol.lower // step) * step
