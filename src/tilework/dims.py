"""Symbolic integers: extents, indices, guards, offsets and byte counts are all a `Dim`.

A `Dim` is a polynomial with integer coefficients over atoms: names (symbols and loop variables), floor divisions,
remainders, minima, maxima, and elements loaded from a buffer. Arithmetic normalises, so equal polynomials are equal
objects by `==` and `hash`. Where a rule asks for less (quasi-affine in some variables), `affine_in` says so.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilework.errors import TileworkError, UsageError

Bound: TypeAlias = float
"""An integer, or an infinity where nothing bounds the value."""
Bounds: TypeAlias = Mapping[str, tuple[Bound, Bound]]
"""Inclusive lower and upper bound of each name."""


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """`numerator // denominator`, rounded towards minus infinity; the denominator is positive."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"{_operand(self.numerator)} // {_operand(self.denominator)}"


@dataclass(frozen=True, slots=True)
class Mod:
    """`value % modulus`, in `0 .. modulus - 1`; the modulus is positive."""

    value: Dim
    modulus: Dim

    def __str__(self) -> str:
        return f"{_operand(self.value)} % {_operand(self.modulus)}"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The largest (`name == "max"`) or smallest (`"min"`) of some dims."""

    name: str
    arguments: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Loaded:
    """An integer element of a buffer: what makes an index or a guard depend on data."""

    buffer: str
    index: tuple[Dim, ...]

    def __str__(self) -> str:
        return f"{self.buffer}[{', '.join(map(str, self.index))}]"


Atom: TypeAlias = "str | FloorDiv | Mod | Extreme | Loaded"
Monomial: TypeAlias = "tuple[Atom, ...]"
IntLike: TypeAlias = "Dim | int | str"


class Dim:
    """A symbolic integer. Build with `dim(...)` and arithmetic; never mutated.

    `terms` holds (monomial, coefficient) pairs in a fixed order, coefficients never zero; `constant` is the rest.
    """

    __slots__ = ("_hash", "constant", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    constant: int

    def __init__(self, terms: tuple[tuple[Monomial, int], ...] = (), constant: int = 0) -> None:
        self.terms = terms
        self.constant = constant
        self._hash = -1

    # -- identity ----------------------------------------------------------------------------------------------------
    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return not self.terms and self.constant == other
        return isinstance(other, Dim) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash == -1:
            self._hash = hash((self.terms, self.constant)) if self.terms else hash(self.constant)
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return (Dim, (self.terms, self.constant))

    # -- what it is ----------------------------------------------------------------------------------------------------
    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def value(self) -> int | None:
        """The integer it is, or None when it depends on a name."""
        return None if self.terms else self.constant

    def __int__(self) -> int:
        if self.terms:
            raise UsageError(1005, f"{self} is symbolic and has no single value")
        return self.constant

    __index__ = __int__

    def atoms(self) -> set[Atom]:
        """The atoms of the polynomial itself (not those inside divisions, remainders or loads)."""
        return {atom for monomial, _ in self.terms for atom in monomial}

    def names(self) -> set[str]:
        """Every name it depends on, at any depth (buffers of loaded elements excluded)."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    for part in _parts(atom):
                        found |= part.names()
        return found

    def loads(self) -> set[Loaded]:
        """Every loaded element it depends on, at any depth."""
        found: set[Loaded] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    continue
                if isinstance(atom, Loaded):
                    found.add(atom)
                for part in _parts(atom):
                    found |= part.loads()
        return found

    def coefficient(self, name: str) -> int:
        """The coefficient of the plain term `name` (0 where there is none)."""
        for monomial, coefficient in self.terms:
            if len(monomial) == 1 and monomial[0] == name:
                return coefficient
        return 0

    def affine_in(self, variables: Iterable[str]) -> bool:
        """Whether each variable occurs only as (integer x variable): in no product, division, remainder or load."""
        inside = set(variables)
        for monomial, _ in self.terms:
            if len(monomial) == 1 and isinstance(monomial[0], str):
                continue
            for atom in monomial:
                if isinstance(atom, str):
                    if atom in inside:
                        return False
                elif any(part.names() & inside for part in _parts(atom)):
                    return False
        return True

    def quasi_affine_in(self, variables: Iterable[str]) -> bool:
        """As `affine_in`, with division and remainder by a positive integer of a quasi-affine dim allowed."""
        inside = set(variables)
        for monomial, _ in self.terms:
            if not any(
                (atom in inside) if isinstance(atom, str) else any(part.names() & inside for part in _parts(atom))
                for atom in monomial
            ):
                continue
            if len(monomial) != 1:
                return False
            atom = monomial[0]
            if isinstance(atom, FloorDiv):
                if atom.denominator.terms or not atom.numerator.quasi_affine_in(inside):
                    return False
            elif isinstance(atom, Mod):
                if atom.modulus.terms or not atom.value.quasi_affine_in(inside):
                    return False
            elif not isinstance(atom, str):
                return False
        return True

    # -- arithmetic ----------------------------------------------------------------------------------------------------
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
        return self + (-other if isinstance(other, int) else dim(other) * -1)

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
                            product = tuple(sorted(left + right, key=_key))
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

    # -- use -----------------------------------------------------------------------------------------------------------
    def substitute(self, values: Mapping[str, IntLike], loads: Callable[[Loaded], Dim] | None = None) -> Dim:
        """Replace names (and, through `loads`, loaded elements whose own index is already replaced)."""
        if not self.terms:
            return self
        if loads is None and not any(
            atom in values if isinstance(atom, str) else True for monomial, _ in self.terms for atom in monomial
        ):
            return self
        parts: list[Dim] = []
        for term in self.terms:
            monomial, coefficient = term
            if all(type(atom) is str and atom not in values for atom in monomial):
                parts.append(Dim((term,)))
                continue
            product: Dim = Dim((), coefficient)
            for atom in monomial:
                product = product * _substitute_atom(atom, values, loads)
            parts.append(product)
        return _total(parts, self.constant)

    def evaluate(self, values: Mapping[str, Any], load: Callable[[str, tuple[Any, ...]], Any] | None = None) -> Any:
        """Its value, with a number (or an integer array, broadcast) for every name; raises `UsageError` 1005."""
        total: Any = self.constant
        for monomial, coefficient in self.terms:
            product: Any = coefficient
            for atom in monomial:
                product = product * _evaluate_atom(atom, values, load)
            total = total + product
        return total

    def bounds(self, of: Bounds) -> tuple[Bound, Bound]:
        """An interval that holds the value when every name lies in its own; unknown names and loads are unbounded."""
        low: Bound = self.constant
        high: Bound = self.constant
        for monomial, coefficient in self.terms:
            a: Bound = 1
            b: Bound = 1
            for atom in monomial:
                c, d = _atom_bounds(atom, of)
                products = [_times(a, c), _times(a, d), _times(b, c), _times(b, d)]
                a, b = min(products), max(products)
            ends = (_times(a, coefficient), _times(b, coefficient))
            low, high = low + min(ends), high + max(ends)
        return low, high

    def simplify(self, of: Bounds) -> Dim:
        """Drop divisions, remainders, minima and maxima that the bounds decide."""
        if all(isinstance(atom, str) for monomial, _ in self.terms for atom in monomial):
            return self
        total = Dim((), self.constant)
        for monomial, coefficient in self.terms:
            product = Dim((), coefficient)
            for atom in monomial:
                product = product * _simplify_atom(atom, of)
            total = total + product
        return total

    def __str__(self) -> str:
        if not self.terms:
            return str(self.constant)
        text = ""
        for monomial, coefficient in self.terms:
            factors = [_factor(atom, len(monomial) > 1 or coefficient != 1) for atom in monomial]
            magnitude = abs(coefficient)
            body = "*".join([str(magnitude), *factors] if magnitude != 1 else factors)
            text += (" - " if coefficient < 0 else " + ") + body if text else ("-" if coefficient < 0 else "") + body
        if self.constant:
            text += f" - {-self.constant}" if self.constant < 0 else f" + {self.constant}"
        return text

    def __repr__(self) -> str:
        return f"dim({str(self)!r})"


