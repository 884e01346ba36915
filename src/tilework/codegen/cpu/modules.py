"""Several LLVM texts as one module: a module has a cost of its own, which many small kernels should share."""

from __future__ import annotations

import re
from collections.abc import Iterable

SHARED = "tilework.stop"
"""The function that answers whether a call is to stop: every kernel that looks for signals has it in its text."""


def joined_text(texts: Iterable[str]) -> str:
    """One module with the definitions of all texts, whose functions have different names.

    Only `SHARED` is the same internal function wherever it occurs, and kept once. Declarations, attributes, constants
    and metadata that are the same in several texts are kept once, and functions that one text defines need no
    declaration. Different constants of one name are told apart by a number.
    """
    declared: dict[str, None] = {}
    constants: dict[str, str] = {}
    bodies: list[str] = []
    tail: dict[str, None] = {}
    defined: set[str] = set()
    for number, text in enumerate(texts):
        renamed: dict[str, str] = {}
        lines: list[str] = []
        repeated = False
        for line in text.splitlines():
            if repeated:
                repeated = line != "}"
            elif line.startswith("@"):
                name, _, value = line.partition(" = ")
                if constants.setdefault(name, value) != value:
                    renamed[name] = f"{name}.{number}"
                    constants[renamed[name]] = value
            elif line.startswith("declare "):
                declared[line] = None
            elif line.startswith(("attributes ", "!")):
                tail[line] = None
            elif line.startswith("define "):
                name = _name(line)
                repeated = name == SHARED and name in defined
                if not repeated:
                    defined.add(name)
                    lines.append(line)
            else:
                lines.append(line)
        body = "\n".join(lines)
        for old, new in renamed.items():
            body = re.sub(re.escape(old) + r"(?![\w.$-])", new, body)
        bodies.append(body)
    head = [line for line in declared if _name(line) not in defined]
    values = [f"{name} = {value}" for name, value in constants.items()]
    return "\n".join([*head, *values, *bodies, *tail]) + "\n"


def _name(line: str) -> str:
    """The function that a `define` or `declare` line is about."""
    return line[line.index("@") + 1 : line.index("(", line.index("@"))]
