"""Parts of memory: which piece of memory a value is in, and at which byte it starts there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilework.compiler.control import ByteClasses
from tilework.compiler.plan_items import PlanBlock
from tilework.decisions.windows import Window
from tilework.dims import Dim
from tilework.fast_dataclass import dataclass, field
from tilework.graph.graph import Graph
from tilework.plan.buffers import ArenaPlace, InputPlace, OutputPlace, Place


@dataclass
class Parts:
    """The windows of all blocks, over classes of values that are the same bytes."""

    classes: ByteClasses
    windows: dict[str, Window] = field(default_factory=dict[str, Window])
    joined: dict[str, tuple[Window, ...]] = field(default_factory=dict[str, tuple[Window, ...]])

    def add(self, block: PlanBlock) -> None:
        """Take the windows of a block."""
        self.windows.update(block.windows.within)
        self.joined.update(block.windows.joined)

    def of(self, name: str) -> Window:
        """The first value of the memory that a value is in, and the byte of it at which the value starts."""
        start, base = Dim(), self.classes.of(name)
        while base in self.windows:
            window = self.windows[base]
            start, base = start + window.start, self.classes.of(window.whole)
        return Window(base, start)

    def holder(self, name: str) -> str:
        """The value whose buffer kernels are given for a value: itself, or what it is a box of."""
        base = self.classes.of(name)
        if base not in self.windows or not self.windows[base].corner:
            return name
        return self.holder(self.windows[base].whole)

    def root(self, name: str) -> str:
        """The first value of the memory that a value is in."""
        return self.of(name).whole

    def roots(self) -> set[str]:
        """The first values of all memory that has parts."""
        return {self.root(name) for name in self.windows}

    def read(self, name: str, graph: Graph) -> list[str]:
        """What a value that needs no kernel is made from: its operand, or those that are copied into it."""
        return [graph.producers[name].inputs[0]] if name not in self.joined else [w.whole for w in self.joined[name]]


def at(place: Place, start: Dim) -> Place:
    """The place `start` bytes further on."""
    if isinstance(place, (InputPlace, OutputPlace, ArenaPlace)):
        return replace(place, offset=place.offset + start)
    assert start == 0, "constants and measured memory have no parts"
    return place


def alignment_at(start: Dim, least: int, most: int) -> int:
    """The largest power of two, from `least` to `most` bytes, that divides `start` at all values of its symbols."""
    while most > least and any(number % most for number in _coefficients(start)):
        most //= 2
    return most


def _coefficients(value: Dim) -> Iterable[int]:
    return (value.constant, *(coefficient for _, coefficient in value.terms))
