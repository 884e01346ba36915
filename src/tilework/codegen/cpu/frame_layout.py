"""The frame of a plan: the array of int64 slots that its driver reads and writes."""

from __future__ import annotations

from tilework.fast_dataclass import dataclass
from tilework.plan.buffers import ConstantPlace, MeasuredPlace
from tilework.plan.plan import Plan, needs_allocation

ERROR_SLOT, POOL_SLOT, POLL_SLOT, FIRST_FREE_SLOT = 0, 1, 2, 3


@dataclass(frozen=True)
class FrameLayout:
    """Which int64 slot of a call's frame holds what.

    Slot 0 is the error word, slot 1 the pool's address, slot 2 the address of the poll state. Then come the symbols,
    the base addresses of inputs, outputs, constants (by digest), arenas and measured memories (by the name that
    `PlanBuffer.memory` gives them), and, where steps allocate, the address of the function that they ask: `void
    allocate(i64 number, i64 keep)`, with the number of a memory in `memories`, writes the slot of the memory, and then
    0 into the last slot if all is well. (A return value would mean nothing where an exception ends the function.)
    """

    symbols: dict[str, int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: dict[str, int]
    arenas: dict[str, int]
    measured: dict[str, int]
    memories: tuple[str, ...]
    """The memories that steps allocate."""
    allocator: int
    """The slot of the function that allocates; 0 where no step does."""
    answer: int
    """The slot of what it answers; 0 where no step asks."""
    size: int


def frame_layout(plan: Plan) -> FrameLayout:
    """The frame of a plan: every part in the plan's own order."""
    slot = FIRST_FREE_SLOT
    symbols: dict[str, int] = {}
    for symbol in plan.symbols:
        symbols[symbol.name] = slot
        slot += 1
    inputs = tuple(range(slot, slot + len(plan.inputs)))
    slot += len(plan.inputs)
    outputs = tuple(range(slot, slot + len(plan.outputs)))
    slot += len(plan.outputs)
    constants: dict[str, int] = {}
    for buffer in plan.buffers:
        if isinstance(buffer.place, ConstantPlace) and buffer.place.digest not in constants:
            constants[buffer.place.digest] = slot
            slot += 1
    arenas: dict[str, int] = {}
    for arena in plan.arenas:
        arenas[arena.name] = slot
        slot += 1
    measured: dict[str, int] = {}
    memories: dict[str, None] = {}
    for buffer in plan.buffers:
        if needs_allocation(plan, buffer):
            memories[buffer.memory] = None
        if isinstance(buffer.place, MeasuredPlace) and buffer.memory not in measured:
            measured[buffer.memory] = slot
            slot += 1
    allocator = slot if memories else 0
    answer = slot + 1 if memories else 0
    slot += 2 if memories else 0
    return FrameLayout(symbols, inputs, outputs, constants, arenas, measured, tuple(memories), allocator, answer, slot)
