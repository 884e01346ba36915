"""The environment variables that Tilework reads: one typed registry, and the only place that reads them.

`read(NUM_THREADS)` gives the value, checked; a variable that is unset or empty gives None.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass

T_co = TypeVar("T_co", covariant=True)

PREFIX = "TILEWORK_"


@dataclass(frozen=True)
class Variable(Generic[T_co]):
    """One environment variable: its full name, what it holds, what it means, and how its text is read."""

    name: str
    kind: str
    """The kind of value in words, e.g. `a whole number, 1 or more`."""
    meaning: str
    parse: Callable[[str], T_co]
    """Turns the text into a value; raises `ValueError` for a text that is not of the kind."""


def read(variable: Variable[T_co], environment: Mapping[str, str] | None = None) -> T_co | None:
    """Return the value of a variable, or None where it is unset or empty.

    `environment` stands in for the process's own. Raises `UsageError` 1002 for a text that is not of the
    variable's kind.
    """
    text = given(variable, environment)
    if text is None:
        return None
    try:
        return variable.parse(text)
    except ValueError:
        raise UsageError(
            1002, f"{variable.name}={text!r} is not {variable.kind}", where=f"environment variable {variable.name}"
        ) from None


def given(variable: Variable[object], environment: Mapping[str, str] | None = None) -> str | None:
    """Return the text of a variable as it is set, whatever it says; None where it is unset or empty."""
    return (os.environ if environment is None else environment).get(variable.name, "").strip() or None


def unknown(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names that are set, start with `TILEWORK_` and that nothing reads: a slip of the pen, most likely."""
    names = os.environ if environment is None else environment
    return tuple(sorted(name for name in names if name.startswith(PREFIX) and name not in VARIABLES))


def _positive(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError(text)
    return int(text)


def _switch(text: str) -> bool:
    if text.lower() not in ("on", "off", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("on", "1")


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def byte_count(text: str) -> int:
    """Read a number of bytes such as `200M`; raises `ValueError`."""
    found = re.fullmatch(r"([0-9]{1,18})\s*([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if not found or int(found[1]) < 1:
        raise ValueError(text)
    return int(found[1]) * _UNITS[found[2].upper()]


NUM_THREADS = Variable(
    "TILEWORK_NUM_THREADS",
    "a whole number, 1 or more",
    "How many threads run compiled code; otherwise the processors this process may use, within its quota.",
    _positive,
)

MACHINE = Variable(
    "TILEWORK_MACHINE",
    "the name of a machine",
    "The machine to compile models for, e.g. x86-64-v3, where the call or the command names none; otherwise the one "
    "this process runs on.",
    str,
)

MEMORY_LIMIT = Variable(
    "TILEWORK_MEMORY_LIMIT",
    "a number of bytes, 1 or more, with K, M, G or T where wanted (powers of 1024)",
    "The most bytes that one arena or output of a call may take, where the context's options give no limit; otherwise "
    "what the machine has.",
    byte_count,
)

MODELS = Variable(
    "TILEWORK_MODELS",
    "a folder",
    "Where the demonstration, the suites and the benchmarks keep the models they fetch.",
    Path,
)

CACHE = Variable(
    "TILEWORK_CACHE",
    "on or off",
    "Whether compiled code is kept on disk and found again (on).",
    _switch,
)

CACHE_DIR = Variable(
    "TILEWORK_CACHE_DIR",
    "a folder",
    "Where compiled code is kept; otherwise tilework/code in XDG_CACHE_HOME or ~/.cache.",
    Path,
)

CACHE_LIMIT = Variable(
    "TILEWORK_CACHE_LIMIT",
    "a number of bytes, 1 or more, with K, M, G or T where wanted (powers of 1024)",
    "The most bytes that are kept; what was used longest ago goes first (1G).",
    byte_count,
)

XDG_CACHE_HOME = Variable(
    "XDG_CACHE_HOME",
    "a folder",
    "Where programs keep what can be made again (the base directories of freedesktop.org).",
    Path,
)

TRACE = Variable(
    "TILEWORK_TRACE",
    "the path of a file",
    "Where the command line writes the full trace of an error, any error; otherwise only the trace of a fault in "
    "Tilework itself is kept, in a file of its own.",
    Path,
)

VARIABLES: Mapping[str, Variable[object]] = {
    variable.name: variable
    for variable in (NUM_THREADS, MACHINE, MEMORY_LIMIT, CACHE, CACHE_DIR, CACHE_LIMIT, XDG_CACHE_HOME, TRACE, MODELS)
}
"""Every variable by its name; the documentation lists them from here."""
