"""Operators by name: each is a file in a family's folder, imported on first use."""

from __future__ import annotations

import difflib
import keyword
from functools import cache

from tilework.errors import UsageError
from tilework.ops.operator import Operator
from tilework.variants import find_variant, list_variants

FAMILIES = ("contraction", "control", "effects", "elementwise", "indexing", "reduction", "shape")
"""Folders of `ops/` that hold operators."""


# The two caches remember what the import system would answer again (files do not change under a running process).
@cache
def _homes() -> dict[str, str]:
    """The package of every operator by the operator's name."""
    homes: dict[str, str] = {}
    for family in FAMILIES:
        package = f"tilework.ops.{family}"
        homes.update((file.removesuffix("_"), package) for file in list_variants(package))
    return homes


def operator_names() -> tuple[str, ...]:
    """The name of every operator, sorted; imports none of them."""
    return tuple(sorted(_homes()))


def has_operator(name: str) -> bool:
    """Whether an operator of that name exists."""
    return name in _homes()


@cache
def operator(name: str) -> Operator:
    """The operator called `name`; raises `UsageError` 1227 with the nearest names."""
    package = _homes().get(name)
    if package is None:
        near = difflib.get_close_matches(name, _homes(), 3)
        raise UsageError(1227, f"no operator is called {name!r}", hint=f"nearest: {', '.join(near) or 'none'}")
    file = f"{name}_" if keyword.iskeyword(name) else name
    found = find_variant(package, file, "OPERATOR")
    if not isinstance(found, Operator) or found.name != name:
        raise TypeError(f"{package}.{file} must set OPERATOR to an operator called {name!r}")
    return found
