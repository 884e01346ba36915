"""The words of the text form of loop programs, shared by printer and parser."""

from __future__ import annotations

import json
import re
from typing import get_args

from tilework.dims import Dim, Loaded, dim, loaded
from tilework.loops.program import LoopKind, Scope

SCOPES: tuple[str, ...] = get_args(Scope)
KINDS: tuple[str, ...] = get_args(LoopKind)
INFIX = {
    "equal": ("==", 1), "not_equal": ("!=", 1), "less": ("<", 1), "less_equal": ("<=", 1), "greater": (">", 1),
    "greater_equal": (">=", 1), "add": ("+", 2), "subtract": ("-", 2), "multiply": ("*", 3), "divide": ("/", 3),
}  # fmt: skip
"""Functions written between their operands: the sign and how tightly it binds."""
NEGATION = 4
PRIMARY = 5
REDUCER_SIGNS = {"sum": "+", "product": "*"}
RESERVED = frozenset(
    (
        *SCOPES, *KINDS, "program", "symbol", "measured", "step", "read", "write", "accumulate", "reducer", "ordered",
        "combine", "identity", "let", "init", "over", "where", "and", "in", "prefetch", "for", "once", "barrier",
        "copy", "group", "wait", "pending", "intrinsic", "block", "pass", "true", "false", "inf", "nan",
    )
)  # fmt: skip
"""Words that may name nothing unless quoted."""
PLAIN_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*"
_PLAIN = re.compile(PLAIN_NAME)


def name_text(name: str) -> str:
    """A name as it is written: between backquotes unless it is plain and no word of the language."""
    if _PLAIN.fullmatch(name) and name not in RESERVED:
        return name
    return "`" + json.dumps(name)[1:-1].replace("`", "\\u0060") + "`"


def name_from_quoted(text: str) -> str:
    """The name between backquotes; raises `ValueError` where an escape is none."""
    return str(json.loads('"' + text[1:-1] + '"', strict=False))


def dim_text(value: Dim) -> str:
    """A symbolic integer as it is written."""
    names = value.names()
    buffers = {found.buffer for found in value.loads()}
    if all(name_text(name) == name for name in (*names, *buffers)):
        return str(value)

    def rename(found: Loaded) -> Dim:
        return loaded(name_text(found.buffer), found.index)

    return str(value.substitute({name: dim(name_text(name)) for name in names}, rename))


def index_text(index: tuple[Dim, ...]) -> str:
    """The index of an element."""
    return f"[{', '.join(map(dim_text, index))}]"
