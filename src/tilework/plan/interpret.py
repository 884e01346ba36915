"""The slow, obvious way to run a plan: the oracle of every other.

Steps of different queues run in a random order that the waits allow, one at a time, each through the loop interpreter.
Memory is bytes at the plan's offsets, poisoned where no value lives. A plan that misses a wait, or places two live
buffers on the same bytes, gives wrong results for some seed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np

from tilework.dtypes import boolean, dtype_of
from tilework.errors import CallError, PlanError, RunError, UsageError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.interpret import interpret
from tilework.plan.boxes import boxes_of
from tilework.plan.buffers import ConstantPlace, MeasuredPlace, OutputPlace
from tilework.plan.order import order_of
from tilework.plan.plan import Plan, needs_allocation
from tilework.plan.poisoned_memory import PoisonedMemory, poisoned, set_bytes
from tilework.plan.protocols import Array
from tilework.plan.signature import KernelBuffer
from tilework.plan.steps import (
    Allocate,
    BlackBoxStep,
    Branch,
    Carry,
    Check,
    CopyStep,
    KernelStep,
    LibraryStep,
    Repeat,
    Sized,
    Step,
    queues_of,
)

_NO_CONSTANTS: Mapping[str, Array] = {}


def interpret_plan(
    plan: Plan, inputs: Sequence[Array], constants: Mapping[str, Array] = _NO_CONSTANTS, seed: int = 0
) -> tuple[Array, ...]:
    """The outputs of a plan, as new arrays (of outputs that are aliases and views too; `inputs` are never changed).

    `constants` are by digest. `seed` chooses the order of steps among those that the waits allow. Raises `CallError`
    1701 to 1707 for inputs that do not fit, `RunError` 1424 for a measured value out of its bounds, `PlanError` 1409
    where no step can go on, 1415, 1418, 1420, 1421, and what `loops.interpret.interpret` raises. The plan need not be
    verified: that is what this is the oracle of.
    """
    return _Run(plan, inputs, constants, seed).run()


def bind_inputs(plan: Plan, inputs: Sequence[Array]) -> dict[str, int]:
    """Check arrays against a plan's inputs, and return the values of the symbols (`CallError` 1701 to 1707)."""
    if len(inputs) != len(plan.inputs):
        raise CallError(1701, f"{plan.name} takes {len(plan.inputs)} arrays, not {len(inputs)}")
    for given, array in zip(plan.inputs, inputs, strict=True):
        where = f"input {given.name}"
        if dtype_of(array) != given.type.dtype:
            raise CallError(1702, f"expected {given.type.dtype}, not {array.dtype}", where=where)
        if array.ndim != given.type.rank:
            raise CallError(1704, f"expected {given.type}, not an array of shape {array.shape}", where=where)
    symbols: dict[str, int] = {}
    for binding in plan.bindings:
        extent = int(inputs[binding.position].shape[binding.dimension]) - binding.addend
        symbols[binding.symbol] = extent // binding.factor
    for symbol in plan.symbols:
        if symbol.name in symbols:
            _check_bounds(plan, symbol.name, symbols[symbol.name])
    for given, array in zip(plan.inputs, inputs, strict=True):
        for dimension, (extent, actual) in enumerate(zip(given.type.shape, array.shape, strict=True)):
            wanted = extent.evaluate(symbols)
            if wanted != actual:
                code = 1705 if extent.is_constant else 1706
                text = f"dimension {dimension} is {actual}; {given.type} says {wanted}"
                raise CallError(code, text, where=f"input {given.name}")
    for guard in plan.guards:
        if not guard.holds(symbols):
            raise CallError(1707, guard.message)
    return symbols


def _check_bounds(plan: Plan, name: str, value: int) -> None:
    symbol = plan.symbol_named[name]
    low, high = symbol.bounds
    if low <= value <= high and value % symbol.multiple == 0:
        return
    if symbol.measured:
        raise RunError(1424, f"{name} = {value} was measured, but is {symbol}")
    raise CallError(1707, f"{name} = {value}, but is {symbol}")


