"""Control steps: which values of subgraphs are the same bytes as values around them, and what is copied.

- `if`: inputs of a branch are the operands; what a branch returns is computed into the result where it computed it at
  all, and copied there at the end of the branch otherwise.
- `while` and `scan`: the state lives in the results. It is copied there before the first trip, every trip reads it
  there, and what the body returns is copied there at the end of the trip. State that the body hands on unchanged is
  the operand itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tilework.compiler.plan_items import PlanBlock, PlanControl
from tilework.compiler.stacking import ProgramKernel
from tilework.dims import Dim
from tilework.plan.buffers import PlanBuffer
from tilework.plan.steps import Branch, Repeat, Step


@dataclass
class ByteClasses:
    """Values that are the same bytes: a reshape and its operand. Found by following operands to the first."""

    first: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, name: str) -> str:
        while name in self.first:
            name = self.first[name]
        return name

    def join(self, name: str, to: str) -> None:
        """Make a value (the first of its class, or alone) the same bytes as another."""
        self.first[self.of(name)] = to


class StepPlanner(Protocol):
    """What planning a control step needs of the planner of the whole."""

    classes: ByteClasses

    def nested(self, block: PlanBlock) -> list[Step]:
        """The steps of a block."""
        ...

    def buffer_of(self, name: str) -> PlanBuffer:
        """The buffer of a value."""
        ...

    def temporary(self, stem: str, like: PlanBuffer) -> PlanBuffer:
        """A new arena buffer of the same shape."""
        ...

    def copied(self, source: PlanBuffer, target: PlanBuffer, origin: str) -> Step:
        """A step that copies all elements."""
        ...

    def called(self, name: str, kernel: ProgramKernel, arguments: Sequence[PlanBuffer], origin: str) -> Step:
        """A step that calls a kernel."""
        ...


def share_bytes(item: PlanControl, classes: ByteClasses, share_block: Callable[[PlanBlock], None]) -> None:
    """Decide what is the same bytes inside a control node and around it. `share_block` does so for what is in a block.

    Formal inputs are bound first, so that views of them inside are views of what they are bound to.
    """
    node = item.control.node
    if node.operator == "if":
        for formals, block in zip(item.control.formals, item.blocks, strict=True):
            for formal, operand in zip(formals, node.inputs[1:], strict=True):
                classes.first[formal.name] = operand
            share_block(block)
            own = {value.name for inner in block.graph.nodes for value in inner.outputs}
            for result, returned in zip(node.outputs, block.graph.outputs, strict=True):
                if classes.of(returned) in own:
                    classes.join(returned, result.name)
        return
    body = item.blocks[-1].graph
    for number in range(item.control.state_count):
        operand, result = node.inputs[number], node.outputs[number].name
        kept = item.control.formals[-1][number].name == body.outputs[number]
        if kept:
            classes.first[result] = operand
        for formals in item.control.formals:
            classes.first[formals[number].name] = operand if kept else result
    for block in item.blocks:
        share_block(block)


def control_steps(planner: StepPlanner, item: PlanControl) -> list[Step]:
    """The steps of a control node."""
    if item.control.node.operator == "if":
        return [_branch(planner, item)]
    return _repetition(planner, item)


def _branch(planner: StepPlanner, item: PlanControl) -> Step:
    node = item.control.node
    arms: list[tuple[Step, ...]] = []
    for block in item.blocks:
        steps = planner.nested(block)
        for result, returned in zip(node.outputs, block.graph.outputs, strict=True):
            if planner.classes.of(returned) != planner.classes.of(result.name):
                source, target = planner.buffer_of(returned), planner.buffer_of(result.name)
                steps.append(planner.copied(source, target, node.location))
        arms.append(tuple(steps))
    predicate = planner.buffer_of(node.inputs[0]).name
    return Branch(node.name, predicate, arms[0], arms[1], origin=node.location)


def _repetition(planner: StepPlanner, item: PlanControl) -> list[Step]:
    node, classes = item.control.node, planner.classes
    count = item.control.state_count
    moving = [n for n in range(count) if classes.of(node.outputs[n].name) != classes.of(node.inputs[n])]
    state = [planner.buffer_of(node.outputs[n].name) for n in moving]
    steps = [
        planner.copied(planner.buffer_of(node.inputs[n]), target, node.location)
        for n, target in zip(moving, state, strict=True)
    ]
    body = item.blocks[-1]
    collected = [planner.buffer_of(value.name) for value in node.outputs[count:]]
    for rows, how in zip(collected, item.stacked, strict=True):
        steps.append(planner.called(f"{node.name}.zeros", how.zeros, (rows,), node.location))
    condition = ""
    if node.operator == "while":
        steps += planner.nested(item.blocks[0])
        condition = planner.buffer_of(item.blocks[0].graph.outputs[0]).name
    trip = planner.nested(body)
    for returned, rows, how in zip(body.graph.outputs[count:], collected, item.stacked, strict=True):
        row = planner.buffer_of(returned)
        trip.append(planner.called(f"{node.name}.row", how.stored_row, (row, rows), node.location))
    sources = [planner.buffer_of(body.graph.outputs[n]) for n in moving]
    trip += _moved_together(planner, sources, state, node.location)
    if node.operator == "while":
        trip += planner.nested(item.blocks[0])
    steps.append(
        Repeat(node.name, tuple(trip), _trips(planner, item), condition, item.control.trip, origin=node.location)
    )
    return steps


def _trips(planner: StepPlanner, item: PlanControl) -> Dim | None:
    node = item.control.node
    if node.operator == "while":
        return None
    return planner.buffer_of(node.inputs[item.control.state_count]).shape[0]


def _moved_together(
    planner: StepPlanner, sources: Sequence[PlanBuffer], targets: Sequence[PlanBuffer], origin: str
) -> list[Step]:
    """Copies that all read before any writes: what another target holds is kept aside first."""
    classes = planner.classes
    held = {classes.of(target.name) for target in targets}
    first: list[Step] = []
    then: list[Step] = []
    for source, target in zip(sources, targets, strict=True):
        if classes.of(source.name) == classes.of(target.name):
            continue
        if classes.of(source.name) in held:
            kept = planner.temporary(f"{target.name} kept", target)
            first.append(planner.copied(source, kept, origin))
            source = kept
        then.append(planner.copied(source, target, origin))
    return first + then
