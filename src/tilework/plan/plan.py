"""The `Plan`: what runs, in which order, on which bytes. Immutable; compared by identity, printed by `plan.text`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from tilework.dims import Symbol
from tilework.fast_dataclass import dataclass, field
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import TensorType
from tilework.plan.buffers import (
    CPU,
    HOST,
    MAIN_QUEUE,
    Arena,
    Device,
    InputPlace,
    MeasuredPlace,
    MemorySpace,
    OutputPlace,
    PlanBuffer,
    Queue,
)
from tilework.plan.guard import Guard
from tilework.plan.steps import Step, bodies, walk

READ_ONLY = InputPolicy()
FRESH = OutputPolicy()

SegmentKind = Literal["captured", "interactive"]


@dataclass(frozen=True, eq=False)
class Segment:
    """Steps that run as one native call (`captured`), or one by one under the runtime's eyes (`interactive`).

    All steps of a segment are done before the next segment starts; events do not cross segments.
    """

    kind: SegmentKind
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class PlanInput:
    """An array that the caller gives, and how it may be treated."""

    name: str
    type: TensorType
    policy: InputPolicy = field(default=READ_ONLY)


@dataclass(frozen=True)
class PlanOutput:
    """An array that the caller gets: the contents of `buffer` at the end (`fresh`: its memory is the output's; `alias`:
    it is input `policy.of` itself; `view`: elements of that input at `policy.offset` and `policy.strides`).
    """

    name: str
    type: TensorType
    buffer: str
    policy: OutputPolicy = field(default=FRESH)


@dataclass(frozen=True)
class Binding:
    """Gives a symbol its value: extent number `dimension` of input `position` is `symbol * factor + addend`."""

    symbol: str
    position: int
    dimension: int
    factor: int = 1
    addend: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps over buffers. Every extent of an input must equal the input's shape at the bound symbols' values, besides
    the `guards`; symbols that no input binds are measured.
    """

    name: str
    inputs: tuple[PlanInput, ...]
    outputs: tuple[PlanOutput, ...]
    buffers: tuple[PlanBuffer, ...]
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...] = ()
    bindings: tuple[Binding, ...] = ()
    guards: tuple[Guard, ...] = ()
    arenas: tuple[Arena, ...] = ()
    spaces: tuple[MemorySpace, ...] = (HOST,)
    devices: tuple[Device, ...] = (CPU,)
    queues: tuple[Queue, ...] = (MAIN_QUEUE,)

    @cached_property
    def buffer_named(self) -> Mapping[str, PlanBuffer]:
        """Every buffer by name."""
        return MappingProxyType({buffer.name: buffer for buffer in self.buffers})

    @cached_property
    def arena_named(self) -> Mapping[str, Arena]:
        """Every arena by name."""
        return MappingProxyType({arena.name: arena for arena in self.arenas})

    @cached_property
    def symbol_named(self) -> Mapping[str, Symbol]:
        """Every symbol by name."""
        return MappingProxyType({symbol.name: symbol for symbol in self.symbols})

    @cached_property
    def alias_sets(self) -> Mapping[str, tuple[PlanBuffer, ...]]:
        """The members of each alias set by `alias_key`; a buffer without one is a set of its own."""
        found: dict[str, list[PlanBuffer]] = {}
        for buffer in self.buffers:
            found.setdefault(alias_key(buffer), []).append(buffer)
        return MappingProxyType({key: tuple(members) for key, members in found.items()})

    def walk(self) -> Iterator[tuple[str, Step]]:
        """Every step with its path (`"0.3"`: segment 0, step 3; `"0.3.then.1"` inside a branch), outer before inner."""
        for position, segment in enumerate(self.segments):
            yield from walk(segment.steps, f"{position}.")

    def replace(self, **changes: Any) -> Plan:
        """A copy with some fields changed."""
        return replace(self, **changes)


def needs_allocation(plan: Plan, buffer: PlanBuffer) -> bool:
    """Whether a step must allocate the buffer: measured places, and outputs whose size a step measures."""
    if isinstance(buffer.place, MeasuredPlace):
        return True
    if not isinstance(buffer.place, OutputPlace):
        return False
    shape = plan.outputs[buffer.place.position].type.shape
    return any(plan.symbol_named[name].measured for extent in shape for name in extent.names())


def alias_key(buffer: PlanBuffer) -> str:
    """What a buffer shares memory under: its alias set, or itself alone."""
    return f"set {buffer.alias_set}" if buffer.alias_set else f"buffer {buffer.name}"


def input_bindings(inputs: tuple[PlanInput, ...]) -> tuple[Binding, ...]:
    """A binding of each symbol that some input's extent is `symbol * factor + addend` of, the simplest one each."""
    found: dict[str, Binding] = {}
    for position, given in enumerate(inputs):
        for dimension, extent in enumerate(given.type.shape):
            if len(extent.terms) != 1 or len(extent.terms[0][0]) != 1:
                continue
            (atom,), factor = extent.terms[0]
            if not isinstance(atom, str) or factor <= 0:
                continue
            known = found.get(atom)
            if known is None or (factor, abs(extent.constant)) < (known.factor, abs(known.addend)):
                found[atom] = Binding(atom, position, dimension, factor, extent.constant)
    return tuple(found.values())


def whole_input(position: int, given: PlanInput, space: str = "host", alignment: int | None = None) -> PlanBuffer:
    """The buffer that is all of an input; aligned as its elements unless more is promised."""
    place = InputPlace(position)
    dtype = given.type.dtype
    return PlanBuffer(given.name, given.type.shape, dtype, space, place, alignment or dtype.itemsize)


def step_count(plan: Plan) -> int:
    """Steps of all segments, those inside control steps included."""

    def count(steps: tuple[Step, ...]) -> int:
        return sum(1 + sum(count(body) for _, body in bodies(step)) for step in steps)

    return sum(count(segment.steps) for segment in plan.segments)
