"""How operators that scatter combine what is there with an update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.ops.operator import Array, Counts
from tilework.ops.rules import REAL, Rule
from tilework.ops.values import larger, smaller

REDUCERS = ("replace", "sum", "maximum", "minimum", "product")


def check_reducer(rule: Rule, operand: TensorType) -> None:
    """A fault unless the attribute `reducer` (replace where left out) is one that the operand's elements have."""
    how = rule.choice("reducer", REDUCERS, "replace")
    if how != "replace":
        rule.kind(operand, (*REAL, "boolean") if how in ("maximum", "minimum") else REAL)


def combined(attributes: Mapping[str, Any], old: Array, update: Array) -> Array:
    """What the reference puts in the place of `old`."""
    combine = {
        "sum": np.add, "product": np.multiply, "maximum": larger, "minimum": smaller,
    }.get(attributes.get("reducer", "replace"))  # fmt: skip
    with np.errstate(all="ignore"):
        return update if combine is None else combine(old, update)


def update_counts(traffic: Counts, updates: ValueType, attributes: Mapping[str, Attribute]) -> Counts:
    """One operation an update unless it replaces."""
    if attributes.get("reducer", "replace") == "replace" or not isinstance(updates, TensorType):
        return traffic
    return Counts(updates.size, traffic.bytes)
