"""Which entries go when a store passes its cap.

What was used longest ago goes first, but large entries (whole models with their weights) may take half of the cap
together and no more: one model never pushes out the code of all others, which is small and took long to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilework.fast_dataclass import dataclass

LARGE = 32
"""An entry is large that takes more than this part of the cap."""
_KEEP = 0.8
"""Share of the cap that is left when the oldest entries go."""


@dataclass(frozen=True)
class Kept:
    """An entry as a listing shows it: its file, bytes, and when it was last used (seconds since the epoch)."""

    path: Path
    bytes: int
    used: float


def oldest(entries: Sequence[Kept], limit: int) -> list[Kept]:
    """The first of `entries` (used longest ago first) without which the rest takes at most `limit` bytes."""
    left = sum(kept.bytes for kept in entries)
    found: list[Kept] = []
    for kept in entries:
        if left <= limit:
            break
        found.append(kept)
        left -= kept.bytes
    return found


def what_goes(entries: Sequence[Kept], cap: int) -> list[Kept]:
    """What goes of `entries` (used longest ago first) so that a store keeps to its cap: large ones beyond half of it,
    then, where it is still passed, what is oldest until four fifths of it are left.
    """
    found = oldest([kept for kept in entries if kept.bytes > cap // LARGE], cap // 2)
    gone = {kept.path for kept in found}
    rest = [kept for kept in entries if kept.path not in gone]
    if sum(kept.bytes for kept in rest) > cap:
        found += oldest(rest, int(cap * _KEEP))
    return found
