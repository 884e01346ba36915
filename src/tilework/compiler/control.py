"""Control steps: which values of subgraphs are the same bytes as values around them, and what is copied.

- `if`: inputs of a branch are the operands; what a branch returns is computed into the result where it computed it at
  all, and copied there at the end of the branch otherwise.
- `while` and `scan`: the state lives in the results. It is copied there before the first trip, every trip reads it
  there, and what the body returns is copied there at the end of the trip. State that the body hands on unchanged is
  the operand itself.
- State that changes its size lives in the body's own inputs, and is carried there before the first trip and at the end
  of each; its symbols are bound anew every time. After the last trip it is carried into the results.
- Rows whose number the run decides live in the results, which grow: one more row is allocated before each is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tilework.compiler.plan_items import PlanBlock, PlanControl
from tilework.compiler.stacking import ProgramKernel
from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass, field
from tilework.graph.types import TensorType, ValueType
from tilework.ops.control._changing import changing_symbols, extents_of
from tilework.ops.control.while_ import end_extents, rows_symbol
from tilework.plan.buffers import PlanBuffer
from tilework.plan.steps import Allocate, Branch, Carry, Repeat, Sized, Step


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

    def nested(self, block: PlanBlock, after: Callable[[], list[Step]] = list) -> list[Step]:
        """The steps of a block, and what comes after them in the same list. What these allocate is only so there."""
        ...

    def buffer_of(self, name: str) -> PlanBuffer:
        """The buffer of a value."""
        ...

    def temporary(self, stem: str, like: PlanBuffer) -> PlanBuffer:
        """A new arena buffer of the same shape."""
        ...

    def copied(self, source: PlanBuffer, target: PlanBuffer, origin: str) -> list[Step]:
        """Steps that copy all elements, and allocate what they are copied to where a step has to."""
        ...

    def is_allocated(self, buffers: Sequence[PlanBuffer]) -> None:
        """Take note that steps of the caller's own allocate buffers."""
        ...

    def called(self, name: str, kernel: ProgramKernel, arguments: Sequence[PlanBuffer], origin: str) -> list[Step]:
        """Steps that call a kernel, and allocate what it writes where a step has to."""
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
    changing = _changing(item)
    for number in range(item.control.state_count):
        operand, result = node.inputs[number], node.outputs[number].name
        formal = item.control.formals[-1][number].name
        if number in changing:
            for formals in item.control.formals[:-1]:
                classes.first[formals[number].name] = formal
            continue
        kept = formal == body.outputs[number]
        if kept:
            classes.first[result] = operand
        for formals in item.control.formals:
            classes.first[formals[number].name] = operand if kept else result
    for block in item.blocks:
        share_block(block)


def growing_rows(item: PlanControl) -> tuple[str, ...]:
    """Results of a repetition that grow by a row a trip."""
    if item.control.node.operator != "while":
        return ()
    return tuple(value.name for value in item.control.collected)


def control_steps(planner: StepPlanner, item: PlanControl) -> list[Step]:
    """The steps of a control node."""
    if item.control.node.operator == "if":
        return [_branch(planner, item)]
    return _repetition(planner, item)


def _branch(planner: StepPlanner, item: PlanControl) -> Step:
    node = item.control.node
    arms: list[tuple[Step, ...]] = []
    for block in item.blocks:
        pairs = zip(node.outputs, block.graph.outputs, strict=True)
        handed_on = [
            (planner.buffer_of(returned), planner.buffer_of(result.name))
            for result, returned in pairs
            if planner.classes.of(returned) != planner.classes.of(result.name)
        ]

        def copies(handed_on: Sequence[tuple[PlanBuffer, PlanBuffer]] = handed_on) -> list[Step]:
            return [step for one, other in handed_on for step in planner.copied(one, other, node.location)]

        arms.append(tuple(planner.nested(block, copies)))
    predicate = planner.buffer_of(node.inputs[0]).name
    return Branch(node.name, predicate, arms[0], arms[1], origin=node.location)


def _changing(item: PlanControl) -> frozenset[int]:
    """The states of a `while` whose sizes change, by number."""
    node = item.control.node
    if node.operator != "while":
        return frozenset()
    symbols = set(changing_symbols(node.subgraphs[-1]))
    return frozenset(
        number
        for number, value in enumerate(item.control.formals[-1])
        if any(extent.names() & symbols for extent in value.tensor.shape)
    )


