"""Attributes beyond those that `ops.rules` reads, and attributes of an application that has been checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilework.dims import Dim, dim
from tilework.graph.graph import Attribute
from tilework.ops.rules import Rule


def same_dim(rule: Rule, first: Dim, second: Dim, what: str) -> None:
    """A fault unless two extents are the same expression."""
    if first != second:
        hint = ""
        if not (first.is_constant and second.is_constant):
            hint = "; symbolic dimensions are equal only if they are the same expression"
        rule.fault(1223, f"{what} have extents {first} and {second}, which must be equal{hint}")


def positive(rule: Rule, name: str, count: int) -> tuple[int, ...]:
    """`count` integers of at least 1 (1 each where the attribute is left out, or wrong)."""
    before = len(rule.faults)
    found = rule.integers(name, count, (1,) * count)
    if len(rule.faults) > before:
        return (1,) * count
    if any(value < 1 for value in found):
        rule.fault(1225, f"attribute {name!r} is {found}, its entries must be at least 1")
        return (1,) * count
    return found


def permutation(rule: Rule, name: str, rank: int) -> tuple[int, ...]:
    """Every dimension once (in their order where the attribute is left out, or wrong)."""
    in_order = tuple(range(rank))
    before = len(rule.faults)
    found = rule.axes(name, rank, in_order)
    if len(found) == rank:
        return found
    if len(rule.faults) == before:
        rule.fault(1225, f"attribute {name!r} is {found}, it must name each of {rank} dimensions once")
    return in_order


def padding(rule: Rule, attributes: Mapping[str, Attribute], name: str, count: int) -> tuple[tuple[Dim, Dim], ...]:
    """`count` pairs of low and high padding in elements (0 where the attribute is left out, or wrong)."""
    none = ((Dim(), Dim()),) * count
    if not rule.has(name):
        return none
    found = attributes[name]
    if not isinstance(found, tuple) or len(found) != count:
        rule.fault(1224, f"attribute {name!r} must be a tuple of {count} (low, high) pairs, it is {found!r}")
        return none
    pairs: list[tuple[Dim, Dim]] = []
    for entry in found:
        ends = [as_dim(end) for end in entry] if isinstance(entry, tuple) else []
        if len(ends) != 2 or ends[0] is None or ends[1] is None:
            rule.fault(1224, f"attribute {name!r} must hold (low, high) pairs of integers, it holds {entry!r}")
            return none
        pairs.append((ends[0], ends[1]))
    return tuple(pairs)


def as_dim(value: object) -> Dim | None:
    """An integer or dim as a dim; None for anything else."""
    if isinstance(value, Dim):
        return value
    return dim(value) if isinstance(value, int) and not isinstance(value, bool) else None


# -- of an application that has been checked ---------------------------------------------------------------------------
def integer_of(attributes: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """An integer attribute (`default` where it may be left out)."""
    return int(attributes[name] if default is None else attributes.get(name, default))


def integers_of(attributes: Mapping[str, Any], name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    """An attribute that is a tuple of integers."""
    return tuple(int(value) for value in attributes.get(name, default))


def padding_of(attributes: Mapping[str, Any], name: str, count: int) -> tuple[tuple[Dim, Dim], ...]:
    """An attribute that is pairs of low and high padding."""
    found = attributes.get(name, ((0, 0),) * count)
    return tuple((dim(low), dim(high)) for low, high in found)
