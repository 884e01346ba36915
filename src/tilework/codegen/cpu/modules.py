"""Several LLVM texts as one module: a module has a cost of its own, which many small kernels should share."""

from __future__ import annotations

from collections.abc import Iterable


def joined_text(texts: Iterable[str]) -> str:
    """One module with the definitions of all texts. Their definitions have different names; declarations, attributes and
    metadata that are the same in several are kept once, and functions that one text defines need no declaration.
    """
    shared: dict[str, None] = {}
    bodies: list[str] = []
    defined: set[str] = set()
    for text in texts:
        for line in text.splitlines():
            if line.startswith(("declare ", "attributes ", "!")):
                shared[line] = None
            else:
                bodies.append(line)
                if line.startswith("define "):
                    defined.add(_name(line))
    head = [line for line in shared if line.startswith("declare ") and _name(line) not in defined]
    tail = [line for line in shared if not line.startswith("declare ")]
    return "\n".join([*head, *bodies, *tail]) + "\n"


def _name(line: str) -> str:
    """The function that a `define` or `declare` line is about."""
    return line[line.index("@") + 1 : line.index("(", line.index("@"))]
