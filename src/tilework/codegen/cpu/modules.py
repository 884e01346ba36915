"""Several LLVM texts as one module: a module has a cost of its own, which many small kernels should share."""

from __future__ import annotations

import re
from collections.abc import Iterable


def joined_text(texts: Iterable[str]) -> str:
    """One module with the definitions of all texts, whose functions have different names.

    Declarations, attributes, constants and metadata that are the same in several texts are kept once, and functions
    that one text defines need no declaration. Different constants of one name are told apart by a number.
    """
    declared: dict[str, None] = {}
    constants: dict[str, str] = {}
    bodies: list[str] = []
    tail: dict[str, None] = {}
    defined: set[str] = set()
    for number, text in enumerate(texts):
        renamed: dict[str, str] = {}
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith("@"):
                name, _, value = line.partition(" = ")
                if constants.setdefault(name, value) != value:
                    renamed[name] = f"{name}.{number}"
                    constants[renamed[name]] = value
            elif line.startswith("declare "):
                declared[line] = None
            elif line.startswith(("attributes ", "!")):
                tail[line] = None
            else:
                lines.append(line)
                if line.startswith("define "):
                    defined.add(_name(line))
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
