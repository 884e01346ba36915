"""What a schedule of one nest knows of the program around it: names that are taken, buffers that others touch.

With it a step on the nest alone gets the verdict that it would get on the whole program, or none: then `BeyondNest` is
raised, and the step has to be taken on the whole program.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from tilework.fast_dataclass import dataclass
from tilework.loops.program import LoopProgram
from tilework.schedule.primitive import Primitive
from tilework.schedule.rewriting import loop_names, statement_names


class BeyondNest(Exception):  # noqa: N818 - no error of anybody's: it says where to go on
    """A step on one nest needs to look at the rest of the program."""


@dataclass(frozen=True)
class Names:
    """Names in use: of loops and symbols, of statements, of buffers."""

    loops: set[str]
    statements: set[str]
    buffers: set[str]

    @staticmethod
    def of(program: LoopProgram) -> Names:
        return Names(loop_names(program), statement_names(program), set(program.buffers))

    def add(self, other: Names) -> None:
        self.loops.update(other.loops)
        self.statements.update(other.statements)
        self.buffers.update(other.buffers)

    def meets(self, other: Names, without: Names) -> bool:
        """Whether a name in both is not one of those `without`."""
        return any(
            not (a - b).isdisjoint(c)
            for a, b, c in (
                (other.loops, without.loops, self.loops),
                (other.statements, without.statements, self.statements),
                (other.buffers, without.buffers, self.buffers),
            )
        )


@dataclass(frozen=True)
class Outside:
    """The program around a nest."""

    taken: Names
    """Names in use anywhere in the program."""
    own: Names
    """Those of them that the nest came with."""
    shared: AbstractSet[str]
    """Buffers that something else than the nest reads or writes too, and maybe others that the nest does not touch."""

    def allow(self, step: Primitive) -> None:
        """Raise `BeyondNest` for a step whose verdict depends on more than the nest."""
        buffer: str = getattr(step, "buffer", "")
        if step.looks_at == "nest":
            return
        if step.looks_at == "buffer" and buffer in self.own.buffers and buffer not in self.shared:
            return
        raise BeyondNest(str(step))

    def allow_names(self, program: LoopProgram) -> None:
        """Raise `BeyondNest` where a new name in the nest is one that the rest of the program uses too."""
        if self.taken.meets(Names.of(program), self.own):
            raise BeyondNest("a name is taken")
