"""What a check answers: legal, illegal with a witness, or unknown (which refuses too)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tilework.errors import ScheduleError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.program import LoopProgram, Node
from tilework.loops.text import node_lines

Answer = Literal["legal", "illegal", "unknown"]


@dataclass(frozen=True)
class Dependence:
    """Why two iterations may not swap: its kind, the buffer, and the direction per loop ("<", "=", ">", "*")."""

    kind: Literal["flow", "anti", "output"]
    buffer: str
    loops: tuple[str, ...]
    direction: tuple[str, ...]


@dataclass(frozen=True)
class Witness:
    """Two iterations, each a value per loop, that conflict on one element; and the symbols' values they need."""

    first: Mapping[str, int]
    second: Mapping[str, int]
    symbols: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        def point(values: Mapping[str, int]) -> str:
            return ", ".join(f"{name}={value}" for name, value in values.items())

        tail = f" with {point(self.symbols)}" if self.symbols else ""
        return f"({point(self.first)}) and ({point(self.second)}){tail}"


@dataclass(frozen=True, eq=False)
class Verdict:
    """A check's answer. `nodes` are the offending nodes of the program; `alternative` is the nearest legal step."""

    answer: Answer
    code: int = 0
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    dependence: Dependence | None = None
    witness: Witness | None = None
    alternative: str = ""

    @property
    def legal(self) -> bool:
        return self.answer == "legal"


LEGAL = Verdict("legal")


def illegal(
    code: int,
    reason: str,
    *nodes: Node,
    dependence: Dependence | None = None,
    witness: Witness | None = None,
    alternative: str = "",
) -> Verdict:
    """The step would change the values, or makes no sense here."""
    return Verdict("illegal", code, reason, nodes, dependence, witness, alternative)


def unknown(reason: str, *nodes: Node, alternative: str = "") -> Verdict:
    """The check cannot decide; refused with code 1502."""
    return Verdict("unknown", 1502, reason, nodes, alternative=alternative)


class IllegalSchedule(ScheduleError):  # noqa: N818 - the field's name for it
    """A refused step: the verdict as data, and the program printed with the offending nodes underlined."""

    def __init__(self, step: str, verdict: Verdict, program: LoopProgram) -> None:
        self.verdict = verdict
        self.step = step
        lines = [f"{step}: {verdict.reason}"]
        if verdict.dependence is not None:
            found = verdict.dependence
            arrow = ", ".join(f"{loop}:{sign}" for loop, sign in zip(found.loops, found.direction, strict=True))
            lines.append(f"  {found.kind} dependence on {found.buffer} with direction ({arrow})")
        if verdict.witness is not None:
            lines.append(f"  iterations {verdict.witness} would swap or meet")
        if verdict.nodes:
            lines.append(render(program, verdict.nodes))
        super().__init__(verdict.code, "\n".join(lines), hint=verdict.alternative)

    def __reduce__(self) -> tuple[object, ...]:
        return (ScheduleError, (self.code, self.message))


def render(program: LoopProgram, nodes: tuple[Node, ...]) -> str:
    """The program's tree as text, the lines of the given nodes underlined."""
    marked = {id(node) for node in nodes}
    lines: list[str] = []
    for node, text in node_lines(program.body, program.buffers):
        lines.append("    " + text)
        if id(node) in marked:
            margin = len(text) - len(text.lstrip())
            lines.append("    " + " " * margin + "^" * len(text.strip()))
    return "\n".join(lines)
