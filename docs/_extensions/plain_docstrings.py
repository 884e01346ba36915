"""Docstrings are plain text with `names` in backticks; this turns them into what Sphinx reads without a warning.

Backticked text becomes a literal, a list gets the blank line it needs, indented text becomes a literal block, and
characters that mean something to reStructuredText mean themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
BACKTICKED = re.compile(r"``(.+?)``|`([^`]+)`")


def inline(text: str) -> str:
    """Return a paragraph with its literals marked and everything else taken as it stands."""
    parts: list[str] = []
    at = 0
    for found in BACKTICKED.finditer(text):
        literal = (found[1] or found[2]).strip()
        parts += [escape(text[at : found.start()]), rf"\ ``{literal}``\ "]
        at = found.end()
    return "".join([*parts, escape(text[at:])])


def escape(text: str) -> str:
    """Return text in which no character is markup."""
    return re.sub(r"([\\*|`_])", r"\\\1", text)


def paragraph(lines: list[str]) -> list[str]:
    """Return one paragraph of a docstring as reStructuredText, a blank line after it."""
    if any(ITEM.match(line) for line in lines):
        return [*items(lines), ""]
    margin = len(lines[0]) - len(lines[0].lstrip())
    if margin or any(line[margin : margin + 1].isspace() for line in lines):
        return ["::", "", *("    " + line for line in lines), ""]
    return [inline(" ".join(line.strip() for line in lines)), ""]


def items(lines: list[str]) -> list[str]:
    """Return a paragraph that holds a list: what stands before it, a blank line, and one line an item."""
    blocks: list[str] = []
    for line in lines:
        if ITEM.match(line) or not blocks:
            blocks.append(line.strip())
        else:
            blocks[-1] += " " + line.strip()
    made: list[str] = []
    for block in blocks:
        marker = ITEM.match(block)
        made += [f"- {inline(block[marker.end() :])}"] if marker else [inline(block), ""]
    return made


def convert(lines: list[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line.rstrip())
        elif paragraphs[-1]:
            paragraphs.append([])
    return [line for part in paragraphs if part for line in paragraph(part)]


def process(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Rewrite a docstring in place, as autodoc asks."""
    del app, kind, name, thing, options
    lines[:] = convert(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
