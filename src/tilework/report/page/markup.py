"""HTML and SVG as text, built so that what comes from a model is always text in it and never markup."""

from __future__ import annotations

import html
import unicodedata
from typing import TypeAlias

_HIDDEN = frozenset("\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
"""Characters that nobody sees and that change the order in which others are shown, or pretend to be nothing."""
_VOID = frozenset(("br", "link", "meta", "col", "wbr"))


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | None"
Attribute: TypeAlias = "str | float | bool | None"


def plain(text: str) -> str:
    """The text with every character that cannot be shown, or that would turn others around, as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t":
        return character
    if character in _HIDDEN or unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def escaped(text: str) -> Markup:
    """Text as markup: what it says is shown, whatever it is."""
    return text if isinstance(text, Markup) else Markup(html.escape(plain(text)))


def element(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element. Children that are no `Markup` are text; None among them is nothing.

    In names of attributes `_` stands for `-`, and one at the end for nothing (`class_`). A number is written short,
    True is an attribute without a value, and None and False are no attribute.
    """
    head = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{head}>")
    inside = "".join(escaped(child) for child in children if child is not None)
    return Markup(f"<{name}{head}>{inside}</{name}>")


def joined(*children: Child) -> Markup:
    """Children one after another."""
    return Markup("".join(escaped(child) for child in children if child is not None))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = short(value) if isinstance(value, (int, float)) else html.escape(plain(value))
    return f' {name}="{text}"'


def short(value: float) -> str:
    """A coordinate to two digits after the point, without needless zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
