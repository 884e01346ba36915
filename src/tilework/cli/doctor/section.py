"""What one look gives: facts for programs, lines for people, and advice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class Advice:
    """Something that is not as it should be, and what to do. `serious` where it keeps Tilework from working."""

    message: str
    do: str
    serious: bool = False
    code: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The same for JSON."""
        code = f"TW{self.code}" if self.code is not None else None
        return {"serious": self.serious, "code": code, "message": self.message, "do": self.do}

    def __str__(self) -> str:
        code = f"[TW{self.code}] " if self.code is not None else ""
        return f"{'problem' if self.serious else 'note'}: {code}{self.message}\n  do: {self.do}"


@dataclass(frozen=True)
class Section:
    """One subject: `facts` as JSON can hold them, `lines` of a label and a text, and advice."""

    name: str
    facts: Mapping[str, Any]
    lines: tuple[tuple[str, str], ...]
    advice: tuple[Advice, ...] = ()


def text_of(path: Path) -> str:
    """What a file holds, without white space around it; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except (OSError, ValueError):
        return ""
