"""Settings that people give: checked where they are given, refused by a code that says what would do."""

from __future__ import annotations

import operator
import os
from pathlib import Path
from typing import cast

from tilework.environment import byte_count
from tilework.errors import UsageError


def whole_number(name: str, value: object, what: str, least: int = 1) -> int:
    """The setting `name` as an integer of `least` or more; numpy's integers will do, truth values and text will not.

    `what` says what is counted. Raises `UsageError` 1002.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise bad_setting(name, value, f"give a whole number of {what}, {least} or more")
    return number


def byte_limit(name: str, value: object) -> int:
    """The setting `name` as a number of bytes, 1 or more; text such as `"4G"` will do (powers of 1024).

    Raises `UsageError` 1002.
    """
    if not isinstance(value, str):
        found = whole_number(name, value, "bytes")
        if found < 1 << 63:
            return found
        raise bad_setting(name, value, "give a number of bytes that 63 bits hold, or no limit")
    try:
        return byte_count(value)
    except ValueError:
        raise bad_setting(name, value, "give a number of bytes, 1 or more, or text such as '200M' or '4G'") from None


def expect(name: str, value: object, kind: type, hint: str) -> None:
    """Raise `UsageError` 1002 unless the setting `name` is of the kind. People may pass what no type checker saw."""
    if not isinstance(value, kind):
        raise bad_setting(name, value, hint)


def expect_path(name: str, value: object) -> Path:
    """A path that somebody gave; `UsageError` 1002 where it is none that a file can have."""
    found: Path | None = None
    try:
        found = Path(cast("str | os.PathLike[str]", value))
        if b"\0" in os.fsencode(found):
            found = None
    except (TypeError, ValueError):  # no path of text; a character that no name of a file can have
        found = None
    if found is None:
        raise bad_setting(name, value, "give the path of a file")
    return found


def bad_setting(name: str, value: object, hint: str) -> UsageError:
    """The error of a setting that makes no sense."""
    return UsageError(1002, f"{name}={_shown(value)} makes no sense", where=name, hint=hint)


def _shown(value: object) -> str:
    if value is None or isinstance(value, (str, int, float)):
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a number of many digits"
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"a {type(value).__name__}"