ZERO = Dim()
ONE = Dim((), 1)


def dim(value: IntLike) -> Dim:
    """A `Dim` from an integer or a name."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, str):
        return Dim((((value,), 1),))
    return Dim((), int(value))


def maximum(*values: IntLike) -> Dim:
    """The largest of some dims."""
    return _extreme("max", values)


def minimum(*values: IntLike) -> Dim:
    """The smallest of some dims."""
    return _extreme("min", values)


def loaded(buffer: str, index: Iterable[IntLike]) -> Dim:
    """An integer element of a buffer, as a dim."""
    return _atom(Loaded(buffer, tuple(dim(i) for i in index)))


def product(values: Iterable[IntLike]) -> Dim:
    """The product of dims (1 for none)."""
    total = ONE
    for value in values:
        total = total * value
    return total


def parse_dim(text: str) -> Dim:
    """Read what `str(dim)` prints; raises `UsageError` 1004."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _from_ast(tree.body)
    except TileworkError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(1004, f"{text!r} is not a symbolic integer ({error})") from None


# -- the parts ---------------------------------------------------------------------------------------------------------
def _key(atom: Atom) -> str:
    return atom if isinstance(atom, str) else "~" + str(atom)


def _monomial_key(item: tuple[Monomial, int]) -> tuple[str, ...]:
    monomial = item[0]
    for atom in monomial:
        if type(atom) is not str:
            return tuple(map(_key, monomial))
    return monomial  # type: ignore[return-value] - names are their own keys


