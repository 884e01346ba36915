"""The bytes of an entry: a head that says what it is, named sections, and a checksum over all of it.

    8 bytes   TILEWORK
    4 bytes   version of this format, little endian
    4 bytes   bytes of the head, little endian
    head      JSON: {"kind", "parts": [[name, text]...], "sections": [[name, bytes]...]}
    sections  one after another
    32 bytes  SHA-256 of everything before

Nothing here is executed or unpickled: a reader gets bytes that somebody wrote whole, or a reason why not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilework.cache.keys import Key

MAGIC = b"TILEWORK"
FORMAT = 1
_FIXED = len(MAGIC) + 8
_CHECKSUM = 32


class DamagedError(Exception):
    """An entry that is not what was written; its text says how."""


@dataclass(frozen=True)
class Entry:
    """A key and what belongs to it."""

    key: Key
    sections: Mapping[str, bytes]

    def encoded(self) -> bytes:
        """The bytes of the file."""
        head = {
            "kind": self.key.kind,
            "parts": [list(part) for part in self.key.parts],
            "sections": [[name, len(content)] for name, content in self.sections.items()],
        }
        text = json.dumps(head, separators=(",", ":"), sort_keys=True).encode()
        numbers = FORMAT.to_bytes(4, "little") + len(text).to_bytes(4, "little")
        body = b"".join((MAGIC, numbers, text, *self.sections.values()))
        return body + hashlib.sha256(body).digest()


def decoded(raw: bytes) -> Entry:
    """The entry that bytes are; raises `DamagedError` where they are none, or not those that were written."""
    if len(raw) < _FIXED + _CHECKSUM or not raw.startswith(MAGIC):
        raise DamagedError("it is no entry")
    body = memoryview(raw)[:-_CHECKSUM]
    if hashlib.sha256(body).digest() != raw[-_CHECKSUM:]:
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
    at = _FIXED + size
    if min((length for _, length in lengths), default=0) < 0 or at + sum(length for _, length in lengths) != len(body):
        raise DamagedError("its sections do not fill it")
    sections: dict[str, bytes] = {}
    for name, length in lengths:
        sections[name] = bytes(body[at : at + length])
        at += length
    return Entry(key, sections)
