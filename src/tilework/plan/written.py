"""A plan whose buffers and steps are read from its text when somebody asks for them.

A call needs neither: its driver is machine code. They are most of the text, and reading them takes longer than anything
else in loading a model; whoever looks at a plan, interprets it or runs it step by step reads them once.
"""

from __future__ import annotations

from typing import Any, Self

from tilework.dims import Dim
from tilework.errors import ParseError
from tilework.plan.parse import line_cursor, parse_plan
from tilework.plan.parse_tables import Tables
from tilework.plan.plan import Plan

_LATER = frozenset(("buffers", "segments"))


class WrittenPlan(Plan):
    """What `plan_text` wrote, read in part. A changed copy (`replace`) is a plan like others."""

    @classmethod
    def of(cls, text: str) -> Self:
        """The plan of a text. Raises `ParseError` 1419 for what is wrong before the segments; what is wrong elsewhere
        is raised by what asks for it.
        """
        plan = object.__new__(cls)
        try:
            name, tables = _tables(text)
        except ParseError as error:
            raise ParseError(1419, error.message, where=error.where) from None
        plan.__dict__.update(
            name=name, inputs=tuple(tables.inputs), outputs=tuple(tables.outputs), symbols=tuple(tables.symbols),
            bindings=tuple(tables.bindings), guards=tuple(tables.guards), arenas=tuple(tables.arenas),
            spaces=tuple(tables.spaces), devices=tuple(tables.devices), queues=tuple(tables.queues), _text=text,
        )  # fmt: skip
        return plan

    @property
    def text(self) -> str | None:
        """The text it was read from; None for a changed copy."""
        return self.__dict__.get("_text")

    def __getattr__(self, name: str) -> Any:
        text = self.text if name in _LATER else None
        if text is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        # threads that ask at once all read, and get the steps of the first: steps are told apart by identity
        whole = self.__dict__.setdefault("_whole", parse_plan(text))
        self.__dict__.update({later: getattr(whole, later) for later in _LATER})
        return getattr(whole, name)


def _tables(text: str) -> tuple[str, Tables]:
    """Name and tables, without buffers: the lines up to the first empty one."""
    lines = text[: text.find("\n\n") + 1].splitlines()
    tables = Tables()
    sizes: dict[str, Dim] = {}
    name = ""
    for number, line in enumerate(lines, 1):
        if number == 1:
            cursor = line_cursor(line, number)
            cursor.expect("plan")
            name = cursor.name()
            cursor.end()
        elif not line.startswith("  buffer "):
            tables.read(line_cursor(line, number, sizes))
    if not lines:
        raise ParseError(1303, "expected 'plan' and its segments, found nothing", where="line 1, column 1")
    return name, tables