def _total(parts: list[Dim], constant: int) -> Dim:
    """The sum of all parts, one by one where remainders may meet their quotients on the way."""
    if any(type(atom) is Mod for part in parts for monomial, _ in part.terms for atom in monomial):
        total = Dim((), constant)
        for part in parts:
            total = total + part
        return total
    merged: dict[Monomial, int] = {}
    for part in parts:
        constant += part.constant
        for monomial, coefficient in part.terms:
            merged[monomial] = merged.get(monomial, 0) + coefficient
    return _from_terms(merged, constant)


def _from_terms(terms: dict[Monomial, int], constant: int) -> Dim:
    kept = [(m, c) for m, c in terms.items() if c]
    if len(kept) > 1:
        for monomial, coefficient in kept:
            for atom in monomial:
                if type(atom) is Mod and (whole := _recombined(terms, monomial, atom, coefficient)) is not None:
                    return _from_terms(dict(whole.terms), whole.constant + constant)
        kept.sort(key=_monomial_key)
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
        partner = tuple(sorted([*left, FloorDiv(atom.value, k), *k.terms[0][0]], key=_key))
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


def _parts(atom: FloorDiv | Mod | Extreme | Loaded) -> tuple[Dim, ...]:
    if isinstance(atom, FloorDiv):
        return (atom.numerator, atom.denominator)
    if isinstance(atom, Mod):
        return (atom.value, atom.modulus)
    return atom.arguments if isinstance(atom, Extreme) else atom.index


def _operand(value: Dim) -> str:
    simple = not value.terms or (
        len(value.terms) == 1
        and not value.constant
        and value.terms[0][1] == 1
        and len(value.terms[0][0]) == 1
        and isinstance(value.terms[0][0][0], (str, Extreme, Loaded))
    )
    return str(value) if simple and value.constant >= 0 else f"({value})"


def _factor(atom: Atom, in_product: bool) -> str:
    return f"({atom})" if in_product and isinstance(atom, (FloorDiv, Mod)) else str(atom)


def _extreme(name: str, values: Iterable[IntLike]) -> Dim:
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


def _substitute_atom(atom: Atom, values: Mapping[str, IntLike], loads: Callable[[Loaded], Dim] | None) -> Dim:
    if isinstance(atom, str):
        return dim(values[atom]) if atom in values else _atom(atom)
    if isinstance(atom, FloorDiv):
        return atom.numerator.substitute(values, loads) // atom.denominator.substitute(values, loads)
    if isinstance(atom, Mod):
        return atom.value.substitute(values, loads) % atom.modulus.substitute(values, loads)
    if isinstance(atom, Extreme):
        return _extreme(atom.name, [a.substitute(values, loads) for a in atom.arguments])
    moved = Loaded(atom.buffer, tuple(i.substitute(values, loads) for i in atom.index))
    return loads(moved) if loads is not None else _atom(moved)


