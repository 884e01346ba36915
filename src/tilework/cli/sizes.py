"""Numbers of bytes on the command line."""

from __future__ import annotations

from tilework.environment import byte_count
from tilework.errors import UsageError


def bytes_of(text: str, option: str) -> int:
    """Read what an option gives, e.g. `200M`. Raises `UsageError` 1002."""
    try:
        return byte_count(text)
    except ValueError:
        raise UsageError(
            1002, f"{option} {text}: not a number of bytes, with K, M, G or T where wanted", where=option
        ) from None


def in_words(count: int) -> str:
    """A number of bytes for a reader, e.g. `1.5 MB` (powers of 1024)."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"
