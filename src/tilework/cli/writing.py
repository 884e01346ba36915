"""What commands write: arrays and bytes to files, all or nothing, and arrays in one line."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from tilework.cache.files import writing
from tilework.errors import FileFormatError


def check_folder(path: Path) -> None:
    """Raise `FileFormatError` 1901 where a file cannot be made, before anything is computed for it."""
    if path.is_dir():
        raise FileFormatError(1901, f"{path} cannot be written: it is a folder", where=str(path))
    if not path.parent.is_dir():
        raise FileFormatError(1901, f"{path} cannot be written: there is no folder {path.parent}", where=str(path))


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write an .npz file with these arrays by name; nobody ever sees a part of it. Raises `FileFormatError` 1901.

    What is no file, and links: as `tilework.cache.files.writing` does.
    """
    try:
        with writing(path, 0o666) as file:
            plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            _write(file if plain else cast("BinaryIO", _Stream(file)), arrays)
    except OSError as error:
        raise FileFormatError(1901, f"{path} cannot be written: {error.strerror}", where=str(path)) from None


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, as `save_arrays` does. Raises `FileFormatError` 1901."""
    try:
        with writing(path, 0o666) as file:
            file.write(content)
    except OSError as error:
        raise FileFormatError(1901, f"{path} cannot be written: {error.strerror}", where=str(path)) from None


class _Stream:
    """A device or pipe, whose position means nothing: without `tell`, the archive counts for itself."""

    def __init__(self, file: BinaryIO) -> None:
        self.write, self.flush = file.write, file.flush


def _write(file: BinaryIO, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    # not numpy.savez: it takes names as keywords, and an output may be called `file`
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            plain = array if array.dtype.isbuiltin == 1 else array.view(f"V{array.dtype.itemsize}")
            with archive.open(f"{name.replace(chr(0), '_')}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(cast("Any", entry), np.asarray(plain, order="C"), allow_pickle=False)


def summary(array: np.ndarray[Any, Any]) -> str:
    """Type, shape and the first values of an array."""
    with np.printoptions(threshold=8, edgeitems=3, precision=5, linewidth=200):
        text = " ".join(str(array.ravel()[:64]).split())
    return f"{array.dtype.name}{list(array.shape)} {text}"
