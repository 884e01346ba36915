"""Arrays that go from one process to another in a file, and values of outputs as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from tilework.dtypes import dtype_named, dtype_of
from tilework.errors import TileworkError

Array: TypeAlias = "np.ndarray[Any, Any]"


def save(path: Path, arrays: Mapping[str, Array]) -> list[list[str]]:
    """Write arrays to an .npz file; returns what `load` needs beside it: the name and element type of each.

    Raises `OSError`.
    """
    plain: dict[str, Any] = {}
    described: list[list[str]] = []
    for number, (name, array) in enumerate(arrays.items()):
        builtin = array.dtype.kind != "V"
        described.append([name, "" if builtin else dtype_of(array).name])
        # names are no file names, and .npy files have no word for types such as bfloat16
        plain[str(number)] = array if builtin else array.view(f"V{array.dtype.itemsize}")
    np.savez(path, **plain)
    return described


def load(path: Path, described: Sequence[Sequence[str]]) -> dict[str, Array]:
    """The arrays that `save` wrote, by name."""
    found: dict[str, Array] = {}
    with np.load(path, allow_pickle=False) as stored:
        for number, (name, kind) in enumerate(described):
            array = stored[str(number)]
            found[name] = array.view(dtype_named(kind).numpy) if kind else array
    return found


def flattened(name: str, value: object) -> Iterator[tuple[str, Array]]:
    """An output as arrays: those of a sequence are `name[0]`, ..., those of a map `name{key}`; text as NumPy's text."""
    if isinstance(value, (list, tuple)):
        for number, one in enumerate(cast("Sequence[object]", value)):
            yield from flattened(f"{name}[{number}]", one)
    elif isinstance(value, dict):
        found = cast("dict[object, object]", value)
        for key in sorted(found, key=str):
            yield from flattened(f"{name}{{{key}}}", found[key])
    elif value is not None:
        array: Array = np.asarray(value)
        if array.dtype.kind == "O":
            array = array.astype(np.str_)
        elif array.dtype.kind == "V":
            array = _known(array)
        yield name, array


def _known(array: Array) -> Array:
    """An array of a type that `save` can name; of others their values in double precision."""
    try:
        dtype_of(array)
    except TileworkError:
        return array.astype(np.float64)
    return array
