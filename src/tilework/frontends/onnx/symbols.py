"""The symbols of an imported model: names from its free dimensions, bounds from what its operators need."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import replace

from tilework.dims import Bound, Dim, Extreme, FloorDiv, Symbol, dim

LARGEST = 1 << 31
"""What is looked up to for a size that is large enough."""
_RESERVED = frozenset({"max", "min", "measured", "in", "step"})


class NearPositions:
    """How far from an end of a free dimension a constant position of a slice may be to be taken to lie inside it.

    Farther ones are clamped, which is right for every extent, but makes extents of minima and maxima. `passed_over`
    becomes true where a wider limit (up to `WIDEST`) would have made the extents simpler.
    """

    WIDEST = 64

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.passed_over = False

    def is_near(self, distance: int) -> bool:
        """Whether a position this many elements from an end is taken to lie inside."""
        if distance <= self.limit:
            return True
        self.passed_over = self.passed_over or distance <= self.WIDEST
        return False


def _grows(value: Dim) -> bool:
    """Whether a value never falls as its symbols grow: sums of symbols and of their quotients."""
    for monomial, factor in value.terms:
        (atom, *more) = monomial
        if more or factor < 0:
            return False
        if isinstance(atom, FloorDiv):
            if not (atom.denominator.is_constant and _grows(atom.numerator)):
                return False
        elif isinstance(atom, Extreme):
            if not all(map(_grows, atom.arguments)):
                return False
        elif not isinstance(atom, str):
            return False
    return True


class SymbolTable:
    """Names, bounds and original spellings of a model's symbols; bounds only ever become tighter.

    A bound that an operator needs (an image at least as large as the window) becomes part of the symbol, so that a
    call outside it is refused at the door.
    """

    def __init__(
        self,
        given: Mapping[str, int | str] | None = None,
        bounds: Mapping[str, tuple[Bound, Bound]] | None = None,
        near: NearPositions | None = None,
    ) -> None:
        """`given`: by key, the extent that a free dimension has, or the key of another that it equals.

        `bounds`: what is known of symbols by name before they appear. `near`: what slices may assume.
        """
        self.near = near or NearPositions(NearPositions.WIDEST)
        self._given = dict(given or {})
        self._known = dict(bounds or {})
        self._symbols: dict[str, Symbol] = {}
        self._by_key: dict[str, Dim] = {}
        self._keys: dict[str, str] = {}
        self._bounds: dict[str, tuple[Bound, Bound]] = {}

    @property
    def bounds(self) -> Mapping[str, tuple[Bound, Bound]]:
        """The bounds of every symbol by name."""
        return self._bounds

    @property
    def symbols(self) -> Mapping[str, Symbol]:
        return self._symbols

    def key(self, name: str) -> str:
        """The key of the free dimension that a symbol stands for."""
        return self._keys[name]

    def free(self, key: str, stem: str) -> Dim:
        """The free dimension with a key: always the same symbol, called like `stem` as far as that is an identifier."""
        seen = {key}
        while key in self._given:
            value = self._given[key]
            if isinstance(value, int):
                return dim(value)
            if value in seen:
                break
            key, stem = value, value
            seen.add(key)
        found = self._by_key.get(key)
        if found is None:
            name = self._name(stem)
            low, high = self._known.get(name, (0, math.inf))
            self._set(Symbol(name, int(low), None if high == math.inf else int(high)))
            self._keys[name] = key
            found = self._by_key[key] = dim(name)
        return found

    def measured(self, stem: str, upper: int | None = None) -> Dim:
        """A new symbol whose value a step of the run measures."""
        name = self._name(stem)
        low, high = self._known.get(name, (0, math.inf))
        high = high if upper is None else min(high, upper)
        self._set(Symbol(name, int(low), None if high == math.inf else int(high), measured=True))
        return dim(name)

    def is_measured(self, name: str) -> bool:
        return name in self._symbols and self._symbols[name].measured

    @property
    def has_free(self) -> bool:
        """Whether some dimension of an input is free."""
        return bool(self._by_key)

    def _name(self, text: str) -> str:
        stem = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_") or "dim"
        if stem[0].isdigit() or keyword.iskeyword(stem) or stem in _RESERVED:
            stem = f"dim_{stem}"
        name, count = stem, 1
        while name in self._symbols:
            count += 1
            name = f"{stem}_{count}"
        return name

    def simplify(self, value: Dim) -> Dim:
        """The dim with what the bounds decide left out."""
        return value if value.is_constant else value.simplify(self._bounds)

    def is_positive(self, value: Dim) -> bool:
        """Whether it is at least 1 whatever the symbols are."""
        return value.bounds(self._bounds)[0] >= 1

    def decide_at_least(self, value: Dim, least: int) -> bool | None:
        """Whether value >= least: always, never, or (None) it depends."""
        low, high = value.bounds(self._bounds)
        return True if low >= least else False if high < least else None

    def may_assume_near(self, extent: Dim, distance: int) -> bool:
        """Whether a slice may take a free extent, which is not known to be, to be at least this many elements."""
        if self.decide_at_least(extent, distance) is not None or any(map(self.is_measured, extent.names())):
            return False
        return self.near.is_near(distance)

    def require_at_least(self, value: Dim, least: int, *, measured: bool = False) -> bool:
        """Tighten a symbol so that value >= least always holds; False where it never does or no one bound says so.

        Measured symbols get no lower bounds unless `measured`: where a size is measured it is not known whether what
        needs the bound runs at all (in a branch, or after other trips of a loop), so that is checked there.
        """
        decided = self.decide_at_least(value, least)
        if decided is not None:
            return decided
        if len(value.terms) != 1:
            return self._require_growing(value, least, measured)
        (monomial, factor), rest = value.terms[0], least - value.constant
        if len(monomial) != 1 or not isinstance(monomial[0], str) or monomial[0] not in self._symbols:
            return self._require_growing(value, least, measured)
        old = self._symbols[monomial[0]]
        if factor > 0 and old.measured and not measured:
            return False
        if factor > 0:
            self._set(replace(old, lower=max(old.lower, -(-rest // factor))))
        else:
            most = rest // factor  # factor x s >= rest with a negative factor: s <= floor(rest / factor)
            upper = most if old.upper is None else min(old.upper, most)
            self._set(replace(old, upper=upper))
        return True

    def _require_growing(self, value: Dim, least: int, measured: bool) -> bool:
        """As `require_at_least`, for a value of one symbol that never falls as the symbol grows (quotients of it)."""
        (name, *more) = value.names() or {""}
        if more or name not in self._symbols or not _grows(value) or (self.is_measured(name) and not measured):
            return False
        old = self._symbols[name]
        low, high = old.lower, LARGEST if old.upper is None else old.upper
        if int(value.evaluate({name: high})) < least:
            return False
        while low < high:  # the least size that does
            middle = (low + high) // 2
            low, high = (low, middle) if int(value.evaluate({name: middle})) >= least else (middle + 1, high)
        self._set(replace(old, lower=low))
        return True

    def _set(self, symbol: Symbol) -> None:
        self._symbols[symbol.name] = symbol
        self._bounds[symbol.name] = symbol.bounds
