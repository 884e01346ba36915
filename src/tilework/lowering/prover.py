"""What can be shown of symbolic integers from the ranges of loops and symbols."""

from __future__ import annotations

import math

from tilework.dims import Bound, Dim, FloorDiv, total
from tilework.loops.program import Loop, LoopProgram, walk


class Prover:
    """Knows the extents of a program's loops and the bounds of its symbols. Inside a loop, 0 <= variable < extent."""

    def __init__(self, program: LoopProgram) -> None:
        self.bounds: dict[str, tuple[Bound, Bound]] = {symbol.name: symbol.bounds for symbol in program.symbols}
        self.extents: dict[str, Dim] = {}
        self.multiples: dict[str, int] = {symbol.name: symbol.multiple for symbol in program.symbols}
        self.proved: dict[Dim, bool] = {}
        self._places: dict[str, int] = {}
        for node in walk(program.body):
            if isinstance(node, Loop):
                self.extents[node.variable] = node.extent
                high = node.extent.bounds(self.bounds)[1]
                self.bounds[node.variable] = (0, max(0, high - 1))

    def nonnegative(self, value: Dim) -> bool:
        """Whether a dim is >= 0 for all values that its names take inside their loops (False: not proved)."""
        if not value.terms:
            return value.constant >= 0
        found = self.proved.get(value)
        if found is None:
            found = self.proved[value] = self._prove(value)
        return found

    def divisor(self, value: Dim) -> int:
        """An integer that divides the value, whatever its names are (0 for the value 0)."""
        found = value.constant
        for monomial, coefficient in value.terms:
            part = coefficient
            for atom in monomial:
                part *= self.multiples.get(atom, 1) if isinstance(atom, str) else 1
            found = math.gcd(found, part)
        return abs(found)

    def _prove(self, value: Dim) -> bool:
        if value.bounds(self.bounds)[0] >= 0:
            return True
        if len(self._places) != len(self.extents):
            self._places = {name: place for place, name in enumerate(self.extents)}
        # Inner variables first: their extents may depend on outer ones.
        last = len(self._places)
        while inner_names := [n for n in value.names() if self._places.get(n, last) < last]:
            name = max(inner_names, key=self._places.__getitem__)
            last = self._places[name]
            slope = Dim()
            plain = True
            for monomial, coefficient in value.terms:
                count = monomial.count(name)
                inner = any(not isinstance(a, str) and name in Dim((((a,), 1),)).names() for a in monomial)
                if inner or count > 1:
                    plain = False
                elif count:
                    rest = list(monomial)
                    rest.remove(name)
                    slope = slope + Dim(((tuple(rest), coefficient),) if rest else (), 0 if rest else coefficient)
            if not plain:
                continue
            low, high = slope.bounds(self.bounds)
            if low >= 0:
                value = value.substitute({name: 0})
            elif high <= 0:
                value = value.substitute({name: self.extents[name] - 1})
            else:
                return False
        value = _without_divisions(value)
        return value.bounds(self.bounds)[0] >= 0


def _without_divisions(value: Dim) -> Dim:
    """A lower bound in which c (n // k) is replaced where k divides c: n - k + 1 <= k (n // k) <= n."""
    parts = [Dim((), value.constant)]
    for monomial, coefficient in value.terms:
        only = monomial[0]
        if len(monomial) == 1 and isinstance(only, FloorDiv) and only.denominator.value:
            k = only.denominator.constant
            if coefficient % k == 0:
                numerator = only.numerator if coefficient < 0 else only.numerator - k + 1
                parts.append(numerator * (coefficient // k))
                continue
        parts.append(Dim(((monomial, coefficient),)))
    return total(parts)
