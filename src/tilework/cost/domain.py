"""Exact counting over boxes of loop variables under guards: points, distinct elements, cache lines.

A box with guards falls apart into independent groups of variables: those that share a guard or a dimension of an index.
Each group is enumerated on its own, so that a product of 2048 x 2048 x 2048 iterations costs three times 2048.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilework.dims import Bound, Dim
from tilework.fast_dataclass import dataclass

Integers = np.ndarray[Any, np.dtype[np.int64]]

LIMIT = 1 << 22
"""Points of one group, or lines of one set, up to which they are enumerated; beyond, a count is an upper bound."""


@dataclass(frozen=True)
class Domain:
    """Every variable from 0 to its extent - 1, where all guards are >= 0. Guards name these variables only."""

    extents: Mapping[str, int]
    guards: tuple[Dim, ...] = ()
    exact: bool = True
    """Whether it leaves out no condition."""


@dataclass(frozen=True)
class Count:
    """A number; an upper bound where it is not exact."""

    value: int
    exact: bool = True


@dataclass(frozen=True)
class Group:
    """Variables that must be enumerated together, with the guards and the dims that they decide."""

    names: tuple[str, ...]
    guards: tuple[Dim, ...]
    dims: tuple[int, ...]


def groups(domain: Domain, dims: Sequence[Dim]) -> tuple[Group, ...]:
    """The groups of a domain when `dims` are asked for; variables in none of them are left out."""
    parent = {name: name for name in domain.extents}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    guards = tuple(g for g in domain.guards if not _always(g, domain.extents))
    for entry in (*guards, *dims):
        names = sorted(entry.names() & parent.keys())
        for other in names[1:]:
            parent[root(other)] = root(names[0])
    found: dict[str, tuple[list[str], list[Dim], list[int]]] = {}
    used = {name for entry in (*guards, *dims) for name in entry.names()}
    for name in domain.extents:
        if name in used:
            found.setdefault(root(name), ([], [], []))[0].append(name)
    lone: tuple[list[str], list[Dim], list[int]] = ([], [], [])
    for guard in guards:
        names = guard.names() & parent.keys()
        (found[root(min(names))] if names else lone)[1].append(guard)
    for number, entry in enumerate(dims):
        names = entry.names() & parent.keys()
        (found[root(min(names))] if names else lone)[2].append(number)
    parts = [*found.values(), *([lone] if lone[1] or lone[2] else [])]
    return tuple(Group(tuple(a), tuple(b), tuple(c)) for a, b, c in parts)


def _always(guard: Dim, extents: Mapping[str, int]) -> bool:
    bounds: dict[str, tuple[Bound, Bound]] = {name: (0, max(0, extent - 1)) for name, extent in extents.items()}
    return guard.bounds(bounds)[0] >= 0


def points(domain: Domain) -> Count:
    """How many points there are."""
    if any(extent <= 0 for extent in domain.extents.values()):
        return Count(0)
    total, exact = 1, domain.exact
    grouped: set[str] = set()
    for group in groups(domain, ()):
        grouped.update(group.names)
        size = math.prod(domain.extents[name] for name in group.names)
        if size > LIMIT:
            exact = False
            total *= size
        else:
            total *= int(_mask(group, domain.extents).sum())
    total *= math.prod(extent for name, extent in domain.extents.items() if name not in grouped)
    return Count(total, exact)


def _grid(names: Sequence[str], extents: Mapping[str, int]) -> dict[str, Any]:
    shape = [1] * len(names)
    grid: dict[str, Any] = {}
    for place, name in enumerate(names):
        shape[place] = extents[name]
        grid[name] = np.arange(extents[name], dtype=np.int64).reshape(shape)
        shape[place] = 1
    return grid


def _mask(group: Group, extents: Mapping[str, int]) -> Any:
    grid = _grid(group.names, extents)
    mask: Any = np.ones([extents[name] for name in group.names], dtype=bool)
    for guard in group.guards:
        mask &= guard.evaluate(grid) >= 0
    return mask


@dataclass(frozen=True)
class Touched:
    """The elements that an access reaches: sums of one value of each part. `parts` is None where they are unknown."""

    elements: int
    exact: bool
    parts: tuple[Integers, ...] | None


NOTHING = Touched(0, True, ())


def touched(domain: Domain, index: Sequence[Dim], shape: Sequence[int]) -> Touched:
    """The distinct elements of a row-major buffer that `index` reaches. Its dims may hold loaded elements (then any
    element along that dimension may be meant, and the count is an upper bound).
    """
    if not points(domain).value:
        return NOTHING
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    parts: list[Integers] = []
    total, exact, known = 1, domain.exact, True
    plain = [Dim() if entry.loads() else entry for entry in index]
    for entry, extent, stride in zip(index, shape, strides, strict=True):
        if entry.loads():
            reach = min(extent, math.prod(domain.extents[n] for n in entry.names() & domain.extents.keys()))
            total, exact = total * reach, False
            parts.append(np.arange(reach, dtype=np.int64) * stride)
    for group in groups(domain, plain):
        if not group.dims:
            continue
        size = math.prod(domain.extents[name] for name in group.names)
        if size > LIMIT:
            bound = math.prod(shape[d] for d in group.dims)
            total, exact, known = total * min(size, bound), False, False
            continue
        grid = _grid(group.names, domain.extents)
        flat: Any = 0
        for d in group.dims:
            flat = flat + plain[d].evaluate(grid) * strides[d]
        mask = _mask(group, domain.extents)
        values = _unique(np.broadcast_to(np.asarray(flat, dtype=np.int64), mask.shape)[mask])
        total *= values.size
        parts.append(values)
    return Touched(total, exact, tuple(parts) if known else None)


def distinct(domain: Domain, dims: Sequence[Dim]) -> Count:
    """How many different tuples the dims take (they may not hold loaded elements)."""
    total, exact = 1, domain.exact
    if not points(domain).value:
        return Count(0)
    for group in groups(domain, dims):
        if not group.dims:
            continue
        size = math.prod(domain.extents[name] for name in group.names)
        if size > LIMIT:
            total, exact = total * size, False
            continue
        grid = _grid(group.names, domain.extents)
        mask = _mask(group, domain.extents)
        total *= _distinct_rows(
            [np.broadcast_to(np.asarray(dims[d].evaluate(grid), dtype=np.int64), mask.shape)[mask] for d in group.dims]
        )
    return Count(total, exact)


def _distinct_rows(columns: Sequence[Integers]) -> int:
    code: Integers | None = None
    for column in columns:
        low = int(column.min()) if column.size else 0
        span = int(column.max()) - low + 1 if column.size else 1
        shifted = column - low
        if code is None:
            code = shifted
        else:
            # numbering what there is keeps the codes small
            code = np.unique(code, return_inverse=True)[1].astype(np.int64) * span + shifted
    return 0 if code is None else int(np.unique(code).size)


def line_set(found: Touched, itemsize: int, line_bytes: int, *, listed: bool = True) -> Integers | Count:
    """The lines that elements lie in, for a buffer that starts at a line: as sorted numbers, or only how many.

    Without `listed` a count is enough. A count is exact where it says so; otherwise it is an upper bound.
    """
    if not found.elements:
        return np.zeros(0, np.int64)
    each = max(1, line_bytes // itemsize)
    if found.parts is None:
        return Count(found.elements, False)
    coarse = [part for part in found.parts if not ((part - part[0]) % each).any()]
    fine = [part for part in found.parts if ((part - part[0]) % each).any()]
    base = sum(int(part[0]) for part in coarse)
    if math.prod(part.size for part in fine) > LIMIT:
        return Count(found.elements, False)
    lines = _unique((_sums(fine) + base) // each)
    steps = sorted(((part - part[0]) // each for part in coarse), key=_gap)
    for number, step in enumerate(steps):
        span = int(lines[-1] - lines[0])
        if lines.size * step.size > LIMIT or (not listed and _gap(step) > span):
            total, sure = lines.size, found.exact
            for rest in steps[number:]:
                sure = sure and _gap(rest) > span
                total, span = total * rest.size, span + int(rest[-1])
            return Count(total, sure)
        summed = (step[:, None] + lines[None, :]).reshape(-1)
        lines = summed if _gap(step) > span else _unique(summed)
    return lines


def _unique(values: Integers) -> Integers:
    """The distinct values, sorted (by sorting: values come in runs, which hashing does not profit from)."""
    ordered = np.sort(values, kind="stable")
    keep = np.ones(ordered.shape, dtype=bool)
    keep[1:] = ordered[1:] != ordered[:-1]
    return ordered[keep]


def _sums(parts: Iterable[Integers]) -> Integers:
    total = np.zeros(1, np.int64)
    for part in parts:
        total = (total[:, None] + part[None, :]).reshape(-1)
    return total


def _gap(part: Integers) -> float:
    """The least distance between two values."""
    return float(np.diff(part).min()) if part.size > 1 else math.inf
