"""Symbolic integers to values: indices, addresses, extents and conditions.

A dim is taken apart once: a constant, a multiple of the lane, scalar products, and what no multiple of the lane can
say. Scalar parts are added from the outermost scope inwards, so that each partial sum stands where its operands exist.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from tilework.dims import Atom, Dim, Extreme, FloorDiv, Loaded, Mod, Monomial, dim
from tilework.fast_dataclass import dataclass, field
from tilework.lowering.registers import Value
from tilework.lowering.state import State

LONG_SUM = 8
"""Terms from which on a sum is worth being factored, and being made once for all threads where it is of symbols."""


@dataclass(frozen=True, eq=False)
class Parts:
    """A dim taken apart: monomials of plain names, others, and every name below the others."""

    dim: Dim
    plain: tuple[tuple[tuple[str, ...], int], ...]
    compound: tuple[tuple[Monomial, int, frozenset[str]], ...]
    inner: frozenset[str]
    names: tuple[str, ...]
    split: dict[str, Dim] = field(default_factory=dict[str, "Dim"])
    """The dim with its lanes apart, by the variable of the lanes."""
    resolved: dict[tuple[object, ...], Resolved] = field(default_factory=dict[tuple[object, ...], "Resolved"])
    """By the variable of the lanes and the numbers that the names stand for."""


@dataclass
class Resolved:
    """constant + lane * (lane number) + scalar terms + terms that vary over the lanes in another way."""

    constant: int
    lane: int
    terms: list[tuple[Monomial, int]]
    vector: list[tuple[Monomial, int]]

    @property
    def varies(self) -> bool:
        """Whether it depends on the lane."""
        return bool(self.lane or self.vector)


def _taken_apart(value: Dim) -> Parts:
    plain: list[tuple[tuple[str, ...], int]] = []
    compound: list[tuple[Monomial, int, frozenset[str]]] = []
    inner: set[str] = set()
    for monomial, coefficient in value.terms:
        names = tuple(a for a in monomial if isinstance(a, str))
        if len(names) == len(monomial):
            plain.append((names, coefficient))
        else:
            compound.append((monomial, coefficient, frozenset(Dim(((monomial, 1),)).names())))
            for atom in monomial:
                if not isinstance(atom, str):
                    inner |= Dim((((atom,), 1),)).names()
    return Parts(value, tuple(plain), tuple(compound), frozenset(inner), tuple(value.names()))


def _names_without_loads(atom: FloorDiv | Mod | Extreme) -> tuple[str, ...] | None:
    """The names that an atom depends on; None where it depends on memory, too."""
    whole = Dim((((atom,), 1),))
    return None if whole.loads() else tuple(whole.names())


class Indices:
    """Turns dims into values of the current function."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.parts: dict[Dim, Parts] = {}
        self._known: dict[tuple[object, ...], bool | None] = {}
        self._names: dict[Atom, tuple[str, ...] | None] = {}
        self._symbols: dict[Atom, int] = {name: place for place, name in enumerate(state.symbols)}
        self.load_element: Callable[[Loaded], Value]
        """Loads an element as an i64 (scalar or one a lane); set by `Memory`."""

    def resolve(self, value: Dim) -> Resolved:
        """The dim in the current place: unrolled variables are numbers, the vectorised one is the lane."""
        parts = self.parts.get(value)
        if parts is None:
            parts = self.parts[value] = _taken_apart(value)
        environment = self.state.environment
        lane = self.state.lane.variable if self.state.lane is not None else None
        if lane is not None and lane in parts.inner:
            split = parts.split.get(lane)
            if split is None:
                split = parts.split[lane] = lanes_apart(self.state, value)
            if split != value:
                return self.resolve(split)
        key = (lane, *[environment.get(n) for n in parts.names])
        found = parts.resolved.get(key)
        if found is None:
            found = parts.resolved[key] = self._resolve(value, parts)
        return found

    def _resolve(self, value: Dim, parts: Parts) -> Resolved:
        environment = self.state.environment
        if parts.compound and not parts.inner.isdisjoint(environment):
            return self.resolve(value.substitute(environment))
        lane_name = self.state.lane.variable if self.state.lane is not None else None
        constant, lane = value.constant, 0
        terms: dict[Monomial, int] = {}
        vector: list[tuple[Monomial, int]] = []
        for names, coefficient in parts.plain:
            rest: tuple[str, ...] = ()
            for name in names:
                if name in environment:
                    coefficient *= environment[name]
                else:
                    rest = (*rest, name)
            if not rest:
                constant += coefficient
            elif lane_name is not None and lane_name in rest:
                if len(rest) == 1:
                    lane += coefficient
                else:
                    vector.append((rest, coefficient))
            else:
                terms[rest] = terms.get(rest, 0) + coefficient
        for monomial, coefficient, names in parts.compound:
            if lane_name in names:
                vector.append((monomial, coefficient))
            else:
                terms[monomial] = terms.get(monomial, 0) + coefficient
        return Resolved(constant, lane, [(m, c) for m, c in terms.items() if c], vector)

    # -- scalars -------------------------------------------------------------------------------------------------------
    def value(self, value: Dim) -> Value:
        """The dim as an i64: a scalar, or one for each lane where it depends on the lane."""
        if not value.terms:
            return self.state.builder.integer(value.constant)
        found = self.resolve(value)
        scalar = self.scalar(found)
        return self.by_lane(found, scalar) if found.varies else scalar

    def scalar(self, found: Resolved) -> Value:
        """What does not depend on the lane, as an i64."""
        builder = self.state.builder
        total: Value | None = None
        for _, part in self.by_depth(found.terms):
            total = part if total is None else builder.add(total, part)
        if total is None:
            return builder.integer(found.constant)
        return builder.add(total, builder.integer(found.constant))

    def by_depth(self, terms: list[tuple[Monomial, int]]) -> list[tuple[int, Value]]:
        """Sums of the terms that come to exist in each scope, outermost first."""
        builder = self.state.builder
        sums: dict[int, Value] = {}

        def add(depth: int, part: Value) -> None:
            have = sums.get(depth)
            sums[depth] = part if have is None else builder.add(have, part)

        above, terms = self._above(terms)
        if above is not None:
            add(above.depth, above)
        for inner, group in self._factored(terms):
            if inner is None:
                for monomial, coefficient in group:
                    product = self.product(monomial)
                    add(product.depth, builder.mul(product, builder.integer(coefficient)))
                continue
            total: Value | None = None
            for _, part in self.by_depth(group):
                total = part if total is None else builder.add(total, part)
            if total is not None:
                product = builder.mul(total, self.atom(inner))
                add(product.depth, product)
        return sorted(sums.items())

    def _above(self, terms: list[tuple[Monomial, int]]) -> tuple[Value | None, list[tuple[Monomial, int]]]:
        """A long sum of symbols, made once before the parallel loop and captured, and the terms left.

        It is added up in the order in which the symbols are declared: where one nest starts behind another, its sum
        goes on from the other's.
        """
        state, function = self.state, self.state.function
        if function.outer is None or len(terms) < LONG_SUM:
            return None, terms
        mine: list[tuple[Monomial, int]] = []
        left: list[tuple[Monomial, int]] = []
        for term in terms:
            (mine if all(atom in self._symbols for atom in term[0]) else left).append(term)
        if len(mine) < LONG_SUM:
            return None, terms
        mine.sort(key=lambda term: [self._symbols[atom] for atom in term[0]])
        state.function = function.outer
        total = self.scalar(Resolved(0, 0, mine, []))
        state.function = function
        return state.capture(function, total), left

    def _factored(self, terms: list[tuple[Monomial, int]]) -> list[tuple[Atom | None, list[tuple[Monomial, int]]]]:
        """Terms of a long sum with the same innermost factor as that and what it multiplies: i m + i n is i (m + n).

        Dims are written out, so a row's step that is a sum of symbols would else be one product each in the loop.
        """
        compound = [monomial for monomial, _ in terms if len(monomial) > 1]
        if len(compound) < LONG_SUM:
            return [(None, terms)]
        uses = Counter(atom for monomial in compound for atom in set(monomial))
        groups: dict[Atom | None, list[tuple[Monomial, int]]] = {None: []}
        for monomial, coefficient in terms:
            inner: Atom | None = None
            if len(monomial) > 1:
                depths = {atom: self._depth(atom) for atom in monomial}
                if None not in depths.values():
                    inner = max(monomial, key=lambda atom: (depths[atom] or 0, uses[atom]))
            if inner is None or uses[inner] < 2:
                groups[None].append((monomial, coefficient))
            else:
                groups.setdefault(inner, []).append((monomial, coefficient))
        found: list[tuple[Atom | None, list[tuple[Monomial, int]]]] = []
        for atom, group in groups.items():
            if atom is None or len(group) < 2:
                groups[None].extend(group if atom is not None else [])
                continue
            rests: list[tuple[Monomial, int]] = []
            for monomial, coefficient in group:
                rest = list(monomial)
                rest.remove(atom)
                rests.append((tuple(rest), coefficient))
            found.append((atom, rests))
        return [(None, groups[None]), *found]

    def _depth(self, atom: Atom) -> int | None:
        """The scope in which a scalar atom comes to exist; None for one that is a vector."""
        if atom in self._symbols:
            return 0
        value = self.atom(atom)
        return None if value.lanes else value.depth

    def product(self, monomial: Monomial) -> Value:
        """The product of atoms, multiplied from the outermost scope inwards."""
        if len(monomial) == 1:
            return self.atom(monomial[0])
        builder = self.state.builder
        values = sorted(map(self.atom, monomial), key=lambda v: (v.lanes > 0, v.depth))
        total = values[0]
        for factor in values[1:]:
            total = builder.mul(total, factor)
        return total

    def by_lane(self, found: Resolved, scalar: Value) -> Value:
        """The whole dim, one i64 for each lane, given its scalar part."""
        builder = self.state.builder
        assert self.state.lane is not None
        width = self.state.lane.width
        total = scalar
        if found.lane:
            total = builder.add(scalar, self.lanes(found.lane))
        for monomial, coefficient in found.vector:
            total = builder.add(total, builder.mul(self.product(monomial), builder.integer(coefficient)))
        return builder.wide(total, width)

    def lanes(self, step: int) -> Value:
        """0, step, 2 step, ... as i64."""
        assert self.state.lane is not None
        width = self.state.lane.width
        self.state.builder.integer(step * (width - 1))  # refuses what is too large
        return self.state.builder.constant("i64", tuple(step * i for i in range(width)), width)

    def atom(self, atom: Atom) -> Value:
        """An atom as an i64."""
        builder = self.state.builder
        if isinstance(atom, str):
            if self.state.lane is not None and atom == self.state.lane.variable:
                return self.lanes(1)
            number = self.state.environment.get(atom)
            return self.state.variable(atom) if number is None else builder.integer(number)
        if isinstance(atom, Loaded):
            return self.load_element(atom)
        names = self._names.get(atom, ())
        if atom not in self._names:
            names = self._names[atom] = _names_without_loads(atom)
        if names is None:
            return self._compound(atom)
        environment, lane = self.state.environment, self.state.lane
        place = ("atom", atom, lane and (lane.variable, lane.width), *[environment.get(n) for n in names])
        known = builder.known(place)
        return known if known is not None else builder.keep(place, self._compound(atom))

    def _compound(self, atom: FloorDiv | Mod | Extreme) -> Value:
        if isinstance(atom, FloorDiv):
            return self.quotient(atom.numerator, atom.denominator)
        if isinstance(atom, Mod):
            return self.remainder(atom.value, atom.modulus)
        name = "smax" if atom.name == "max" else "smin"
        total = self.value(atom.arguments[0])
        for argument in atom.arguments[1:]:
            total = self.state.builder.op(name, "i64", total, self.value(argument))
        return total

    # -- division ------------------------------------------------------------------------------------------------------
    def quotient(self, numerator: Dim, denominator: Dim) -> Value:
        """Floor division; a symbolic divisor below 1 counts as 1, so that nothing traps before it is used."""
        builder = self.state.builder
        a, b, positive = self._operands(numerator, denominator)
        if positive:
            return self._unsigned("udiv", numerator, a, b)
        k = denominator.value
        if k is not None and k & (k - 1) == 0:
            return builder.op("ashr", "i64", a, builder.integer(k.bit_length() - 1))
        quotient = builder.op("sdiv", "i64", a, b)
        rest = builder.op("sub", "i64", a, builder.mul(quotient, b))
        below = builder.compare("slt", rest, builder.integer(0))
        return builder.add(quotient, builder.op("sext", "i64", below))

    def remainder(self, value: Dim, modulus: Dim) -> Value:
        """Remainder with the sign of the modulus, which is positive."""
        builder = self.state.builder
        a, b, positive = self._operands(value, modulus)
        k = modulus.value
        if k is not None and k & (k - 1) == 0:
            return builder.op("and", "i64", a, builder.integer(k - 1))
        if positive:
            return self._unsigned("urem", value, a, b)
        rest = builder.op("srem", "i64", a, b)
        below = builder.compare("slt", rest, builder.integer(0))
        return builder.select(below, builder.op("add", "i64", rest, b), rest)

    def _unsigned(self, name: str, numerator: Dim, a: Value, b: Value) -> Value:
        """A division of what is not negative; vectors of small numbers are divided in 32 bits, which is far cheaper."""
        builder = self.state.builder
        high = numerator.bounds(self.state.prover.bounds)[1]
        if a.lanes and isinstance(b.constant, int) and high < 1 << 31 and b.constant < 1 << 31:
            narrow = builder.op(name, "i32", builder.op("itrunc", "i32", a), builder.constant("i32", b.constant))
            return builder.op("zext", "i64", narrow)
        return builder.op(name, "i64", a, b)

    def _operands(self, a: Dim, b: Dim) -> tuple[Value, Value, bool]:
        builder = self.state.builder
        divisor = self.value(b)
        if b.value is None and not self.state.nonnegative(b - 1):
            divisor = builder.op("smax", "i64", divisor, builder.integer(1))
        return self.value(a), divisor, self.state.nonnegative(a)

    # -- conditions ----------------------------------------------------------------------------------------------------
    def holds(self, guard: Dim) -> Value | bool:
        """Whether guard >= 0: known, a scalar condition, or a mask of the lanes."""
        builder = self.state.builder
        found = self.resolve(guard)
        if not found.terms and not found.varies:
            return found.constant >= 0
        environment = self.state.environment
        key = (guard, *[environment.get(n) for n in self.parts[guard].names])
        if key not in self._known:
            here = guard.substitute(environment)
            sure = self.state.nonnegative(here)
            self._known[key] = True if sure else False if self.state.nonnegative(-here - 1) else None
        known = self._known[key]
        if known is not None:
            return known
        lane = self.state.lane
        place = ("holds", key, (lane.variable, lane.width) if lane is not None else None)
        kept = builder.known(place)
        if kept is not None:
            return kept
        condition = self._condition(found)
        return condition if isinstance(condition, bool) else builder.keep(place, condition)

    def _condition(self, found: Resolved) -> Value | bool:
        builder = self.state.builder
        lane = self.state.lane
        if not found.varies or lane is None:
            return builder.compare("sge", self.scalar(found), builder.integer(0))
        width = lane.width
        if not found.terms and not found.vector:
            mask = tuple(found.constant + found.lane * i >= 0 for i in range(width))
            if all(mask) or not any(mask):
                return mask[0]
            return builder.constant("i1", mask, width)
        if found.vector or abs(found.lane) != 1:
            return builder.compare("sge", self.by_lane(found, self.scalar(found)), builder.integer(0))
        # s + lane >= 0 or s - lane >= 0: compare narrow lane numbers with the clamped scalar.
        scalar = self.scalar(found)
        clamped = builder.op("smin", "i64", scalar, builder.integer(width))
        clamped = builder.op("smax", "i64", clamped, builder.integer(-width))
        narrow = builder.op("itrunc", "i32", clamped)
        lanes = builder.constant("i32", tuple(range(width)), width)
        if found.lane > 0:
            narrow = builder.op("sub", "i32", builder.constant("i32", 0), narrow)
            return builder.compare("sge", lanes, narrow)
        return builder.compare("sle", lanes, narrow)


