"""Tensors whose data lie in files of their own: found, checked, and read or mapped; nothing outside is ever opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.faults import NodeFault
from tilework.layout import ALIGNMENT, aligned

if TYPE_CHECKING:
    from onnx import TensorProto

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

MAPPED_BYTES = 1 << 26
"""Data from this size on are mapped: a copy costs more than looking pages up, and such files seldom change in place."""


@dataclass(frozen=True)
class DataFolder:
    """Where the data files of a model may lie: in the folder of its path, or, where that is a link, of its real file.

    Caches of downloads hold every file under a name of its own, and a folder of links to them for each model.
    """

    named: Path
    """From here locations are followed."""
    real: Path

    @classmethod
    def of(cls, model: Path) -> DataFolder:
        """The folder of a model's path."""
        return cls(model.parent.resolve(), model.resolve().parent)

    def find(self, location: str) -> Path:
        """The real path of a location; raises `NodeFault` 1110 outside the folders, 1111 where links have no end."""
        if Path(location).is_absolute():
            raise NodeFault(1110, f"its data lie in {location!r}, outside the model's folder")
        try:
            found = (self.named / location).resolve()
        except (OSError, RuntimeError):  # Python before 3.13 raises the latter
            raise NodeFault(1111, f"its data file {location!r} is a link to itself") from None
        if not (found.is_relative_to(self.named) or found.is_relative_to(self.real)):
            raise NodeFault(1110, f"its data lie in {location!r}, outside the model's folder")
        return found


def external_data(tensor: TensorProto, folder: DataFolder | None, expected: int) -> Bytes:
    """The bytes of a tensor that lie in a file of the model's folder, aligned for code to use.

    Large ones are mapped, read-only: they take memory of the machine once, for every process that uses the file, which
    must then stay as it is.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise NodeFault(1110, f"its data lie in the file {location!r}, and the model was given without a folder")
    if not location or "\0" in location:
        raise NodeFault(1111, "its data lie in a file that is not named")
    path = folder.find(location)
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", str(expected)))
    except ValueError:
        raise NodeFault(1111, f"offset or length of its data in {location!r} is no integer") from None
    if offset < 0 or length != expected:
        raise NodeFault(1111, f"it needs {expected} bytes; {length} at {offset} in {location!r} are named")
    try:
        if not path.is_file():
            raise NodeFault(1111, f"its data file {location!r} does not exist")
        size = path.stat().st_size
        if offset + expected > size:
            raise NodeFault(1111, f"{location!r} has {size} bytes, {offset + expected} are needed")
        return _contents(path, offset, expected)
    except OSError as error:
        raise NodeFault(1111, f"its data file {location!r} cannot be read: {error.strerror}") from None
    except (EOFError, ValueError):
        raise NodeFault(1111, f"{location!r} became shorter while it was read") from None


def _contents(path: Path, offset: int, size: int) -> Bytes:
    if size >= MAPPED_BYTES and offset % ALIGNMENT == 0:
        return np.memmap(path, np.uint8, "r", offset, (size,))
    found = aligned((size,), np.dtype(np.uint8))
    with path.open("rb") as file:
        file.seek(offset)
        if file.readinto(found.data) != size:
            raise EOFError
    whole = cast("Bytes", found.base)
    whole.flags.writeable = found.flags.writeable = False
    return found
