"""What there is to see in a polynomial over atoms, and what follows from it by looking alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tilework.dims.atoms import Atom, FloorDiv, Loaded, Mod, Monomial, factor_text, parts_of
from tilework.dims.evaluation import evaluate_atom
from tilework.dims.intervals import Bound, Bounds, atom_bounds, times
from tilework.errors import UsageError


class Terms:
    """A sum of products: `terms` holds (monomial, coefficient) pairs in a fixed order, coefficients never zero;
    `constant` is the rest.
    """

    __slots__ = ("_hash", "_names", "_text", "constant", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    constant: int

    def __init__(self, terms: tuple[tuple[Monomial, int], ...] = (), constant: int = 0) -> None:
        self.terms = terms
        self.constant = constant
        self._hash = -1
        self._names: frozenset[str] | None = None
        self._text = ""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, int):
            return not self.terms and self.constant == other
        return isinstance(other, Terms) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash == -1:
            self._hash = hash((self.terms, self.constant)) if self.terms else hash(self.constant)
        return self._hash

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

    def names(self) -> frozenset[str]:
        """Every name it depends on, at any depth (buffers of loaded elements excluded)."""
        if self._names is None:
            found: set[str] = set()
            for monomial, _ in self.terms:
                for atom in monomial:
                    if type(atom) is str:
                        found.add(atom)
                    else:
                        for part in parts_of(atom):  # type: ignore[arg-type] - str was looked at
                            found |= part.names()
            self._names = frozenset(found)
        return self._names

    def loads(self) -> set[Loaded]:
        """Every loaded element it depends on, at any depth."""
        found: set[Loaded] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if type(atom) is str:
                    continue
                if isinstance(atom, Loaded):
                    found.add(atom)
                for part in parts_of(atom):  # type: ignore[arg-type] - str was looked at
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
                elif any(part.names() & inside for part in parts_of(atom)):
                    return False
        return True

    def quasi_affine_in(self, variables: Iterable[str]) -> bool:
        """As `affine_in`, with division and remainder by a positive integer of a quasi-affine dim allowed."""
        inside = set(variables)
        for monomial, _ in self.terms:
            if not any(
                (atom in inside) if isinstance(atom, str) else any(part.names() & inside for part in parts_of(atom))
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

    def evaluate(self, values: Mapping[str, Any], load: Callable[[str, tuple[Any, ...]], Any] | None = None) -> Any:
        """Its value, with a number (or an integer array, broadcast) for every name; raises `UsageError` 1005."""
        total: Any = self.constant
        for monomial, coefficient in self.terms:
            product: Any = coefficient
            for atom in monomial:
                product = product * evaluate_atom(atom, values, load)
            total = total + product
        return total

    def bounds(self, of: Bounds) -> tuple[Bound, Bound]:
        """An interval that holds the value when every name lies in its own; unknown names and loads are unbounded."""
        low: Bound = self.constant
        high: Bound = self.constant
        for monomial, coefficient in self.terms:
            a, b = atom_bounds(monomial[0], of)
            for atom in monomial[1:]:
                c, d = atom_bounds(atom, of)
                products = [times(a, c), times(a, d), times(b, c), times(b, d)]
                a, b = min(products), max(products)
            ends = (times(a, coefficient), times(b, coefficient))
            low, high = low + min(ends), high + max(ends)
        return low, high

    def __str__(self) -> str:
        if not self.terms:
            return str(self.constant)
        if not self._text:
            text = ""
            for monomial, coefficient in self.terms:
                factors = [factor_text(atom, len(monomial) > 1 or coefficient != 1) for atom in monomial]
                magnitude = abs(coefficient)
                body = "*".join([str(magnitude), *factors] if magnitude != 1 else factors)
                sign = "-" if coefficient < 0 else "+" if text else ""
                text += f" {sign} {body}" if text else sign + body
            if self.constant:
                text += f" - {-self.constant}" if self.constant < 0 else f" + {self.constant}"
            self._text = text
        return self._text

    def __repr__(self) -> str:
        return f"dim({str(self)!r})"