@dataclass
class _List:
    """One list of steps that is running: how far each queue has come, and the events signalled."""

    steps: tuple[Step, ...]
    prefix: str
    outer: _List | None
    owner: int
    """The control step's position in the outer list."""
    queues: dict[str, list[int]]
    events: set[int] = field(default_factory=set[int])
    iterations: dict[str, int] = field(default_factory=dict[str, int])
    running: set[int] = field(default_factory=set[int])
    trip: int = 0
    trips: int | None = None

    def signalled(self, event: int) -> bool:
        return event in self.events or (self.outer is not None and self.outer.signalled(event))

    def ready(self) -> list[int]:
        """Positions of steps that may start now."""
        heads = dict.fromkeys(waiting[-1] for waiting in self.queues.values() if waiting)
        return [
            position
            for position in heads
            if position not in self.running
            and all(self.queues[queue][-1] == position for queue in queues_of(self.steps[position]))
            and all(self.signalled(event) for event in self.steps[position].waits)
        ]


def _list(steps: tuple[Step, ...], prefix: str, outer: _List | None, owner: int) -> _List:
    queues: dict[str, list[int]] = {}
    for position in reversed(range(len(steps))):
        for queue in queues_of(steps[position]):
            queues.setdefault(queue, []).append(position)
    iterations = dict(outer.iterations) if outer is not None else {}
    return _List(steps, prefix, outer, owner, queues, iterations=iterations)


