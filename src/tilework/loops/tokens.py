"""Lines of text as tokens with their columns, and a cursor that reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from tilework.errors import ParseError
from tilework.loops.words import PLAIN_NAME, RESERVED, name_from_quoted

if TYPE_CHECKING:
    from tilework.dims import Dim

TokenKind = Literal["word", "quoted", "number", "let", "sign", "end"]
_TOKEN = re.compile(
    rf"(?P<word>{PLAIN_NAME})|(?P<quoted>`[^`]*`)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<let>%\d+)"
    r"|(?P<sign>\.\.|//|==|!=|<=|>=|[-+*/%<>=()\[\],:])|(?P<space>[ \t]+)"
)


class Token(NamedTuple):
    """A piece of a line; `column` counts from 1."""

    kind: TokenKind
    text: str
    column: int


def tokens_of(text: str, line: int) -> list[Token]:
    """The tokens of one line, with an `end` after them. Raises `ParseError` 1303."""
    found: list[Token] = []
    place = 0
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if start != place:
            break
        group = match.lastgroup
        if group != "space":
            kind: TokenKind = group  # type: ignore[assignment] # one of the named groups
            found.append(Token(kind, match.group(), start + 1))
        place = end
    if place < len(text):
        fail(line, place + 1, f"unexpected character {text[place]!r}")
    found.append(Token("end", "", len(text) + 1))
    return found


def fail(line: int, column: int, message: str) -> NoReturn:
    """Raise `ParseError` 1303 at a place."""
    raise ParseError(1303, message, where=f"line {line}, column {column}")


class Cursor:
    """Reads the tokens of one line."""

    def __init__(self, tokens: list[Token], line: int, sizes: dict[str, Dim] | None = None) -> None:
        """`sizes`: symbolic integers in parentheses that were read already, by `group`; lines may share them."""
        self._tokens = tokens
        self.sizes = sizes if sizes is not None else {}
        self._place = 0
        self.line = line
        self.depth = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._place]

    @property
    def following(self) -> Token:
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def group(self) -> tuple[str, int]:
        """What stands here in parentheses, as one text, and the place behind; no text where they are not closed."""
        depth = 0
        for place in range(self._place, len(self._tokens)):
            text = self._tokens[place].text
            if text == "(":
                depth += 1
            elif text == ")":
                depth -= 1
                if depth == 0:
                    return " ".join([token.text for token in self._tokens[self._place : place + 1]]), place + 1
        return "", self._place

    def skip(self, place: int) -> None:
        """Step to a place that `group` told."""
        self._place = place

    def rest(self) -> list[Token]:
        """The tokens not yet read, the `end` included."""
        return self._tokens[self._place :]

    def fail(self, message: str) -> NoReturn:
        fail(self.line, self.token.column, message)

    def expected(self, what: str) -> NoReturn:
        self.fail(f"expected {what}, found {self.token.text or 'the end of the line'!r}")

    def next(self) -> Token:
        token = self.token
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        """Step over this word or sign if it comes next (a quoted name is no word)."""
        if self.token.text == text and self.token.kind in ("word", "sign"):
            self.next()
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.expected(repr(text))

    def end(self) -> None:
        if self.token.kind != "end":
            self.expected("the end of the line")

    def name(self, what: str = "a name") -> str:
        token = self.token
        if token.kind == "quoted":
            self.next()
            try:
                return name_from_quoted(token.text)
            except ValueError:
                fail(self.line, token.column, "a quoted name has a bad escape")
        if token.kind != "word" or token.text in RESERVED:
            self.expected(what)
        self.next()
        return token.text

    def integer(self) -> int:
        negative = self.accept("-")
        token = self.token
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 400:
            self.expected("an integer")
        self.next()
        return -int(token.text) if negative else int(token.text)

    def enter(self) -> None:
        """One more parenthesis; `leave` undoes it. Absurd nesting is refused before Python's stack is."""
        self.depth += 1
        if self.depth > 60:
            self.fail("too deeply nested")

    def leave(self) -> None:
        self.depth -= 1