def lanes_apart(state: State, value: Dim) -> Dim:
    """The dim with divisions and remainders that all lanes share free of the lane.

    With n = g t + e, 0 <= e < g for every lane, and g dividing k: n // k = (g t) // k and n % k = (g t) % k + e.
    """
    assert state.lane is not None
    lane, width = state.lane.variable, state.lane.width
    total = Dim((), value.constant)
    for monomial, coefficient in value.terms:
        product = Dim((), coefficient)
        for atom in monomial:
            product = product * _lanes_apart(state, atom, lane, width)
        total = total + product
    return total


def _lanes_apart(state: State, atom: Atom, lane: str, width: int) -> Dim:
    plain = Dim((((atom,), 1),))
    if not isinstance(atom, (FloorDiv, Mod)):
        return plain
    n, k = (atom.numerator, atom.denominator) if isinstance(atom, FloorDiv) else (atom.value, atom.modulus)
    step = n.coefficient(lane)
    rest = n - dim(lane) * step
    if step <= 0 or lane in rest.names() or lane in k.names():
        return plain
    group = state.prover.divisor(k)
    for _, coefficient in rest.terms:
        group = math.gcd(group, coefficient)
    if group == 0:
        return plain
    extra = rest.constant % group
    if extra + step * (width - 1) >= group:
        return plain
    shared = rest - extra
    return shared // k if isinstance(atom, FloorDiv) else shared % k + (dim(lane) * step + extra)
