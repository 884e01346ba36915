"""What values a symbolic integer takes over loops, and how large it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilework.dims import Bound, Dim, Extreme, FloorDiv, Loaded, Mod, dim
from tilework.loops.program import Compute, Loop, Node


def extremes(value: Dim, loops: Sequence[Loop]) -> tuple[Dim | None, Dim | None]:
    """The least and greatest value over the loops' ranges, free of their variables; None where it cannot be said."""
    low = high = value
    for loop in reversed(loops):
        last = loop.extent - 1
        for side in (low, high):
            if loop.variable in side.names() and not side.affine_in((loop.variable,)):
                return None, None
        low = low.substitute({loop.variable: dim(0) if low.coefficient(loop.variable) > 0 else last})
        high = high.substitute({loop.variable: last if high.coefficient(loop.variable) > 0 else dim(0)})
    return low, high


def whole_range(value: Dim, loops: Sequence[Loop]) -> tuple[int | None, int | None]:
    """The least and greatest value as integers, from extremes or from intervals."""
    low, high = extremes(value, loops)
    if low is not None and high is not None:
        return low.value, high.value
    bounds: dict[str, tuple[Bound, Bound]] = {}
    for loop in loops:
        bounds[loop.variable] = (0, max(0, loop.extent.bounds(bounds)[1] - 1))
    a, b = value.bounds(bounds)
    if a in (float("-inf"), float("inf")) or b in (float("-inf"), float("inf")):
        return None, None
    return int(a), int(b)


def weight(value: Dim) -> int:
    """How many names and operations a dim holds."""
    total = 0
    for monomial, _ in value.terms:
        for atom in monomial:
            total += 1
            match atom:
                case str():
                    pass
                case FloorDiv(numerator=above, denominator=below) | Mod(value=above, modulus=below):
                    total += weight(above) + weight(below)
                case Extreme(arguments=arguments) | Loaded(index=arguments):
                    total += sum(map(weight, arguments))
    return total


def quotient(value: Dim) -> FloorDiv | None:
    """The value as one quotient by an integer: n // k + m is (n + k m) // k."""
    if len(value.terms) != 1 or value.terms[0][1] != 1 or len(value.terms[0][0]) != 1:
        return None
    atom = value.terms[0][0][0]
    if not isinstance(atom, FloorDiv) or atom.denominator.terms:
        return None
    return FloorDiv(atom.numerator + atom.denominator * value.constant, atom.denominator)


def that_run(loops: tuple[Loop, ...], guard: Dim, leaf: Node) -> tuple[Loop, ...]:
    """Loops without their last iterations, where a statement runs in none of these because of another guard.

    Such a guard names nothing but the loop, and is not itself left out because of others.
    """
    if not isinstance(leaf, Compute) or _last_of(guard, leaf) is not None:
        return loops
    ends: dict[str, int] = {}
    for other in leaf.guards:
        last = _last_of(other, leaf)
        if last is not None:
            name, count = last
            ends[name] = min(count, ends.get(name, count))
    return tuple(
        replace(loop, extent=dim(ends[loop.variable]))
        if loop.variable in ends and 0 < ends[loop.variable] < (loop.extent.value or 0)
        else loop
        for loop in loops
    )


def _last_of(guard: Dim, leaf: Compute) -> tuple[str, int] | None:
    """The loop whose iterations from a number on a guard rules out, and that number; None where it is no such guard."""
    (name, *others) = guard.names() or ("",)
    slope = guard.coefficient(name) if name else 0
    if others or slope >= 0 or guard.loads() or not guard.affine_in((name,)):
        return None
    if leaf.init is not None and name in leaf.reduction:  # the sum starts all the same
        return None
    rest = (guard - dim(name) * slope).value
    return None if rest is None else (name, rest // -slope + 1)
