"""Dims add, multiply and divide; every result is in normal form."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from tilework.dims.atoms import Atom, Extreme, FloorDiv, Loaded, Mod, Monomial, atom_key, monomial_key
from tilework.dims.intervals import Bounds
from tilework.dims.terms import Terms
from tilework.errors import UsageError

IntLike: TypeAlias = "Dim | int | str"


class Dim(Terms):
    """A symbolic integer. Build with `dim(...)` and arithmetic; never mutated."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        return (Dim, (self.terms, self.constant))

    def __add__(self, other: IntLike) -> Dim:
        if isinstance(other, int):
            return self if other == 0 else Dim(self.terms, self.constant + other)
        other = dim(other)
        if not other.terms:
            return self + other.constant
        if not self.terms:
            return other + self.constant
        merged = dict(self.terms)
        for monomial, coefficient in other.terms:
            merged[monomial] = merged.get(monomial, 0) + coefficient
        return _from_terms(merged, self.constant + other.constant)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: IntLike) -> Dim:
        if isinstance(other, int):
            return self + -other
        other = dim(other)
        if not other.terms:
            return self + -other.constant
        merged = dict(self.terms)
        for monomial, coefficient in other.terms:
            merged[monomial] = merged.get(monomial, 0) - coefficient
        return _from_terms(merged, self.constant - other.constant)

    def __rsub__(self, other: IntLike) -> Dim:
        return dim(other) + self * -1

    def __mul__(self, other: IntLike) -> Dim:
        other = other if isinstance(other, int) else dim(other)
        if isinstance(other, Dim):
            if other.terms and self.terms:
                merged: dict[Monomial, int] = {}
                for left, p in (*self.terms, ((), self.constant)):
                    for right, q in (*other.terms, ((), other.constant)):
                        if p and q:
                            product = tuple(sorted(left + right, key=atom_key))
                            merged[product] = merged.get(product, 0) + p * q
                constant = merged.pop((), 0)
                return _from_terms(merged, constant)
            if not self.terms:
                self, other = other, self.constant
            else:
                other = other.constant
        if other == 0:
            return ZERO
        if other == 1:
            return self
        return Dim(tuple((m, c * other) for m, c in self.terms), self.constant * other)

    __rmul__ = __mul__

    def __floordiv__(self, other: IntLike) -> Dim:
        other = dim(other)
        if not other.terms:
            k = other.constant
            if k <= 0:
                raise UsageError(1004, f"{self} // {k}: the divisor must be positive")
            if k == 1:
                return self
            if not self.terms:
                return Dim((), self.constant // k)
            whole = tuple((m, c // k) for m, c in self.terms if c % k == 0)
            rest = tuple((m, c) for m, c in self.terms if c % k)
            # (k q + r) // k = q + r // k, with the constant's remainder kept beside r
            quotient, remainder = divmod(self.constant, k)
            head = Dim(whole, quotient)
            if not rest:
                return head
            common = math.gcd(k, *(c for _, c in rest))
            inner = Dim(rest, remainder)
            if common > 1:  # (g r + s) // (g k) = (r + s // g) // k
                inner = Dim(tuple((m, c // common) for m, c in rest), remainder // common)
                k //= common
            return head + _atom(FloorDiv(inner, Dim((), k)))
        if self == other:
            return ONE
        exact = _exact_quotient(self, other)
        return exact if exact is not None else _atom(FloorDiv(self, other))

    def __rfloordiv__(self, other: IntLike) -> Dim:
        return dim(other) // self

    def __mod__(self, other: IntLike) -> Dim:
        other = dim(other)
        if not other.terms:
            k = other.constant
            if k <= 0:
                raise UsageError(1004, f"{self} % {k}: the modulus must be positive")
            if k == 1:
                return ZERO
            rest = tuple((m, c % k) for m, c in self.terms if c % k)
            if not rest:
                return Dim((), self.constant % k)
            return _atom(Mod(Dim(rest, self.constant % k), other))
        if self == other or _exact_quotient(self, other) is not None:
            return ZERO
        return _atom(Mod(self, other))

    def ceildiv(self, other: IntLike) -> Dim:
        """The quotient rounded up; `other` is positive."""
        other = dim(other)
        return (self + other - 1) // other

    def substitute(self, values: Mapping[str, IntLike], loads: Callable[[Loaded], Dim] | None = None) -> Dim:
        """Replace names (and, through `loads`, loaded elements whose own index is already replaced)."""
        if not self.terms:
            return self
        if loads is None and not _may_change(self.terms, values):
            return self
        parts: list[Dim] = []
        for term in self.terms:
            if not _may_change((term,), values):
                parts.append(Dim((term,)))
                continue
            monomial, coefficient = term
            product: Dim = Dim((), coefficient)
            for atom in monomial:
                product = product * _substitute_atom(atom, values, loads)
            parts.append(product)
        return _total(parts, self.constant)

    def simplify(self, of: Bounds) -> Dim:
        """Drop divisions, remainders, minima and maxima that the bounds decide."""
        if all(isinstance(atom, str) for monomial, _ in self.terms for atom in monomial):
            return self
        parts: list[Dim] = []
        for term in self.terms:
            monomial, coefficient = term
            if all(type(atom) is str for atom in monomial):
                parts.append(Dim((term,)))
                continue
            product = Dim((), coefficient)
            for atom in monomial:
                product = product * _simplify_atom(atom, of)
            parts.append(product)
        return _total(parts, self.constant)


ZERO = Dim()
ONE = Dim((), 1)


def dim(value: IntLike) -> Dim:
    """A `Dim` from an integer or a name; raises `UsageError` 1004 for anything else (2.5 is not cut to 2)."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, str):
        return Dim((((value,), 1),))
    try:
        return Dim((), operator.index(value))
    except TypeError:
        what = repr(value) if isinstance(value, float) else f"a {type(value).__name__}"
        raise UsageError(
            1004, f"{what} is no symbolic integer",
            hint="give an integer, a name or a dim; as a number among others, an index i is index(i, float32)",
        ) from None  # fmt: skip


def maximum(*values: IntLike) -> Dim:
    """The largest of some dims."""
    return extreme("max", values)


def minimum(*values: IntLike) -> Dim:
    """The smallest of some dims."""
    return extreme("min", values)


def loaded(buffer: str, index: Iterable[IntLike]) -> Dim:
    """An integer element of a buffer, as a dim."""
    return _atom(Loaded(buffer, tuple(dim(i) for i in index)))


def product(values: Iterable[IntLike]) -> Dim:
    """The product of dims (1 for none)."""
    total = ONE
    for value in values:
        total = total * value
    return total


def total(values: Iterable[IntLike]) -> Dim:
    """The sum of dims (0 for none): one pass, where adding them up one by one would be one for each."""
    return _total([dim(value) for value in values], 0)


def _total(parts: list[Dim], constant: int) -> Dim:
    """The sum of all parts, one by one where remainders may meet their quotients on the way."""
    if len(parts) == 1:
        return parts[0] + constant
    whole = constant
    merged: dict[Monomial, int] = {}
    for part in parts:
        whole += part.constant
        for monomial, coefficient in part.terms:
            merged[monomial] = merged.get(monomial, 0) + coefficient
            for atom in monomial:
                if type(atom) is Mod:
                    return sum(parts, Dim((), constant))
    return _from_terms(merged, whole)


def _from_terms(terms: dict[Monomial, int], constant: int) -> Dim:
    kept = [item for item in terms.items() if item[1]]
    if len(kept) > 1:
        plain = True
        for monomial, coefficient in kept:
            for atom in monomial:
                if type(atom) is str:
                    continue
                plain = False
                if type(atom) is Mod and (whole := _recombined(terms, monomial, atom, coefficient)) is not None:
                    return _from_terms(dict(whole.terms), whole.constant + constant)
        if plain:
            kept.sort()  # by the names alone: no monomial is there twice
        else:
            kept.sort(key=monomial_key)
    return Dim(tuple(kept), constant)


def _recombined(terms: dict[Monomial, int], monomial: Monomial, atom: Mod, coefficient: int) -> Dim | None:
    """The terms with c r (e % k) + c r k (e // k) written as c r e, where both are there (r: the other factors).

    Remainders drop multiples of k from what they are of, so e may differ between the two by such a multiple.
    """
    left = list(monomial)
    left.remove(atom)
    rest = tuple(left)
    k = atom.modulus
    found: tuple[Monomial, Dim] | None = None
    if k.terms:
        if len(k.terms) != 1 or k.constant or k.terms[0][1] != 1:
            return None
        partner = tuple(sorted([*left, FloorDiv(atom.value, k), *k.terms[0][0]], key=atom_key))
        if terms.get(partner) == coefficient:
            found = partner, atom.value
    else:
        for other, factor in terms.items():
            if factor != coefficient * k.constant or len(other) != len(rest) + 1:
                continue
            for part in other:
                if type(part) is FloorDiv and part.denominator == k and (part.numerator - atom.value) % k == 0:
                    remaining = list(other)
                    remaining.remove(part)
                    if tuple(remaining) == rest:
                        found = other, part.numerator
    if found is None:
        return None
    partner, whole = found
    kept = {m: c for m, c in terms.items() if c and m not in (monomial, partner)}
    return _from_terms(kept, 0) + whole * (Dim(((rest, coefficient),)) if rest else Dim((), coefficient))


def _atom(atom: Atom) -> Dim:
    return Dim((((atom,), 1),))


def extreme(name: str, values: Iterable[IntLike]) -> Dim:
    """The largest (`"max"`) or smallest (`"min"`) of dims, nested ones flattened; raises `UsageError` 1004 for none."""
    pick = max if name == "max" else min
    flat: dict[Dim, None] = {}
    constants: list[int] = []
    for value in map(dim, values):
        if not value.terms:
            constants.append(value.constant)
        else:
            only = value.terms[0][0][0] if len(value.terms) == 1 and value.terms[0][1] == 1 else None
            if isinstance(only, Extreme) and only.name == name and not value.constant and len(value.terms[0][0]) == 1:
                for argument in only.arguments:
                    if argument.terms:
                        flat[argument] = None
                    else:
                        constants.append(argument.constant)
            else:
                flat[value] = None
    if constants:
        flat[Dim((), pick(constants))] = None
    if not flat:
        raise UsageError(1004, f"{name}() of nothing")
    if len(flat) == 1:
        return next(iter(flat))
    return _atom(Extreme(name, tuple(sorted(flat, key=str))))


def _exact_quotient(numerator: Dim, denominator: Dim) -> Dim | None:
    """numerator / denominator where the denominator is one monomial that divides every term, else None."""
    if denominator.constant or len(denominator.terms) != 1:
        return _polynomial_quotient(numerator, denominator)
    divisor, k = denominator.terms[0]
    if numerator.constant or k <= 0:
        return None if numerator.constant or k <= 0 or numerator.terms else ZERO
    found: dict[Monomial, int] = {}
    for monomial, coefficient in numerator.terms:
        if coefficient % k:
            return None
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        rest = tuple(left)
        found[rest] = found.get(rest, 0) + coefficient // k
    constant = found.pop((), 0)
    return _from_terms(found, constant)


def _polynomial_quotient(numerator: Dim, denominator: Dim) -> Dim | None:
    """numerator / denominator when it is an integer multiple, or a multiple by one monomial, of the denominator."""
    if not denominator.terms:
        return None
    lead, k = denominator.terms[0]
    for monomial, coefficient in numerator.terms:
        left = list(monomial)
        if coefficient % k or any(left.count(a) < lead.count(a) for a in lead):
            continue
        for atom in lead:
            left.remove(atom)
        factor = Dim(((tuple(left), coefficient // k),)) if left else Dim((), coefficient // k)
        if denominator * factor == numerator:
            return factor
    return None


def _may_change(terms: tuple[tuple[Monomial, int], ...], values: Mapping[str, IntLike]) -> bool:
    """Whether a term holds one of the names, or an atom that has to be looked into."""
    for monomial, _ in terms:
        for atom in monomial:
            if type(atom) is not str or atom in values:
                return True
    return False


def _substitute_atom(atom: Atom, values: Mapping[str, IntLike], loads: Callable[[Loaded], Dim] | None) -> Dim:
    if isinstance(atom, str):
        return dim(values[atom]) if atom in values else _atom(atom)
    if isinstance(atom, FloorDiv):
        return atom.numerator.substitute(values, loads) // atom.denominator.substitute(values, loads)
    if isinstance(atom, Mod):
        return atom.value.substitute(values, loads) % atom.modulus.substitute(values, loads)
    if isinstance(atom, Extreme):
        return extreme(atom.name, [a.substitute(values, loads) for a in atom.arguments])
    moved = Loaded(atom.buffer, tuple(i.substitute(values, loads) for i in atom.index))
    return loads(moved) if loads is not None else _atom(moved)


def _simplify_atom(atom: Atom, of: Bounds) -> Dim:
    if isinstance(atom, FloorDiv):
        numerator, denominator = atom.numerator.simplify(of), atom.denominator.simplify(of)
        low, high = numerator.bounds(of)
        k = denominator.value
        if k is not None and not math.isinf(low) and low // k == high // k:
            return Dim((), int(low // k))
        if k is None and low >= 0 and (denominator - numerator).bounds(of)[0] >= 1:
            return ZERO
        return numerator // denominator
    if isinstance(atom, Mod):
        value, modulus = atom.value.simplify(of), atom.modulus.simplify(of)
        low, high = value.bounds(of)
        k = modulus.value
        if k is not None and not math.isinf(low) and low // k == high // k:
            return value - int(low // k) * k
        if k is None and low >= 0 and (modulus - value).bounds(of)[0] >= 1:
            return value
        return value % modulus
    if isinstance(atom, Extreme):
        sign = 1 if atom.name == "max" else -1
        kept: list[Dim] = []
        for candidate in (a.simplify(of) for a in atom.arguments):
            if not any(((other - candidate) * sign).bounds(of)[0] >= 0 for other in kept):
                kept = [other for other in kept if ((candidate - other) * sign).bounds(of)[0] < 0]
                kept.append(candidate)
        return extreme(atom.name, kept)
    if isinstance(atom, Loaded):
        return _atom(Loaded(atom.buffer, tuple(i.simplify(of) for i in atom.index)))
    return _atom(atom)
