"""The schedule tree as a picture: loops, storage and computation nested, each with what it costs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tilework.cost.accesses import domain_of
from tilework.cost.counts import Footprints, LoopCount, loop_counts
from tilework.cost.domain import points
from tilework.fast_dataclass import dataclass
from tilework.loops.program import Compute, Loop, LoopProgram, Node, Storage, children
from tilework.loops.text import node_lines
from tilework.machine.cpu import CpuMachine

Part = Literal["loop", "storage", "statement", "other"]


@dataclass(frozen=True)
class TreeLine:
    """One line of the tree, its depth, and what its node is; figures where they belong to that kind of node.

    `home` is the nearest level that holds what one run of a loop touches.
    """

    text: str
    depth: int
    part: Part
    runs: int | None = None
    footprint_bytes: int | None = None
    home: str = ""
    reuse: float | None = None


def home_of(size: int, machine: CpuMachine) -> str:
    """The nearest level that holds so many bytes."""
    for cache in sorted(machine.caches, key=lambda cache: cache.level):
        if size <= cache.bytes:
            return f"L{cache.level}"
    return "memory"


def tree_lines(program: LoopProgram, footprints: Footprints, machine: CpuMachine) -> tuple[TreeLine, ...]:
    """The lines of a program without symbols."""
    loops = dict(zip(_loops(program.body), loop_counts(program, footprints), strict=True))
    around = _around(program.body)
    found: list[TreeLine] = []
    for node, text in node_lines(program.body, program.buffers):
        depth = (len(text) - len(text.lstrip())) // 2
        found.append(_line(node, text.lstrip(), depth, loops, around, machine))
    return tuple(found)


def _line(
    node: Node,
    text: str,
    depth: int,
    loops: Mapping[int, LoopCount],
    around: Mapping[int, tuple[Loop, ...]],
    machine: CpuMachine,
) -> TreeLine:
    match node:
        case Loop():
            found = loops[id(node)]
            home = home_of(found.footprint_bytes, machine)
            return TreeLine(text, depth, "loop", found.runs, found.footprint_bytes, home, found.reuse)
        case Compute() if not text.startswith("let "):
            return TreeLine(text, depth, "statement", points(domain_of(around[id(node)], node.guards)).value)
        case Storage():
            return TreeLine(text, depth, "storage")
        case _:
            return TreeLine(text, depth, "other")


def _loops(node: Node) -> list[int]:
    """Identities of the loops, in order of execution."""
    found = [id(node)] if isinstance(node, Loop) else []
    for child in children(node):
        found.extend(_loops(child))
    return found


def _around(node: Node, outer: tuple[Loop, ...] = ()) -> dict[int, tuple[Loop, ...]]:
    """The loops around every node, by its identity."""
    found = {id(node): outer}
    inside = (*outer, node) if isinstance(node, Loop) else outer
    for child in children(node):
        found.update(_around(child, inside))
    return found
