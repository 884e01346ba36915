"""The bytes of an entry: a head that says what it is, named sections, and a checksum over all of it.

    8 bytes   TILEWORK
    4 bytes   version of this format, little endian
    4 bytes   bytes of the head, little endian
    head      JSON: {"kind", "parts": [[name, text]...], "sections": [[name, bytes]...]}
    sections  each begins at a multiple of 64 bytes, so that arrays can be used where a file is mapped
    32 bytes  checksum of everything before (see `cache.hashing`)

Nothing here is executed or unpickled: a reader gets bytes that somebody wrote whole, or a reason why not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

from tilework.cache.hashing import checksum
from tilework.cache.keys import Key
from tilework.fast_dataclass import dataclass

MAGIC = b"TILEWORK"
FORMAT = 1
ALIGNMENT = 64
_FIXED = len(MAGIC) + 8
_CHECKSUM = 32


class DamagedError(Exception):
    """An entry that is not what was written; its text says how."""


@dataclass(frozen=True)
class Entry:
    """A key and what belongs to it."""

    key: Key
    sections: Mapping[str, bytes | memoryview]

    def encoded(self) -> bytes:
        """The bytes of the file."""
        pieces = self._pieces()
        return b"".join([*pieces, checksum(*pieces)])

    def write(self, file: BinaryIO) -> None:
        """Write them, section by section: no copy of the whole is made. Raises `OSError`."""
        pieces = self._pieces()
        file.writelines((*pieces, checksum(*pieces)))

    @property
    def size(self) -> int:
        """How many bytes those are."""
        return sum(len(piece) for piece in self._pieces()) + _CHECKSUM

    def _pieces(self) -> list[bytes | memoryview]:
        """Everything but the checksum."""
        head = {
            "kind": self.key.kind,
            "parts": [list(part) for part in self.key.parts],
            "sections": [[name, len(content)] for name, content in self.sections.items()],
        }
        text = json.dumps(head, separators=(",", ":"), sort_keys=True).encode()
        numbers = FORMAT.to_bytes(4, "little") + len(text).to_bytes(4, "little")
        pieces: list[bytes | memoryview] = [MAGIC + numbers + text]
        for content in self.sections.values():
            # what stands before begins at a multiple of the alignment itself
            pieces += [bytes(-len(pieces[-1]) % ALIGNMENT), content]
        return pieces


def kind_said(file: BinaryIO) -> str:
    """The kind that an open file says it is an entry of, with nothing of it checked; empty where it says none."""
    fixed = file.read(_FIXED)
    try:
        return str(json.loads(file.read(int.from_bytes(fixed[-4:], "little") if len(fixed) == _FIXED else 0))["kind"])
    except (ValueError, KeyError, TypeError):
        return ""


def decoded(raw: bytes | memoryview) -> Entry:
    """The entry that bytes are, its sections being parts of them; raises `DamagedError` where they are none, or not
    those that were written.
    """
    if len(raw) < _FIXED + _CHECKSUM or raw[: len(MAGIC)] != MAGIC:
        raise DamagedError("it is no entry")
    body = memoryview(raw)[:-_CHECKSUM]
    if checksum(body) != raw[-_CHECKSUM:]:
        raise DamagedError("its checksum is wrong")
    version, size = (int.from_bytes(raw[at : at + 4], "little") for at in (len(MAGIC), len(MAGIC) + 4))
    if version != FORMAT:
        raise DamagedError(f"it has format {version}")
    try:
        head: dict[str, Any] = json.loads(bytes(body[_FIXED : _FIXED + size]))
        key = Key(str(head["kind"]), tuple((str(name), str(text)) for name, text in head["parts"]))
        lengths = [(str(name), int(length)) for name, length in head["sections"]]
    except (ValueError, KeyError, TypeError):
        raise DamagedError("its head cannot be read") from None
    end = _FIXED + size
    sections: dict[str, bytes | memoryview] = {}
    for name, length in lengths:
        start = end + -end % ALIGNMENT
        end = start + length
        if length < 0 or end > len(body):
            raise DamagedError("its sections do not fill it")
        sections[name] = body[start:end]
    if end != len(body):
        raise DamagedError("its sections do not fill it")
    return Entry(key, sections)
