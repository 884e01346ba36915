"""Symbols of a region's own: the parts from which all of its sizes follow, in place of the graph's symbols.

Behind five strided layers an extent is a quotient of a quotient ... of a graph's symbol, and every address of a kernel
would compute it anew. What the extents of a region are made of is all that its kernel needs to know: each such part
gets a name, and its value is computed once a call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from tilework.dims import (
    Atom,
    Bounds,
    Dim,
    Extreme,
    FloorDiv,
    Loaded,
    Mod,
    Monomial,
    Symbol,
    dim,
    maximum,
    minimum,
    product,
    symbol_bounds,
    total,
)
from tilework.dims.atoms import parts_of
from tilework.fast_dataclass import dataclass
from tilework.loops.ranges import weight

SIMPLE = 2
"""Names and operations of a size that stays an expression of others though it could have a name: one division."""


@dataclass(frozen=True, eq=False)
class OwnSymbols:
    """Symbols, the value of each in the symbols that they replace, and every size in them."""

    symbols: tuple[Symbol, ...]
    values: tuple[Dim, ...]
    sizes: dict[Dim, Dim]
    """What a size is in the own symbols."""


def own_symbols(given: Sequence[Dim], derived: Sequence[Dim], symbols: Sequence[Symbol]) -> OwnSymbols:
    """Name the parts of sizes: of those `given` (extents of operands, none of them negative) and those `derived`.

    Parts that are equal get one symbol, and a derived size stays an expression of the others wherever it is one, so
    what follows from that can still be shown. Symbols are numbered in the order in which sizes are listed: lists that
    differ in their parts alone come out the same.
    """
    return _Naming(tuple(given), tuple(derived), symbols).found()


class _Naming:
    def __init__(self, given: tuple[Dim, ...], derived: tuple[Dim, ...], symbols: Sequence[Symbol]) -> None:
        self.given = given
        self.sizes = tuple(dict.fromkeys((*given, *derived)))
        self.bounds: Bounds = symbol_bounds(symbols)
        self.multiples = {symbol.name: symbol.multiple for symbol in symbols}
        self.names: dict[Atom, Dim] = {}
        """Each part that has a symbol: what it is in symbols (the symbol, less what was added to the part)."""
        self.parts: dict[str, Dim] = {}
        """Each symbol's value."""
        self.known: dict[Dim, Dim | None] = {}

    def found(self) -> OwnSymbols:
        self._choose()
        expressed = [self._expressed(size) for size in self.sizes]
        groups = _together(expressed)
        order: dict[tuple[str, ...], None] = {}
        for size in expressed:
            order.update((groups[name], None) for name in _names_in_order(size))
        final = {group: f"d{number}" for number, group in enumerate(order)}
        renamed = _Regrouping({name: (group, final[group]) for name, group in groups.items() if group in final})
        values = tuple(product(self.parts[name] for name in group) for group in order)
        own = tuple(self._symbol(name, value) for name, value in zip(final.values(), values, strict=True))
        return OwnSymbols(own, values, {a: renamed(b) for a, b in zip(self.sizes, expressed, strict=True)})

    def _choose(self) -> None:
        """Give parts symbols, the lightest first, so that heavier ones may turn out to follow from them."""
        operands = {atom for size in self.given for atom in size.atoms()}
        seen: dict[Atom, int] = {}
        for size in self.sizes:
            for monomial, _ in size.terms:
                for atom in monomial:
                    seen.setdefault(atom, len(seen))
        waiting = [(weight(_alone(atom)), place, atom) for atom, place in seen.items()]
        heapify(waiting)
        while waiting:
            _, _, atom = heappop(waiting)
            if atom in self.names:
                continue
            other = self._rebuilt(atom)
            if other is not None and (atom not in operands or weight(other) <= SIMPLE):
                continue
            least = _alone(atom).bounds(self.bounds)[0]
            if isinstance(atom, str) or not math.isinf(least):
                self._name(atom, least)
                continue
            for inner in _inner(atom):
                if inner not in seen:
                    seen[inner] = len(seen)
                    heappush(waiting, (weight(_alone(inner)), seen[inner], inner))

    def _name(self, atom: Atom, least: float) -> None:
        """A symbol for a part: for the whole extent that it is with an integer added, so that it is no less than 0."""
        added = next((size.constant for size in self.given if size - size.constant == _alone(atom)), None)
        if added is None:
            added = next((s.constant for s in self.sizes if s - s.constant == _alone(atom) and s.constant >= -least), 0)
            added = max(added, int(-min(least, 0))) if not math.isinf(least) else added
        name = f"p{len(self.parts)}"
        self.parts[name] = _alone(atom) + added
        self.names[atom] = dim(name) - added
        self.known.clear()

    def _symbol(self, name: str, value: Dim) -> Symbol:
        low, high = value.bounds(self.bounds)
        return Symbol(
            name, 0 if math.isinf(low) else max(0, int(low)), None if math.isinf(high) else max(0, int(high)),
            self._divisor(value),
        )  # fmt: skip

    def _divisor(self, value: Dim) -> int:
        found = value.constant
        for monomial, coefficient in value.terms:
            for atom in monomial:
                coefficient *= self.multiples.get(atom, 1) if isinstance(atom, str) else 1
            found = math.gcd(found, coefficient)
        return max(1, abs(found))

    # -- sizes in parts that have symbols ------------------------------------------------------------------------------
    def _expressed(self, size: Dim) -> Dim:
        found = self._rewritten(size)
        assert found is not None, f"{size} is made of names that are no symbols"
        return found

    def _rewritten(self, size: Dim) -> Dim | None:
        """The size in symbols; None where a name in it is part of nothing that has one."""
        if not size.terms:
            return size
        if size not in self.known:
            terms: list[Dim] = [Dim((), size.constant)]
            self.known[size] = None
            for monomial, coefficient in size.terms:
                factors = [self.names.get(atom) or self._rebuilt(atom) for atom in monomial]
                if any(factor is None for factor in factors):
                    return None
                terms.append(product(factor for factor in factors if factor is not None) * coefficient)
            self.known[size] = total(terms)
        return self.known[size]

    def _rebuilt(self, atom: Atom) -> Dim | None:
        """A part in symbols, from what is inside it."""
        if isinstance(atom, (str, Loaded)):
            return None
        inner = [self._rewritten(value) for value in parts_of(atom)]
        ready = [value for value in inner if value is not None]
        return _combined(atom, ready) if len(ready) == len(inner) else None


