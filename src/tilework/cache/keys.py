"""Content keys: what an entry was made from, part by part, and one digest of it all.

No path, host name, time or process is a part: the same content has the same key wherever it is compiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property

from tilework.fast_dataclass import dataclass

LONGEST = 200
"""Characters of a part that are kept as they are; a longer one is known by its digest."""


@dataclass(frozen=True)
class Key:
    """The kind of an entry and the parts that decide its content."""

    kind: str
    parts: tuple[tuple[str, str], ...]
    """(name, text), by name."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the kind and every part, each with its length before it, in hexadecimal."""
        state = hashlib.sha256()
        for text in (self.kind, *(word for part in self.parts for word in part)):
            raw = text.encode()
            state.update(len(raw).to_bytes(8, "little"))
            state.update(raw)
        return state.hexdigest()

    def differences(self, other: Key) -> tuple[tuple[str, str, str], ...]:
        """(part, here, there) for every part in which two keys differ; nothing stands for a part that is missing."""
        mine, theirs = ({"kind": k.kind, **dict(k.parts)} for k in (self, other))
        names = sorted({*mine, *theirs})
        return tuple((n, mine.get(n, ""), theirs.get(n, "")) for n in names if mine.get(n) != theirs.get(n))


def key_of(kind: str, parts: Mapping[str, str]) -> Key:
    """The key of parts by name; long texts go in as their digests."""
    return Key(kind, tuple(sorted((name, _short(text)) for name, text in parts.items())))


def _short(text: str) -> str:
    if len(text) <= LONGEST and "\n" not in text:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
