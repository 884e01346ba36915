"""The table of converters: ONNX operator name to the function that imports it, families imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias, cast

from tilework.frontends.onnx.node import OnnxNode, Result
from tilework.variants import find_variant, list_variants

Converter: TypeAlias = "Callable[[OnnxNode], Result | tuple[Result | None, ...]]"
"""Adds a node's meaning to the graph and returns its outputs in order (None: not provided, because not wanted)."""

_FAMILIES = "tilework.frontends.onnx.operators"


@cache  # files do not change under a running process
def converters() -> Mapping[str, Converter]:
    """Every converter by the name of its ONNX operator (domain ai.onnx)."""
    found: dict[str, Converter] = {}
    for family in list_variants(_FAMILIES):
        found.update(cast("Mapping[str, Converter]", find_variant(_FAMILIES, family, "CONVERTERS")))
    return found
