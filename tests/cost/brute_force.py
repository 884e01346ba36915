"""Counts by running every iteration in plain Python: what the counting of `tilework.cost` must agree with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilework.loops.expressions import Load, walk
from tilework.loops.program import Compute, Loop, LoopProgram, Node, children


@dataclass(frozen=True)
class Event:
    """One access of one iteration."""

    statement: str
    buffer: str
    index: tuple[Any, ...]
    kind: str
    element: int
    at: dict[str, int]


def events(program: LoopProgram, node: Node | None = None, at: dict[str, int] | None = None) -> Iterator[Event]:
    """Every access in order of execution."""
    node = program.body if node is None else node
    at = {} if at is None else at
    if isinstance(node, Loop):
        for i in range(int(node.extent.evaluate(at))):
            yield from events(program, node.body, {**at, node.variable: i})
    elif isinstance(node, Compute):
        if all(guard.evaluate(at) >= 0 for guard in node.guards):
            seen: set[tuple[str, tuple[Any, ...]]] = set()
            for value in node.values:
                for part in walk(value):
                    if isinstance(part, Load) and (part.buffer, part.index) not in seen:
                        seen.add((part.buffer, part.index))
                        yield event(program, node, part.buffer, part.index, "read", at)
            for target in node.targets:
                kind = "write" if node.reducer is None else "update"
                yield event(program, node, target.buffer, target.index, kind, at)
    else:
        for child in children(node):
            yield from events(program, child, at)


def event(
    program: LoopProgram, node: Compute, buffer: str, index: tuple[Any, ...], kind: str, at: dict[str, int]
) -> Event:
    flat = 0
    for entry, extent in zip(index, program.buffers[buffer].shape, strict=True):
        value = int(entry.evaluate(at))
        assert 0 <= value < int(extent)
        flat = flat * int(extent) + value
    return Event(node.name, buffer, index, kind, flat, at)


def runs(program: LoopProgram) -> dict[str, int]:
    """How often each statement runs."""
    found: dict[str, int] = {}
    for one in events(program):
        if one.kind != "read":
            found[one.statement] = found.get(one.statement, 0) + 1
    return found


def lines_missed(program: LoopProgram, cache_bytes: int, line_bytes: int) -> dict[str, int]:
    """Lines of each buffer that a fully associative cache with least-recently-used replacement brings."""
    held: OrderedDict[tuple[str, int], None] = OrderedDict()
    missed: dict[str, int] = {}
    for one in events(program):
        itemsize = program.buffers[one.buffer].dtype.itemsize
        line = (one.buffer, one.element * itemsize // line_bytes)
        if line in held:
            held.move_to_end(line)
            continue
        missed[one.buffer] = missed.get(one.buffer, 0) + 1
        held[line] = None
        if len(held) * line_bytes > cache_bytes:
            held.popitem(last=False)
    return missed
