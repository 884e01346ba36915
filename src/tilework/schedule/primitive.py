"""The base of every primitive: a frozen dataclass whose fields are its arguments, and so a step of a trace.

A primitive is one file in `schedule/primitives/` with `PRIMITIVE`, its class. `check` says why the step may be done
here; `apply` is the rewrite, called only after a legal verdict.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

from tilework.errors import ScheduleError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.expressions import Load
from tilework.loops.program import Compute, Intrinsic, Loop, LoopProgram, Node, path, walk
from tilework.numerics import Numerics

if TYPE_CHECKING:
    from tilework.schedule.verdict import Verdict


class Machine(Protocol):
    """What primitives read of a machine description."""

    @property
    def vector_bits(self) -> int: ...

    @property
    def vector_registers(self) -> int: ...


LARGEST = 1 << 62
"""The largest number in a step: what is rounded up to a multiple of it still is an index of 64 bits."""

Reach = Literal["nest", "buffer", "program"]
"""How far a primitive looks."""


@dataclass(frozen=True)
class Setting:
    """What a step is checked against: the program so far, the numerics contract, and the machine (None: any)."""

    program: LoopProgram
    numerics: Numerics
    machine: Machine | None = None

    @cached_property
    def _loops(self) -> dict[str, Loop]:
        return {node.variable: node for node in walk(self.program.body) if isinstance(node, Loop)}

    @cached_property
    def _statements(self) -> dict[str, Compute]:
        """The first statement of each name."""
        found: dict[str, Compute] = {}
        for node in walk(self.program.body):
            if isinstance(node, Compute):
                found.setdefault(node.name, node)
        return found

    @cached_property
    def _instructions(self) -> bool:
        return any(isinstance(node, Intrinsic) for node in walk(self.program.body))

    @cached_property
    def readers(self) -> Mapping[str, list[tuple[Compute, Load]]]:
        """Every load of a buffer in statements' values, by buffer."""
        found: dict[str, list[tuple[Compute, Load]]] = {}
        for node in walk(self.program.body):
            if isinstance(node, Compute):
                for load in node.loads:
                    found.setdefault(load.buffer, []).append((node, load))
        return found

    def loop(self, variable: str) -> Loop:
        """The loop with this variable; raises `ScheduleError` 1501 listing the loops there are."""
        loop = self._loops.get(variable)
        if loop is not None:
            self._free(loop, variable)
            return loop
        there = ", ".join(self._loops) or "none"
        raise ScheduleError(1501, f"there is no loop {variable!r}", hint=f"the loops are: {there}")

    def statement(self, name: str) -> Compute:
        """The statement with this name; raises `ScheduleError` 1501 listing the statements there are."""
        statement = self._statements.get(name)
        if statement is not None:
            self._free(statement, name)
            return statement
        there = ", ".join(self._statements) or "none"
        raise ScheduleError(1501, f"there is no statement {name!r}", hint=f"the statements are: {there}")

    def _free(self, node: Node, name: str) -> None:
        """What an instruction stands for is out of reach: the instruction would mean something else."""
        if not self._instructions:
            return
        around = [n.instruction for n in path(self.program.body, node)[:-1] if isinstance(n, Intrinsic)]
        if around:
            raise ScheduleError(1519, f"{name} is inside the instruction {around[0]}", hint="schedule before tensorize")

    def names(self) -> set[str]:
        """Every loop variable in use."""
        return set(self._loops)

    def enclosing(self, node: Node) -> tuple[Loop, ...]:
        """The loops around a node, outermost first (the node itself excluded)."""
        return tuple(n for n in path(self.program.body, node)[:-1] if isinstance(n, Loop))


@dataclass(frozen=True)
class Applied:
    """A rewritten program and where names went: old loop or statement name to the new ones (empty: gone)."""

    program: LoopProgram
    forwards: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


def _words(annotation: str) -> str:
    return {"int": "an integer", "str": "a text"}.get(
        annotation, "texts" if annotation.startswith("tuple") else "a text"
    )


@dataclass(frozen=True)
class Primitive(ABC):
    """One step of a schedule. Subclasses are frozen dataclasses; fields hold plain JSON values or tuples of them."""

    name: ClassVar[str] = ""
    looks_at: ClassVar[Reach] = "program"
    """What its verdict and rewrite depend on: the outermost nest of the loops and statements it names and the storage
    around that; all that touches its `buffer`; or anything.
    """

    def __post_init__(self) -> None:
        """Refuse arguments of another type: `ScheduleError` 1505."""
        for entry in dataclasses.fields(self):
            value, wanted = getattr(self, entry.name), str(entry.type)
            fits = (
                isinstance(value, tuple) and all(isinstance(part, str) for part in cast("tuple[Any, ...]", value))
                if wanted.startswith("tuple")
                else type(value) is int
                if wanted == "int"
                else isinstance(value, str)
            )
            if not fits:
                raise ScheduleError(1505, f"{self.name}: {entry.name} is {value!r}; it must be {_words(wanted)}")
            if isinstance(value, int) and abs(value) > LARGEST:
                raise ScheduleError(
                    1505, f"{self.name}: {entry.name} is {value}; indices of 64 bits hold pieces of at most 2**62"
                )

    @abstractmethod
    def check(self, setting: Setting) -> Verdict:
        """Whether the step is legal here. Raises `ScheduleError` 1501 for unknown names, 1519 inside an instruction."""

    @abstractmethod
    def apply(self, setting: Setting) -> Applied:
        """The rewrite."""

    def arguments(self) -> dict[str, Any]:
        """Its arguments by name, those left at their default excluded."""
        found: dict[str, Any] = {}
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if value != entry.default:
                found[entry.name] = value
        return found

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.arguments().items())
        return f"{self.name}({inside})"
