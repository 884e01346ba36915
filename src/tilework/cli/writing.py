"""What commands write: arrays to files, all or nothing, and arrays in one line."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilework.errors import FileFormatError


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write an .npz file; nobody ever sees a part of it. Raises `FileFormatError` 1901."""
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            np.savez(file, **{name.replace("/", "_"): array for name, array in arrays.items()})  # pyright: ignore[reportArgumentType]
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise FileFormatError(1901, f"{path} cannot be written: {error.strerror}", where=str(path)) from None


def summary(array: np.ndarray[Any, Any]) -> str:
    """Type, shape and the first values of an array."""
    with np.printoptions(threshold=8, edgeitems=3, precision=5, linewidth=200):
        text = " ".join(str(array.ravel()[:64]).split())
    return f"{array.dtype.name}{list(array.shape)} {text}"