def _repetition(planner: StepPlanner, item: PlanControl) -> list[Step]:
    node, classes = item.control.node, planner.classes
    count, changing = item.control.state_count, _changing(item)
    body, formals = item.blocks[-1], item.control.formals[-1]
    moving = [
        n for n in range(count) if n not in changing and classes.of(node.outputs[n].name) != classes.of(node.inputs[n])
    ]
    state = {n: planner.buffer_of(node.outputs[n].name) for n in moving}
    state |= {n: planner.buffer_of(formals[n].name) for n in sorted(changing)}
    steps: list[Step] = []
    for n in moving:
        steps += planner.copied(planner.buffer_of(node.inputs[n]), state[n], node.location)
    planner.is_allocated([state[n] for n in changing])
    starts = [planner.buffer_of(name) for name in node.inputs[:count]]
    steps += _carried(item, f"start {node.name}", {n: (starts[n], state[n]) for n in sorted(changing)})
    collected = [planner.buffer_of(value.name) for value in node.outputs[count:]]
    names = tuple(buffer.name for buffer in collected)
    number = rows_symbol(node)
    if number and collected:
        planner.is_allocated(collected)
        none = (Sized(number, dim(0)),)
        steps.append(Allocate(f"{node.name}.rows", none, names, keep=True, origin=node.location))
    for rows, how in zip(collected, item.stacked, strict=True):
        if how.zeros is not None:
            steps += planner.called(f"{node.name}.zeros", how.zeros, (rows,), node.location)
    condition = ""
    if node.operator == "while":
        steps += planner.nested(item.blocks[0])
        condition = planner.buffer_of(item.blocks[0].graph.outputs[0]).name
    trip = planner.nested(body)
    if number and collected:
        one_more = (Sized(number, dim(number) + 1),)
        trip.append(Allocate(f"{node.name}.more", one_more, names, keep=True, origin=node.location))
    for returned, rows, how in zip(body.graph.outputs[count:], collected, item.stacked, strict=True):
        row = planner.buffer_of(returned)
        trip += planner.called(f"{node.name}.row", how.stored_row, (row, rows), node.location)
    sources = {n: planner.buffer_of(body.graph.outputs[n]) for n in state}
    trip += _moved_together(planner, item, {n: (sources[n], state[n]) for n in state}, changing)
    if node.operator == "while":
        trip += planner.nested(item.blocks[0])
    steps.append(
        Repeat(node.name, tuple(trip), _trips(planner, item), condition, item.control.trip, origin=node.location)
    )
    if changing:
        results = [planner.buffer_of(node.outputs[n].name) for n in sorted(changing)]
        planner.is_allocated(results)
        pairs = tuple((state[n].name, result.name) for n, result in zip(sorted(changing), results, strict=True))
        sizes = tuple(Sized(str(extent), dim(symbol)) for symbol, extent in end_extents(node).items())
        steps.append(Carry(f"end {node.name}", pairs, sizes, origin=node.location))
    return steps


def _carried(item: PlanControl, name: str, pairs: dict[int, tuple[PlanBuffer, PlanBuffer]]) -> list[Step]:
    """A step that hands on states whose sizes change, with the values of their symbols."""
    if not pairs:
        return []
    node = item.control.node
    found: list[ValueType] = [TensorType(source.shape, source.dtype) for source, _ in pairs.values()]
    wanted: list[ValueType] = [item.control.formals[-1][n].type for n in pairs]
    sizes = extents_of(found, wanted, changing_symbols(node.subgraphs[-1]))
    between = tuple((source.name, target.name) for source, target in pairs.values() if source.name != target.name)
    named = tuple(Sized(symbol, value) for symbol, value in sizes.items())
    return [Carry(name, between, named, origin=node.location)]


def _trips(planner: StepPlanner, item: PlanControl) -> Dim | None:
    node = item.control.node
    if node.operator == "while":
        return None
    return planner.buffer_of(node.inputs[item.control.state_count]).shape[0]


def _moved_together(
    planner: StepPlanner,
    item: PlanControl,
    moves: dict[int, tuple[PlanBuffer, PlanBuffer]],
    changing: frozenset[int],
) -> list[Step]:
    """Copies that all read before any writes: what another target holds is kept aside first."""
    classes, origin = planner.classes, item.control.node.location
    held = {classes.of(target.name) for _, target in moves.values()}
    first: list[Step] = []
    then: list[Step] = []
    carried: dict[int, tuple[PlanBuffer, PlanBuffer]] = {}
    for number, (source, target) in moves.items():
        if classes.of(source.name) == classes.of(target.name) and number not in changing:
            continue
        if classes.of(source.name) in held and source.name != target.name:
            kept = planner.temporary(f"{target.name} kept", source)
            first += planner.copied(source, kept, origin)
            source = kept
        if number in changing:
            carried[number] = (source, target)
        else:
            then += planner.copied(source, target, origin)
    return first + then + _carried(item, f"next {item.control.node.name}", carried)
