"""Reading what people type: shapes, input files, thread counts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tilework.dims import dim, symbol_bounds
from tilework.errors import CallError, UsageError
from tilework.graph.graph import Graph
from tilework.graph.types import TensorType


def shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """`NAME=1x3x320x320` for each input; raises `UsageError` 1002."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, extents = text.rpartition("=")
        parts = extents.split("x") if extents else []
        if not equals or not name or not all(part.isdecimal() for part in parts):
            raise UsageError(1002, f"--shape {text!r} is not NAME=1x3x320x320")
        found[name] = tuple(int(part) for part in parts)
    return found


def input_files(texts: Iterable[str]) -> dict[str, np.ndarray[Any, Any]]:
    """`NAME=FILE.npy` for each input, read without unpickling anything; raises `UsageError` 1002, `CallError` 1706."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for text in texts:
        name, equals, file = text.rpartition("=")
        if not equals or not name:
            raise UsageError(1002, f"--input {text!r} is not NAME=FILE.npy")
        try:
            found[name] = np.load(Path(file), allow_pickle=False)
        except (OSError, ValueError) as error:
            raise CallError(1706, f"{file} is no readable .npy file: {error}", where=name) from None
    return found


def random_inputs(graph: Graph, given: dict[str, np.ndarray[Any, Any]], seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """The given inputs, and random ones for the rest: free dimensions that no given input fixes are 1.

    Floating types are standard normal, integers are 0 or 1 (valid wherever they are used as an index).
    """
    rng = np.random.default_rng(seed)
    values = {name: max(1, int(low)) for name, (low, _) in symbol_bounds(graph.symbols).items()}
    for symbol in graph.symbols:
        values[symbol.name] = -(-values[symbol.name] // symbol.multiple) * symbol.multiple
    for value in graph.inputs:
        array = given.get(value.name)
        if array is None or not isinstance(value.type, TensorType):
            continue
        for extent, actual in zip(value.type.shape, array.shape, strict=False):
            for name in extent.names():
                if extent == dim(name):
                    values[name] = actual
    found: dict[str, np.ndarray[Any, Any]] = {}
    for value in graph.inputs:
        kind = value.tensor
        if value.name in given:
            found[value.name] = given[value.name]
            continue
        shape = tuple(int(d.evaluate(values)) for d in kind.shape)
        if kind.dtype.is_floating:
            found[value.name] = rng.standard_normal(shape).astype(kind.dtype.numpy)
        else:
            found[value.name] = rng.integers(0, 2, shape).astype(kind.dtype.numpy)
    return found
