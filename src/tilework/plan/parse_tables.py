"""Reading the tables of the text form of plans (see `plan.text`), line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from tilework.dims import Dim, Symbol
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import TensorType
from tilework.loops.parse_expressions import parse_dim_at, parse_type
from tilework.loops.tokens import Cursor
from tilework.plan.buffers import (
    Arena,
    ArenaPlace,
    ConstantPlace,
    Device,
    InputPlace,
    MeasuredPlace,
    MemorySpace,
    OutputPlace,
    Place,
    PlanBuffer,
    Queue,
)
from tilework.plan.guard import Guard
from tilework.plan.plan import Binding, PlanInput, PlanOutput

_Part = TypeVar("_Part")


class Tables:
    """What stands before the segments: symbols, spaces, devices, queues, arenas, boundary and buffers."""

    def __init__(self) -> None:
        self.symbols: list[Symbol] = []
        self.spaces: list[MemorySpace] = []
        self.devices: list[Device] = []
        self.queues: list[Queue] = []
        self.arenas: list[Arena] = []
        self.inputs: list[PlanInput] = []
        self.outputs: list[PlanOutput] = []
        self.bindings: list[Binding] = []
        self.guards: list[Guard] = []
        self.buffers: list[PlanBuffer] = []

    def read(self, cursor: Cursor) -> None:
        """One line of the tables."""
        readers: dict[str, Callable[[Cursor], None]] = {
            "symbol": lambda c: self.symbols.append(symbol_at(c)),
            "space": lambda c: self.spaces.append(MemorySpace(c.name())),
            "device": self.device,
            "queue": self.queue,
            "arena": self.arena,
            "input": self.input,
            "output": self.output,
            "bind": self.bind,
            "guard": self.guard,
            "buffer": self.buffer,
        }
        reader = readers.get(cursor.token.text)
        if reader is None:
            cursor.expected(f"one of {', '.join(readers)}")
        cursor.next()
        reader(cursor)
        cursor.end()

    def device(self, cursor: Cursor) -> None:
        name = cursor.name()
        cursor.expect(":")
        kind = cursor.name()
        cursor.expect("sees")
        spaces = names_at(cursor)
        self.devices.append(Device(name, kind, spaces, names_at(cursor) if cursor.accept("copies") else ()))

    def queue(self, cursor: Cursor) -> None:
        name = cursor.name()
        cursor.expect("on")
        self.queues.append(Queue(name, cursor.name()))

    def arena(self, cursor: Cursor) -> None:
        name = cursor.name()
        cursor.expect(":")
        size = parse_dim_at(cursor)
        cursor.expect("bytes")
        cursor.expect("in")
        space = cursor.name()
        cursor.expect("aligned")
        self.arenas.append(Arena(name, space, size, cursor.integer()))

    def input(self, cursor: Cursor) -> None:
        name, kind = typed_at(cursor)
        policy = InputPolicy()
        if cursor.accept("donated"):
            policy = replace(policy, access="donated")
        elif cursor.accept("mutated"):
            policy = replace(policy, access="mutated", mutated_by=cursor.integer() if cursor.accept("by") else None)
        if cursor.accept("noncontiguous"):
            refuse = cursor.accept("refuse")
            if not refuse:
                cursor.expect("specialise")
            policy = replace(policy, noncontiguous="refuse" if refuse else "specialise")
        self.inputs.append(PlanInput(name, kind, policy))

    def output(self, cursor: Cursor) -> None:
        name, kind = typed_at(cursor)
        cursor.expect("is")
        buffer = cursor.name()
        policy = OutputPolicy()
        if cursor.accept("alias"):
            policy = replace(policy, kind="alias")
        elif cursor.accept("view"):
            policy = replace(policy, kind="view")
        policy = replace(
            policy,
            of=cursor.integer() if cursor.accept("of") else None,
            strides=dims_at(cursor) if cursor.accept("strides") else None,
            offset=parse_dim_at(cursor) if cursor.accept("offset") else None,
        )
        self.outputs.append(PlanOutput(name, kind, buffer, policy))

    def bind(self, cursor: Cursor) -> None:
        name = cursor.name()
        cursor.expect(":")
        cursor.expect("dimension")
        dimension = cursor.integer()
        cursor.expect("of")
        cursor.expect("input")
        binding = Binding(name, cursor.integer(), dimension)
        if cursor.accept("factor"):
            factor = cursor.integer()
            cursor.expect("addend")
            binding = replace(binding, factor=factor, addend=cursor.integer())
        self.bindings.append(binding)

    def guard(self, cursor: Cursor) -> None:
        self.guards.append(guard_at(cursor))

    def buffer(self, cursor: Cursor) -> None:
        name, kind = typed_at(cursor)
        cursor.expect("in")
        space = cursor.name()
        cursor.expect("at")
        place = _place(cursor)
        cursor.expect("aligned")
        alignment = cursor.integer()
        alias_set = cursor.name() if cursor.accept("set") else ""
        self.buffers.append(PlanBuffer(name, kind.shape, kind.dtype, space, place, alignment, alias_set))


def guard_at(cursor: Cursor) -> Guard:
    """A condition on symbols, behind the word `guard`."""
    value = parse_dim_at(cursor)
    nonnegative = cursor.accept(">=")
    if not nonnegative:
        cursor.expect("==")
    if cursor.integer() != 0:
        cursor.fail("a guard compares with 0")
    cursor.expect("else")
    return Guard(value, "nonnegative" if nonnegative else "zero", cursor.name("a message"))


def _place(cursor: Cursor) -> Place:
    if cursor.accept("allocation"):
        return MeasuredPlace()
    if cursor.accept("constant"):
        return ConstantPlace(cursor.name())
    if cursor.accept("arena"):
        arena = cursor.name()
        cursor.expect("+")
        return ArenaPlace(arena, parse_dim_at(cursor))
    given = cursor.accept("input")
    if not given:
        cursor.expect("output")
    position = cursor.integer()
    cursor.expect("+")
    offset = parse_dim_at(cursor)
    return InputPlace(position, offset) if given else OutputPlace(position, offset)


def typed_at(cursor: Cursor) -> tuple[str, TensorType]:
    """A name with element type and shape."""
    name = cursor.name()
    cursor.expect(":")
    dtype = parse_type(cursor)
    return name, TensorType(dims_at(cursor), dtype)


def symbol_at(cursor: Cursor) -> Symbol:
    """A symbol with its bounds."""
    measured = cursor.accept("measured")
    name = cursor.name()
    cursor.expect("in")
    lower = cursor.integer()
    cursor.expect("..")
    upper = cursor.integer() if cursor.token.kind == "number" or cursor.token.text == "-" else None
    return Symbol(name, lower, upper, cursor.integer() if cursor.accept("step") else 1, measured)


def names_at(cursor: Cursor) -> tuple[str, ...]:
    """Names in parentheses."""
    return listed_at(cursor, "(", ")", Cursor.name)


def dims_at(cursor: Cursor) -> tuple[Dim, ...]:
    """Dims in brackets."""
    return listed_at(cursor, "[", "]", parse_dim_at)


def listed_at(cursor: Cursor, start: str, stop: str, part: Callable[[Cursor], _Part]) -> tuple[_Part, ...]:
    """Parts between two signs, with commas between them."""
    cursor.expect(start)
    found: list[_Part] = []
    if cursor.accept(stop):
        return ()
    while True:
        found.append(part(cursor))
        if cursor.accept(stop):
            return tuple(found)
        cursor.expect(",")