def _together(sizes: Iterable[Dim]) -> dict[str, tuple[str, ...]]:
    """For each name those with which it always stands in one product, itself among them, in order."""
    products: dict[str, list[Monomial]] = {}
    for monomial in dict.fromkeys(m for size in sizes for m in _monomials(size)):
        for atom in monomial:
            if isinstance(atom, str):
                products.setdefault(atom, []).append(monomial)
    groups: dict[tuple[Monomial, ...], list[str]] = {}
    for name, where in products.items():
        groups.setdefault(tuple(where), []).append(name)
    found: dict[str, tuple[str, ...]] = {}
    for where, names in groups.items():
        once = all(monomial.count(name) == 1 for monomial in where for name in names)
        for name in names:
            found[name] = tuple(names) if once else (name,)
    return found


class _Regrouping:
    """Rewrites sizes with one name for each group of names that stand together."""

    def __init__(self, names: dict[str, tuple[tuple[str, ...], str]]) -> None:
        self.names = names

    def __call__(self, size: Dim) -> Dim:
        terms = [Dim((), size.constant)]
        for monomial, coefficient in size.terms:
            factors: list[Dim] = []
            for atom in monomial:
                if not isinstance(atom, str):
                    factors.append(_combined(atom, [self(value) for value in parts_of(atom)]))
                elif self.names[atom][0][0] == atom:  # the first stands for all
                    factors.append(dim(self.names[atom][1]))
            terms.append(product(factors) * coefficient)
        return total(terms)


def _monomials(size: Dim) -> Iterator[Monomial]:
    """The products of a size, at any depth."""
    for monomial, _ in size.terms:
        yield monomial
        for atom in monomial:
            if not isinstance(atom, str):
                for value in parts_of(atom):
                    yield from _monomials(value)


def _names_in_order(size: Dim) -> Iterator[str]:
    for monomial in _monomials(size):
        yield from (atom for atom in monomial if isinstance(atom, str))


def _inner(atom: Atom) -> Iterator[Atom]:
    for value in () if isinstance(atom, str) else parts_of(atom):
        for monomial, _ in value.terms:
            yield from monomial


def _alone(atom: Atom) -> Dim:
    return Dim((((atom,), 1),))


def _combined(atom: FloorDiv | Mod | Extreme | Loaded, operands: Sequence[Dim]) -> Dim:
    match atom:
        case FloorDiv():
            return operands[0] // operands[1]
        case Mod():
            return operands[0] % operands[1]
        case Extreme(name=name):
            return maximum(*operands) if name == "max" else minimum(*operands)
        case Loaded():
            raise AssertionError("a size is made of no data")