class _Run:
    def __init__(self, plan: Plan, inputs: Sequence[Array], constants: Mapping[str, Array], seed: int) -> None:
        self.plan = plan
        self.generator = random.Random(seed)
        self.symbols = bind_inputs(plan, inputs)
        self.order = order_of(plan)
        self.nodes = {node.path: index for index, node in enumerate(self.order.nodes)}
        self.memory = PoisonedMemory(plan, self.order, self.symbols)
        self.lists: list[_List] = []
        for position, array in enumerate(inputs):
            self.memory.holds(f"input {position}", array)
        for buffer in plan.buffers:
            if isinstance(buffer.place, ConstantPlace):
                array = constants.get(buffer.place.digest)
                if array is None:
                    raise PlanError(1420, f"constant {buffer.place.digest} of buffer {buffer.name} was not given")
                self.memory.holds(buffer.memory, array)
        for arena in plan.arenas:
            self.memory.allocate(f"arena {arena.name}", int(arena.bytes.evaluate(self.symbols)))
        for position, output in enumerate(plan.outputs):
            measured = any(extent.names() - set(self.symbols) for extent in output.type.shape)
            if output.policy.kind == "fresh" and not measured:
                self.memory.allocate(f"output {position}", int(output.type.bytes.evaluate(self.symbols)))

    def run(self) -> tuple[Array, ...]:
        for position, segment in enumerate(self.plan.segments):
            self.lists = [_list(segment.steps, f"{position}.", None, -1)]
            while self.lists:
                self.advance()
        return tuple(self.output(position) for position in range(len(self.plan.outputs)))

    def output(self, position: int) -> Array:
        output = self.plan.outputs[position]
        array = self.memory.array(output.buffer)
        shape = tuple(int(extent.evaluate(self.symbols)) for extent in output.type.shape)
        policy = output.policy
        if policy.kind != "view":
            return array.reshape(shape).copy()
        assert policy.strides is not None
        assert policy.offset is not None
        place = np.full(shape, policy.offset.evaluate(self.symbols), np.int64)
        for index, stride in zip(np.indices(shape), policy.strides, strict=True):
            place += index * int(stride.evaluate(self.symbols))
        return array.reshape(-1)[place]

    # -- order -------------------------------------------------------------------------------------------------------
    def advance(self) -> None:
        """Run one step that may run, or end a list that has none left."""
        for running in self.lists:
            if not any(running.queues.values()):
                self.leave(running)
                return
        choices = [(running, position) for running in self.lists for position in running.ready()]
        if not choices:
            heads = [(running, waiting[-1]) for running in self.lists for waiting in running.queues.values() if waiting]
            stuck = dict.fromkeys(f"{li.prefix}{position}" for li, position in heads if position not in li.running)
            raise PlanError(1409, f"no step can go on: {', '.join(stuck)} wait for events that nobody signals")
        running, position = self.generator.choice(choices)
        step = running.steps[position]
        node = self.nodes[f"{running.prefix}{position}"]
        if isinstance(step, (Branch, Repeat)):
            running.running.add(position)
            self.memory.ran(1 << node)
            self.enter(step, running, position, node)
            return
        self.execute(step, {**self.symbols, **running.iterations})
        self.memory.ran(1 << node)
        self.finish(running, position)

    def finish(self, running: _List, position: int) -> None:
        step = running.steps[position]
        for queue in queues_of(step):
            running.queues[queue].pop()
        running.events.update(step.signals)

    def enter(self, step: Branch | Repeat, running: _List, position: int, node: int) -> None:
        prefix = f"{running.prefix}{position}."
        if isinstance(step, Branch):
            taken = self.truth(step.predicate)
            arm, skipped = ("then", "else") if taken else ("else", "then")
            self.memory.ran(self.inside(node, skipped))
            self.lists.append(_list(step.then if taken else step.otherwise, f"{prefix}{arm}.", running, position))
            return
        body = _list(step.body, f"{prefix}body.", running, position)
        if step.trips is not None:
            body.trips = int(step.trips.evaluate({**self.symbols, **running.iterations}))
        self.lists.append(body)
        self.trip(step, body)

    def trip(self, step: Repeat, body: _List) -> None:
        """Start a trip, or end the loop."""
        if (body.trips is not None and body.trip >= body.trips) or (step.condition and not self.truth(step.condition)):
            node = self.nodes[body.prefix.removesuffix(".body.")]
            self.memory.ran(self.inside(node, "body"))
            self.close(body)
            return
        assert body.outer is not None
        fresh = _list(step.body, body.prefix, body.outer, body.owner)
        body.queues, body.events, body.iterations = fresh.queues, set(), fresh.iterations
        if step.iteration:
            body.iterations[step.iteration] = body.trip
        body.trip += 1
        self.memory.begin_trip(self.inside(self.nodes[body.prefix.removesuffix(".body.")], "body"))

    def leave(self, done: _List) -> None:
        """The steps of a list have all run."""
        if done.outer is None:
            self.lists.remove(done)
            return
        step = done.outer.steps[done.owner]
        if isinstance(step, Repeat):
            self.trip(step, done)
        else:
            self.close(done)

    def close(self, done: _List) -> None:
        """A control step is over."""
        self.lists.remove(done)
        assert done.outer is not None
        self.memory.ran(1 << self.nodes[f"{done.outer.prefix}{done.owner} done"])
        done.outer.running.discard(done.owner)
        self.finish(done.outer, done.owner)

    def inside(self, node: int, arm: str) -> int:
        return sum(1 << i for i, found in enumerate(self.order.nodes) if (node, arm) in found.frames)

    def truth(self, name: str) -> bool:
        array = self.memory.array(name)
        if dtype_of(array) != boolean or array.size != 1:
            raise PlanError(1417, f"buffer {name} decides, but is no single boolean")
        value = int(array.view(np.uint8).reshape(-1)[0])
        if value > 1:
            raise PlanError(1408, f"buffer {name} decides before it is written")
        return bool(value)

    # -- steps -------------------------------------------------------------------------------------------------------
    def execute(self, step: Step, symbols: Mapping[str, int]) -> None:
        match step:
            case KernelStep() | LibraryStep():
                self.kernel(step, symbols)
            case CopyStep():
                target = self.memory.array(step.target)
                target[...] = self.memory.array(step.source).reshape(target.shape)
            case BlackBoxStep():
                self.black_box(step)
            case Allocate():
                self.allocate(step, symbols)
            case Carry():
                self.carry(step, symbols)
            case Check():
                for guard in step.guards:
                    if not guard.holds(symbols):
                        raise RunError(step.code, guard.message, where=step.origin or step.name)
            case _:
                raise UsageError(1001, f"{type(step).__name__} is no step that runs by itself")

    def kernel(self, step: KernelStep | LibraryStep, symbols: Mapping[str, int]) -> None:
        arrays: dict[str, Array] = {}
        written: dict[str, Array] = {}
        stated = {argument.buffer.name for argument in step.meaning.arguments}
        for formal, name in zip(step.kernel.buffers, step.arguments, strict=True):
            if formal.name in stated:
                array = arrays[formal.name] = self.memory.array(name)
                outside = self.outside(step, formal, array.shape, symbols)
                if outside is not None and formal.access == "read":
                    arrays[formal.name] = poisoned(array, outside)
                elif outside is not None:
                    written[name] = written.get(name, True) & outside
            elif formal.access == "workspace":
                self.memory.poison(name)
        values = dict(zip((symbol.name for symbol in step.kernel.symbols), step.symbols, strict=True))
        stated_symbols = [symbol.name for symbol in step.meaning.symbols if symbol.name in values]
        wanted = {name: int(values[name].evaluate(symbols)) for name in stated_symbols}
        before = [(name, outside, self.memory.array(name)[outside].copy()) for name, outside in written.items()]
        interpret(step.meaning, arrays, wanted, seed=self.generator.randrange(1 << 30))
        for name, outside, contents in before:
            if self.memory.array(name)[outside].tobytes() != contents.tobytes():
                raise PlanError(1415, f"kernel {step.kernel.name} writes outside its boxes", where=f"step {step.name}")

    def outside(
        self, step: KernelStep | LibraryStep, formal: KernelBuffer, shape: tuple[int, ...], symbols: Mapping[str, int]
    ) -> Array | None:
        """Which elements of an argument are in none of its boxes; None where it has none."""
        if not formal.boxes:
            return None
        found = np.ones(shape, bool)
        for box in boxes_of(step, formal):
            starts = [int(entry.evaluate(symbols)) for entry in box.start]
            sizes = [int(extent.evaluate(symbols)) for extent in box.extents]
            found[tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))] = False
        return found

    def black_box(self, step: BlackBoxStep) -> None:
        given: list[Array] = []
        for name in step.inputs:
            array = self.memory.array(name).copy()
            array.flags.writeable = False
            given.append(array)
        results = [np.asarray(result) for result in step.box.run(given)]
        where = f"step {step.name}: {step.box.operator}"
        if len(results) != len(step.outputs):
            raise PlanError(1421, f"returned {len(results)} results, not {len(step.outputs)}", where=where)
        for extent in step.measures:
            result = results[extent.output]
            if extent.dimension >= result.ndim:
                raise PlanError(1421, f"result {extent.output} has shape {result.shape}", where=where)
            self.measure(extent.symbol, int(result.shape[extent.dimension]))
        measured = {extent.symbol for extent in step.measures}
        for name, result in zip(step.outputs, results, strict=True):
            buffer = self.plan.buffer_named[name]
            if any(extent.names() & measured for extent in buffer.shape) or isinstance(buffer.place, MeasuredPlace):
                self.memory.allocate(buffer.memory, set_bytes(self.plan, name, self.symbols))
            target = self.memory.array(name)
            if result.shape != target.shape or result.dtype != target.dtype:
                text = f"{name} should be {target.dtype}{list(target.shape)}, not {result.dtype}{list(result.shape)}"
                raise PlanError(1421, text, where=where)
            target[...] = result

    def allocate(self, step: Allocate, symbols: Mapping[str, int]) -> None:
        for reading in step.readings:
            if isinstance(reading, Sized):
                self.measure(reading.symbol, int(reading.value.evaluate(symbols)))
                continue
            elements = self.memory.array(reading.buffer).reshape(-1)
            self.measure(reading.symbol, int(elements[reading.element]))
        for name in step.buffers:
            buffer = self.plan.buffer_named[name]
            if isinstance(buffer.place, (MeasuredPlace, OutputPlace)):
                self.memory.allocate(buffer.memory, set_bytes(self.plan, name, self.symbols), keep=step.keep)

    def carry(self, step: Carry, symbols: Mapping[str, int]) -> None:
        held = [self.memory.array(source).copy() for source, _ in step.pairs]
        values = [int(size.value.evaluate(symbols)) for size in step.sizes]
        for size, value in zip(step.sizes, values, strict=True):
            self.measure(size.symbol, value)
        for (_, name), array in zip(step.pairs, held, strict=True):
            buffer = self.plan.buffer_named[name]
            if needs_allocation(self.plan, buffer):
                self.memory.allocate(buffer.memory, set_bytes(self.plan, name, self.symbols))
            target = self.memory.array(name)
            if target.shape != array.shape:
                text = f"carries {list(array.shape)} to {name}, which is {list(target.shape)}"
                raise PlanError(1404, text, where=f"step {step.name}")
            target[...] = array

    def measure(self, symbol: str, value: int) -> None:
        if symbol not in self.plan.symbol_named:
            raise PlanError(1416, f"{symbol!r} is no symbol of the plan")
        _check_bounds(self.plan, symbol, value)
        self.symbols[symbol] = value
