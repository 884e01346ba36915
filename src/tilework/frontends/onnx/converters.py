"""The table of converters: an ONNX operator to the function that imports it, families imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias, cast

from tilework.frontends.onnx.node import OnnxNode, Result
from tilework.frontends.onnx.schema import STANDARD_DOMAINS
from tilework.variants import find_variant, list_variants

Converter: TypeAlias = "Callable[[OnnxNode], Result | tuple[Result | None, ...]]"
"""Adds a node's meaning to the graph and returns its outputs in order (None: not provided, because not wanted)."""

_FAMILIES = "tilework.frontends.onnx.operators"


def qualified(domain: str, operator: str) -> str:
    """The key of an operator in the table: its name in the domain ai.onnx, `domain::name` in any other."""
    return operator if domain in STANDARD_DOMAINS else f"{domain}::{operator}"


@cache  # files do not change under a running process
def converters() -> Mapping[str, Converter]:
    """Every converter by its operator's key (`qualified`)."""
    found: dict[str, Converter] = {}
    for family in list_variants(_FAMILIES):
        found.update(cast("Mapping[str, Converter]", find_variant(_FAMILIES, family, "CONVERTERS")))
    return found
