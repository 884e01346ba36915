"""What is said of a code."""

from __future__ import annotations

from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class CodeInfo:
    """What the documentation says of a code: a title, what it means, and what to do about it."""

    title: str
    meaning: str
    remedy: str
