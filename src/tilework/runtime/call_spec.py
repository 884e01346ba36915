"""What a call takes and gives: the gate is built from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tilework.codegen.cpu.frame_layout import FrameLayout
from tilework.dims import Symbol
from tilework.fast_dataclass import dataclass, field
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import TensorType
from tilework.plan.guard import Guard
from tilework.plan.plan import Binding, Plan, PlanInput, input_bindings


@dataclass(frozen=True)
class GateInput:
    """An input: its name, type and policy, the frame slot for its address, and the bytes its address is a multiple
    of.
    """

    name: str
    type: TensorType
    slot: int
    policy: InputPolicy = field(default=InputPolicy())
    alignment: int = 1


@dataclass(frozen=True)
class GateOutput:
    """An output: its name and type, the frame slot for its address, and whether it is fresh, an input, or a view of
    one.
    """

    name: str
    type: TensorType
    slot: int
    policy: OutputPolicy = field(default=OutputPolicy())


@dataclass(frozen=True)
class GateSpec:
    """What a call takes and gives.

    `symbol_slots` says which frame slot holds each symbol; a symbol that no input binds (a measured one) may have a
    slot too. `bindings` say which extents give symbols their values (None: the simplest extent of each); `guards` are
    conditions on the symbols besides the shapes.
    """

    inputs: tuple[GateInput, ...]
    outputs: tuple[GateOutput, ...]
    symbols: tuple[Symbol, ...] = ()
    symbol_slots: Mapping[str, int] = field(default_factory=dict[str, int])
    bindings: tuple[Binding, ...] | None = None
    guards: tuple[Guard, ...] = ()

    @cached_property
    def bound(self) -> tuple[Binding, ...]:
        """The bindings that hold."""
        if self.bindings is not None:
            return self.bindings
        return input_bindings(tuple(PlanInput(given.name, given.type) for given in self.inputs))


def call_spec(plan: Plan, layout: FrameLayout) -> GateSpec:
    """What a call of this plan takes and gives, in frames of this layout."""
    inputs = tuple(
        GateInput(given.name, given.type, slot, given.policy, given.type.dtype.itemsize)
        for given, slot in zip(plan.inputs, layout.inputs, strict=True)
    )
    outputs = tuple(
        GateOutput(output.name, output.type, slot, output.policy)
        for output, slot in zip(plan.outputs, layout.outputs, strict=True)
    )
    return GateSpec(inputs, outputs, plan.symbols, layout.symbols, plan.bindings, plan.guards)
