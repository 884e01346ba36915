"""The base of operators that only move elements."""

from __future__ import annotations

from collections.abc import Mapping
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
