"""Scheduling a program nest by nest: each is a schedule of its own, so that a step costs what its nest is, not what the
program is. The steps of all nests, one after another, are the trace of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from tilework.fast_dataclass import dataclass
from tilework.loops.program import (
    Loop,
    LoopProgram,
    Node,
    Sequence,
    Storage,
    children,
    statements,
    with_children,
)  # fmt: skip
from tilework.schedule.footprint import node_dims, touched_buffers
from tilework.schedule.outside import BeyondNest, Names, Outside
from tilework.schedule.schedule import Schedule

Treatment = Callable[[Schedule, tuple[str, ...]], Schedule]
"""Schedules one nest, whose statements it is told, in a schedule of that nest alone or of the whole program."""


def each_nest(schedule: Schedule, treat: Treatment) -> Schedule:
    """Treat every outermost loop in turn; the result is as if each had been treated in the whole program.

    `treat` gets a schedule of the one nest and of the buffers it touches. It may name nothing else, and its answer may
    depend on the nest and on `schedule.outside.shared` only: the buffers that others touch too. Where one of its steps
    has to look further, it is called again with the whole program.
    """
    schedule = schedule.started()
    nests = [place.statements for place in _places(schedule.program.body, ()) if place.statements]
    if len(nests) == 1 or schedule.outside is not None:
        for nest in nests:
            schedule = treat(schedule, nest)
        return schedule
    parts = _Parts(schedule)
    for nest in nests:
        place = parts.places.pop(nest, None)
        try:
            if place is None:
                raise BeyondNest("another nest's steps have changed this one")
            parts.keep(place, treat(parts.alone(place), nest))
        except BeyondNest:
            parts = _Parts(treat(parts.joined(), nest))
    return parts.joined()


@dataclass(frozen=True)
class _Place:
    """An outermost loop, and the storage around it."""

    loop: Loop
    around: tuple[Storage, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        return tuple(statement.name for statement in statements(self.loop))


class _Parts:
    """The nests of a program, of which some are done."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        program = schedule.program
        places = list(_places(program.body, ()))
        self.places = {place.statements: place for place in places}
        self.touched = {id(place.loop): touched_buffers(place.loop) for place in places}
        users = Counter(name for found in self.touched.values() for name in found)
        users.update(_touched_above(program.body))
        self.shared = {name for name, count in users.items() if count > 1}
        # a temporary's declaration stands outside the nest even where nothing else touches it
        self.shared.update(storage.buffer.name for place in places for storage in place.around)
        self.taken = Names.of(program)
        self.arguments = {argument.buffer.name: argument for argument in program.arguments}
        self.done: dict[int, Node] = {}
        self.steps: list[Schedule] = []

    def alone(self, place: _Place) -> Schedule:
        """The schedule of one nest: arguments and storage that it touches, and nothing else."""
        needed = set(self.touched[id(place.loop)])
        body: Node = place.loop
        for storage in reversed(place.around):
            if storage.buffer.name in needed:
                needed.update(load.buffer for extent in storage.buffer.shape for load in extent.loads())
                body = Storage(storage.buffer, body)
        whole = self.schedule.program
        arguments = tuple(self.arguments[name] for name in sorted(needed) if name in self.arguments)
        program = LoopProgram(whole.name, arguments, body, whole.symbols)
        outside = Outside(self.taken, Names.of(program), self.shared)
        return replace(self.schedule, program=program, trace=(), forwards=(), outside=outside)

    def keep(self, place: _Place, part: Schedule) -> None:
        """Take what became of a nest."""
        node = part.program.body
        for storage in place.around:
            if storage.buffer.name in part.program.buffers and storage.buffer.name not in self.arguments:
                assert isinstance(node, Storage)
                node = node.body
        self.done[id(place.loop)] = node
        self.taken.add(Names.of(part.program))
        self.arguments.update((argument.buffer.name, argument) for argument in part.program.arguments)
        self.steps.append(part)

    def joined(self) -> Schedule:
        """The schedule of the whole program, with the steps of every nest so far."""
        program = self.schedule.program
        arguments = tuple(self.arguments[argument.buffer.name] for argument in program.arguments)
        return replace(
            self.schedule,
            program=replace(program, arguments=arguments, body=self._rebuilt(program.body)),
            trace=(*self.schedule.trace, *(step for part in self.steps for step in part.trace)),
            forwards=(*self.schedule.forwards, *(step for part in self.steps for step in part.forwards)),
        )

    def _rebuilt(self, node: Node) -> Node:
        if isinstance(node, Loop):
            return self.done.get(id(node), node)
        if not isinstance(node, (Sequence, Storage)):
            return node
        old = children(node)
        new = tuple(map(self._rebuilt, old))
        return node if all(a is b for a, b in zip(old, new, strict=True)) else with_children(node, new)


def _places(node: Node, around: tuple[Storage, ...]) -> Iterator[_Place]:
    if isinstance(node, Loop):
        yield _Place(node, around)
    elif isinstance(node, (Sequence, Storage)):
        for child in children(node):
            yield from _places(child, (*around, node) if isinstance(node, Storage) else around)


def _touched_above(node: Node) -> Iterator[str]:
    """Buffers that anything outside all outermost loops touches."""
    if isinstance(node, (Sequence, Storage)):
        yield from (load.buffer for entry in node_dims(node) for load in entry.loads())
        for child in children(node):
            yield from _touched_above(child)
    elif not isinstance(node, Loop):
        yield from touched_buffers(node)
