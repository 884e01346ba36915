"""Reading what people type: shapes, input files; and making the inputs that they do not give."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from tilework.dims import Dim, Symbol, dim, symbol_bounds
from tilework.errors import FileFormatError, OutOfMemoryError, UsageError
from tilework.graph.types import TensorType

Array: TypeAlias = "np.ndarray[Any, Any]"


class Value(Protocol):
    """An input of a model."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> object: ...


class Takes(Protocol):
    """What says which inputs a model has: a graph, a plan, the ports of an executable."""

    @property
    def inputs(self) -> Sequence[Value]: ...
    @property
    def symbols(self) -> Sequence[Symbol]: ...


_SHAPE = re.compile(r"(?:[0-9]{1,18}(?:x[0-9]{1,18})*)?")


def shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """`NAME=1x3x320x320` for each input (`NAME=` for a scalar); raises `UsageError` 1002."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, extents = text.rpartition("=")
        if not equals or not name or not _SHAPE.fullmatch(extents):
            raise UsageError(1002, f"--shape {text!r} is not NAME=1x3x320x320", where="--shape")
        if name in found:
            raise UsageError(1002, f"--shape is given twice for {name!r}", where="--shape", hint="give one of them")
        found[name] = tuple(int(part) for part in extents.split("x")) if extents else ()
    return found


def input_paths(texts: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Each `NAME=FILE.npy` cut at its equals signs (names and paths may hold some); raises `UsageError` 1002."""
    found: list[tuple[str, ...]] = []
    for text in texts:
        parts = tuple(text.split("="))
        if len(parts) < 2 or not parts[0] or not parts[-1]:
            raise UsageError(1002, f"--input {text!r} is not NAME=FILE.npy", where="--input")
        found.append(parts)
    return tuple(found)


def input_files(given: Iterable[tuple[str, ...]], graph: Takes) -> dict[str, Array]:
    """The arrays of `input_paths`, read without unpickling anything.

    Raises `UsageError` 1001 for an input that the graph does not have, 1002 for one given twice, and `FileFormatError`
    1902 for a file that cannot be read.
    """
    types: dict[str, object] = {value.name: value.type for value in graph.inputs}
    found: dict[str, Array] = {}
    for parts in given:
        name, path = named_path(parts, types)
        if name not in types:
            hint = f"its inputs are: {', '.join(types) or 'none'}"
            raise UsageError(1001, f"the model has no input {name!r}", where="--input", hint=hint)
        if name in found:
            raise UsageError(1002, f"--input is given twice for {name!r}", where="--input", hint="give one of them")
        found[name] = _read(Path(path), name)
        kind = types[name]
        if found[name].dtype.kind == "V" and isinstance(kind, TensorType):  # a type that .npy files have no word for
            found[name] = _as_stored(found[name], kind)
    return found


def named_path(parts: tuple[str, ...], names: Collection[str]) -> tuple[str, str]:
    """The name (the longest among `names` where one is) and the path of one of `input_paths`."""
    cut = next((cut for cut in range(len(parts) - 1, 0, -1) if "=".join(parts[:cut]) in names), 1)
    return "=".join(parts[:cut]), "=".join(parts[cut:])


def _read(path: Path, name: str) -> Array:
    try:
        found: object = np.load(path, allow_pickle=False)
    except Exception as error:  # noqa: BLE001 - numpy raises whatever its header parser does
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise FileFormatError(1902, f"cannot read {str(path)!r} as a .npy file: {reason}", where=name) from None
    if not isinstance(found, np.ndarray):
        raise FileFormatError(
            1902, f"{str(path)!r} is an archive of arrays, not one", where=name, hint="save one of them with numpy.save"
        )
    return cast("Array", found)


def _as_stored(array: Array, kind: TensorType) -> Array:
    return array.view(kind.dtype.numpy) if array.dtype.itemsize == kind.dtype.itemsize else array


def sizes_of(graph: Takes, given: Mapping[str, Array]) -> dict[str, int]:
    """The size of each free dimension of the inputs: what a given array says, else 1, or the least the model allows."""
    values = {name: max(1, int(low)) for name, (low, _) in symbol_bounds(graph.symbols).items()}
    for symbol in graph.symbols:
        values[symbol.name] = -(-values[symbol.name] // symbol.multiple) * symbol.multiple
    measured = {symbol.name for symbol in graph.symbols if symbol.measured}
    for value in graph.inputs:
        for name in (name for extent in _extents(value) for name in extent.names()):
            values.setdefault(name, 1)  # what an executable that compiles for each call says of no symbol
        array = given.get(value.name)
        if array is None:
            continue
        for extent, actual in zip(_extents(value), array.shape, strict=False):
            for name in extent.names():
                if extent == dim(name):
                    values[name] = actual
    return {name: value for name, value in values.items() if name not in measured}


def random_inputs(graph: Takes, given: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """The given inputs, and random ones for the rest: free dimensions that no given input fixes are 1.

    Floating types are standard normal, integers are 0 or 1 (valid wherever they are used as an index). Raises
    `UsageError` 1002 where these sizes make a shape negative, `OutOfMemoryError` 1710 where there is no memory.
    """
    rng = np.random.default_rng(seed)
    values = sizes_of(graph, given)
    found: dict[str, Array] = {}
    for value in graph.inputs:
        if value.name in given:
            found[value.name] = given[value.name]
            continue
        if not isinstance(value.type, TensorType):
            text = f"no random {value.name!r} can be made: it is {value.type}"
            raise UsageError(1002, text, where="--input", hint="give it, or call the model from Python")
        shape = tuple(int(d.evaluate(values)) for d in value.type.shape)
        if min(shape, default=0) < 0:
            raise UsageError(
                1002, f"input {value.name} would have the shape {shape}", where=value.name,
                hint=f"give --shape {value.name}=... or --input {value.name}=FILE.npy",
            )  # fmt: skip
        found[value.name] = _random(rng, value.name, shape, value.type)
    return found


def _extents(value: Value) -> tuple[Dim, ...]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _random(rng: np.random.Generator, name: str, shape: tuple[int, ...], kind: TensorType) -> Array:
    try:
        values = rng.standard_normal(shape) if kind.dtype.is_floating else rng.integers(0, 2, shape)
        return values.astype(kind.dtype.numpy)
    except (MemoryError, ValueError) as problem:
        text = f"random values of shape {shape} take {math.prod(shape) * 8} bytes: {problem}"
        raise OutOfMemoryError(1710, text, where=name, hint="give a smaller --shape") from None