def _evaluate_atom(atom: Atom, values: Mapping[str, Any], load: Callable[[str, tuple[Any, ...]], Any] | None) -> Any:
    if isinstance(atom, str):
        try:
            return values[atom]
        except KeyError:
            raise UsageError(1005, f"{atom} has no value here") from None
    if isinstance(atom, FloorDiv):
        return atom.numerator.evaluate(values, load) // _positive(atom.denominator.evaluate(values, load), atom)
    if isinstance(atom, Mod):
        return atom.value.evaluate(values, load) % _positive(atom.modulus.evaluate(values, load), atom)
    if isinstance(atom, Extreme):
        arguments = [a.evaluate(values, load) for a in atom.arguments]
        if all(isinstance(a, int) for a in arguments):
            return max(arguments) if atom.name == "max" else min(arguments)
        import numpy as np

        pick = np.maximum if atom.name == "max" else np.minimum
        total = arguments[0]
        for argument in arguments[1:]:
            total = pick(total, argument)
        return total
    if load is None:
        raise UsageError(1005, f"{atom} depends on data and has no value here")
    return load(atom.buffer, tuple(i.evaluate(values, load) for i in atom.index))


def _positive(value: Any, atom: FloorDiv | Mod) -> Any:
    if isinstance(value, int) and value <= 0:
        raise UsageError(1004, f"{atom}: the divisor is {value}, it must be positive")
    return value


def _times(a: Bound, b: Bound) -> Bound:
    return 0 if a == 0 or b == 0 else a * b


def _floor_quotient(a: Bound, k: Bound) -> Bound:
    if math.isinf(a):
        return a
    return a // k if not math.isinf(k) else (0 if a >= 0 else -1)


def _atom_bounds(atom: Atom, of: Bounds) -> tuple[Bound, Bound]:
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
        return _extreme(atom.name, kept)
    if isinstance(atom, Loaded):
        return _atom(Loaded(atom.buffer, tuple(i.simplify(of) for i in atom.index)))
    return _atom(atom)


def _from_ast(node: ast.expr) -> Dim:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return dim(value)
        case ast.Name(id=name):
            return dim(name)
        case ast.Attribute():
            return dim(_dotted(node))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_from_ast(operand)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _from_ast(left), _from_ast(right)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv():
                    return a // b
                case ast.Mod():
                    return a % b
                case _:
                    pass
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=arguments, keywords=[]) if arguments:
            return _extreme(name, [_from_ast(a) for a in arguments])
        case ast.Subscript(value=buffer, slice=index):
            entries = index.elts if isinstance(index, ast.Tuple) else [index]
            return loaded(_dotted(buffer), [_from_ast(i) for i in entries])
        case _:
            pass
    raise UsageError(1004, f"{ast.unparse(node)!r} is no part of a symbolic integer")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        part = node.attr
        return f"{_dotted(node.value)}.{part}"
    raise UsageError(1004, f"{ast.unparse(node)!r} is no name")


# -- symbols -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Symbol:
    """A named integer that is known only when the program runs.

    Inclusive bounds (`upper` None: unbounded), a divisor that it is a multiple of, and `measured`: its value is bound
    by the step that produces it (the number of non-zeros), not by an input's shape.
    """

    name: str
    lower: int = 0
    upper: int | None = None
    multiple: int = 1
    measured: bool = False

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.lower, math.inf if self.upper is None else self.upper

    def __str__(self) -> str:
        upper = "" if self.upper is None else self.upper
        text = f"{'measured ' if self.measured else ''}{self.name} in {self.lower}..{upper}"
        return f"{text} step {self.multiple}" if self.multiple != 1 else text


def symbol_bounds(symbols: Iterable[Symbol]) -> dict[str, tuple[Bound, Bound]]:
    """The bounds of each symbol by name, as `Dim.bounds` wants them."""
    return {symbol.name: symbol.bounds for symbol in symbols}
