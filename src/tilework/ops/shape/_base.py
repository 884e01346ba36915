"""The base of operators that only move elements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tilework.dims import Dim, dim
from tilework.graph.graph import Attribute
from tilework.ops.operator import Operator, PrecisionFacts


class Movement(Operator):
    """An operator that copies elements and computes none: exact in every type, no arithmetic."""

    precision = PrecisionFacts(safe_low=True)


def dims_of(attributes: Mapping[str, Attribute], name: str) -> tuple[Dim, ...]:
    """A tuple of dims among the attributes of an application that has been checked."""
    found: Any = attributes[name]
    return tuple(dim(entry) for entry in found)


def undecided(rooms: Iterable[Dim]) -> tuple[Dim, ...]:
    """Those of some dims (each to be >= 0) that are symbolic, each once; plain symbols never are negative."""
    return tuple(dict.fromkeys(room for room in rooms if not room.is_constant and room.bounds(_natural(room))[0] < 0))


def _natural(room: Dim) -> dict[str, tuple[float, float]]:
    return dict.fromkeys(room.names(), (0, math.inf))
