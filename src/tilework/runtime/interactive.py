"""Running a plan step by step: the same kernels over the same frame, each called from Python and so timed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tilework.codegen.cpu.frame_layout import FrameLayout
from tilework.errors import CodegenError
from tilework.plan.buffers import ArenaPlace, ConstantPlace, InputPlace, MeasuredPlace, OutputPlace, PlanBuffer
from tilework.plan.guard import Guard
from tilework.plan.plan import Plan, needs_allocation
from tilework.plan.steps import Allocate, Branch, Carry, Check, CopyStep, KernelStep, LibraryStep, Repeat, Sized, Step
from tilework.runtime.context import Context
from tilework.runtime.frame import ERROR_SLOT, FIRST_SLOT, Frame
from tilework.runtime.measured import MeasuredMemory
from tilework.runtime.ports import StepKind

_COPIED = 1 << 24
"""Bytes copied at once: a few milliseconds, after which a signal is heard."""


def run_steps(
    plan: Plan,
    layout: FrameLayout,
    frame: Frame,
    symbols: Mapping[str, int],
    entries: Mapping[str, int],
    context: Context,
    memory: MeasuredMemory | None = None,
) -> Iterator[tuple[Step, Callable[[], int]]]:
    """Each step that is to run next, and the function that runs it (0: fine; else a fault is in the error word, or in
    `memory`, where what steps allocate comes from).

    Raises `CodegenError` 1651 for a step that needs more than the host's memory.
    """
    runner = _Runner(plan, layout, frame, dict(symbols), entries, context, memory)
    for segment in plan.segments:
        yield from runner.steps(segment.steps)


def kind_of(step: Step) -> StepKind:
    """What a step is that runs by itself."""
    match step:
        case LibraryStep():
            return "library"
        case CopyStep() | Carry():
            return "copy"
        case Allocate():
            return "allocation"
        case Check():
            return "check"
        case _:
            return "kernel"


class _Runner:
    def __init__(
        self,
        plan: Plan,
        layout: FrameLayout,
        frame: Frame,
        symbols: dict[str, int],
        entries: Mapping[str, int],
        context: Context,
        memory: MeasuredMemory | None,
    ) -> None:
        self.plan, self.layout, self.frame = plan, layout, frame
        self.symbols, self.entries, self.context, self.memory = symbols, entries, context, memory
        self.step_frame = Frame(FIRST_SLOT + 2, context.pool.address)
        """What the driver of one kernel reads: its address and its argument block follow the fixed slots."""

    def address(self, buffer: PlanBuffer) -> int:
        match buffer.place:
            case InputPlace(position=position):
                slot = self.layout.inputs[position]
            case OutputPlace(position=position):
                slot = self.layout.outputs[position]
            case ConstantPlace(digest=digest):
                slot = self.layout.constants[digest]
            case ArenaPlace(arena=arena):
                slot = self.layout.arenas[arena]
            case MeasuredPlace():
                slot = self.layout.measured[buffer.memory]
        return int(self.frame.words[slot]) + int(buffer.offset.evaluate(self.symbols))

    def steps(self, steps: tuple[Step, ...]) -> Iterator[tuple[Step, Callable[[], int]]]:
        named = self.plan.buffer_named
        for step in steps:
            match step:
                case KernelStep() | LibraryStep():
                    words = [self.step_frame.address, *(self.address(named[name]) for name in step.arguments)]
                    words += [int(value.evaluate(self.symbols)) for value in step.symbols]
                    yield step, self._kernel(step.kernel.name, words)
                case CopyStep():
                    source, target = named[step.source], named[step.target]
                    size = int(source.bytes.evaluate(self.symbols))
                    yield step, self._copy(self.address(target), self.address(source), size)
                case Allocate() | Carry():
                    yield step, self._sized(step)
                case Check():
                    yield step, self._check(step.guards, step.code)
                case Branch():
                    yield from self.steps(step.then if self._truth(step.predicate) else step.otherwise)
                case Repeat():
                    trip = 0
                    while (step.trips is None or trip < int(step.trips.evaluate(self.symbols))) and (
                        not step.condition or self._truth(step.condition)
                    ):
                        if step.iteration:
                            self.symbols[step.iteration] = trip
                        yield from self.steps(step.body)
                        trip += 1
                case _:
                    raise CodegenError(1651, f"{step.name} cannot run on the host alone", where=step.origin)

    def _kernel(self, name: str, words: list[int]) -> Callable[[], int]:
        arguments = (ctypes.c_int64 * len(words))(*words)
        native, frame = self.context.native, self.step_frame

        def run() -> int:
            frame.words[FIRST_SLOT] = self.entries[name]
            frame.words[FIRST_SLOT + 1] = ctypes.addressof(arguments)
            status = native.run(native.code["tilework_gate_step"], frame.address)
            self.frame.words[ERROR_SLOT] = frame.words[ERROR_SLOT]
            return status

        return run

    def _sized(self, step: Allocate | Carry) -> Callable[[], int]:
        named = self.plan.buffer_named
        sizes = step.readings if isinstance(step, Allocate) else step.sizes
        pairs = step.pairs if isinstance(step, Carry) else ()
        wanted = step.buffers if isinstance(step, Allocate) else tuple(target for _, target in pairs)

        def run() -> int:
            values: list[int] = []
            for size in sizes:
                if isinstance(size, Sized):
                    values.append(int(size.value.evaluate(self.symbols)))
                    continue
                buffer = named[size.buffer]
                kind = buffer.dtype.numpy
                held = ctypes.string_at(self.address(buffer) + size.element * kind.itemsize, kind.itemsize)
                values.append(int(np.frombuffer(held, kind)[0]))
            counts = [int(named[source].bytes.evaluate(self.symbols)) for source, _ in pairs]
            for number, (size, value) in enumerate(zip(sizes, values, strict=True)):
                symbol = self.plan.symbol_named[size.symbol]
                low, high = symbol.bounds
                self.symbols[size.symbol] = self.frame.words[self.layout.symbols[size.symbol]] = value
                if not low <= value <= high or value % symbol.multiple:
                    return self._fault(1424, number)
            keep = isinstance(step, Allocate) and step.keep
            for memory in dict.fromkeys(named[n].memory for n in wanted if needs_allocation(self.plan, named[n])):
                assert self.memory is not None
                if self.memory.allocate(self.layout.memories.index(memory), keep):
                    return 1
            for (source, target), count in zip(pairs, counts, strict=True):
                self._copy(self.address(named[target]), self.address(named[source]), count)()
            return 0

        return run

    def _check(self, guards: tuple[Guard, ...], code: int) -> Callable[[], int]:
        def run() -> int:
            wrong = next((n for n, guard in enumerate(guards) if not guard.holds(self.symbols)), None)
            return 0 if wrong is None else self._fault(code, wrong)

        return run

    def _fault(self, code: int, detail: int) -> int:
        self.frame.words[ERROR_SLOT] = code << 32 | detail
        return 1

    def _copy(self, target: int, source: int, size: int) -> Callable[[], int]:
        def run() -> int:
            for start in range(0, size, _COPIED):
                ctypes.memmove(target + start, source + start, min(_COPIED, size - start))
            return 0

        return run

    def _truth(self, buffer: str) -> bool:
        return bool(ctypes.c_uint8.from_address(self.address(self.plan.buffer_named[buffer])).value)
