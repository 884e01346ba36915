"""`Executable`: a compiled plan that can be called, from any number of threads, with arrays or with bare addresses."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tilework.codegen.cpu.frame_layout import FrameLayout, frame_layout
from tilework.codegen.cpu.jit import LoadedCode
from tilework.dims import Dim, total
from tilework.errors import CallError, CodegenError, FileFormatError, OutOfMemoryError, TileworkError
from tilework.fast_dataclass import dataclass
from tilework.plan.explanation import Explanation, Notice
from tilework.plan.plan import Plan
from tilework.plan.protocols import Allocator, Array
from tilework.plan.steps import Step
from tilework.runtime.bare_call import bind_bare
from tilework.runtime.call_spec import call_spec
from tilework.runtime.call_state import CallState
from tilework.runtime.callable_model import CallableModel
from tilework.runtime.context import Context
from tilework.runtime.failed_call import failure, step_at
from tilework.runtime.frame import ERROR_SLOT, Frame
from tilework.runtime.gate import Accepted, Gate
from tilework.runtime.measured import Allocations, MeasuredSizes, OutputMaker
from tilework.runtime.overriding import Overriding
from tilework.runtime.ports import CoreResult, Port, StepTime
from tilework.runtime.prompt_call import PromptCall, small_arrays
from tilework.runtime.settings import expect_path
from tilework.runtime.shapes import dim_function, shape_function
from tilework.runtime.variants import ShapeVariants, shapes_of

if TYPE_CHECKING:
    from tilework.runtime.per_shape import PerShape
    from tilework.runtime.sections import Parts, Sections

HOLD_LOCK_BELOW = 20_000
"""Operations plus bytes of a call below which the interpreter's lock is kept: handing it over would take longer."""

UNKNOWN_ARGUMENTS = 1701
"""Refusal of a call that may give initialisers a value."""

OTHER_SIZES = (1705, 1706, 1707)
"""Refusals of sizes that a compilation for these very sizes may serve."""


@dataclass(frozen=True, eq=False)
class Stepped:
    """A call that was run step by step, by which executable, and what it returned."""

    served_by: Executable
    outputs: tuple[Any, ...]
    times: tuple[StepTime, ...]


class Executable(CallableModel):
    """A compiled model. Calling it takes numpy arrays by position or name and returns a tuple of arrays, one an output.

    Any number of threads may call it at once: each call has a state of its own. Outputs are fresh arrays (large ones in
    memory that is used again once the last array showing it dies), unless the model's signature says that an output is
    an input changed in place or a view of one. After a fork the child may go on calling it.
    """

    def __init__(
        self,
        plan: Plan,
        code: LoadedCode,
        entry: int,
        constants: Mapping[str, Array],
        context: Context,
        explanation: Explanation | Callable[[], Explanation],
        *,
        work: Dim | None = None,
        memory_limit: int | None = None,
        step_entries: Mapping[str, int] | None = None,
        parts: Parts | None = None,
        layout: FrameLayout | None = None,
    ) -> None:
        """Used by the compiler and by package loading.

        Args:
            plan: what runs. It has one captured segment.
            code: the loaded code, kept alive.
            entry: address of the plan's driver.
            constants: array of each constant by digest, C-contiguous and aligned to 64 bytes.
            context: where threads and memory come from.
            explanation: what `explain()` answers, or makes the answer.
            work: operations plus bytes of a call, in the plan's symbols; None where a call decides it.
            memory_limit: bytes that a call's arena and outputs may take together.
            step_entries: addresses of the kernels by name, for step-by-step execution.
            parts: what `save` writes beside the plan; None where it cannot.
            layout: the plan's frame, where it was made before; the plan's steps and buffers are then not looked at.

        Raises:
            CodegenError: 1651, a plan of several segments or arenas.
        """
        if layout is None and (len(plan.segments) != 1 or len(plan.arenas) > 1):
            text = f"it has {len(plan.segments)} segments and {len(plan.arenas)} arenas, not one of each"
            raise CodegenError(1651, text, where=plan.name)
        self._plan = plan
        self._code = code
        self._entry = entry
        self._constants = dict(constants)
        self._context = context
        self._explanation = explanation
        self._memory_limit = memory_limit
        self._step_entries = dict(step_entries or {})
        self._parts = parts
        self._layout: FrameLayout = layout if layout is not None else frame_layout(plan)
        self._gate = Gate(call_spec(plan, self._layout), context.native, context.blocks)
        self._pool = context.pool
        slots = self._layout.symbols
        self._arena_bytes = dim_function(plan.arenas[0].bytes if plan.arenas else Dim(), slots)
        self._arena_slot = self._layout.arenas[plan.arenas[0].name] if plan.arenas else 0
        self._measured = MeasuredSizes(plan, self._layout) if self._layout.allocator else None
        late = frozenset[int]() if self._measured is None else self._measured.positions
        self._work = dim_function(work, slots) if work is not None else None
        self._output_bytes = dim_function(
            total(
                output.type.bytes
                for position, output in enumerate(plan.outputs)
                if output.policy.kind == "fresh" and position not in late
            ),
            slots,
        )
        self._shapes = tuple(shape_function(output.type.shape, slots) for output in plan.outputs)
        self._static_holding: bool | None = None
        if self._work is not None and not plan.symbols:
            self._static_holding = self._work(()) < HOLD_LOCK_BELOW
        self._prompt: PromptCall | None = None
        if self._static_holding is not None and memory_limit is None and self._measured is None:
            arena = self._arena_bytes(())
            self._prompt = self._gate.prompt(entry, holding=self._static_holding, arena=arena)
        self._states: list[CallState] = []
        self.variants: ShapeVariants | None = None
        """What serves shapes that the model allows and this compilation does not."""
        self.overriding: Overriding | None = None
        """What serves calls that give a value to an initialiser."""
        self.inputs = tuple(Port(given.name, given.type) for given in plan.inputs)
        self.outputs = tuple(Port(output.name, output.type) for output in plan.outputs)

    # -- calls -------------------------------------------------------------------------------------------------------
    def __call__(self, *arrays: Any, **named: Any) -> tuple[Any, ...]:
        """Run the model.

        A value for one of `overridable` may be given by name.

        Raises:
            CallError: 17xx, an argument does not fit; it names the input and the dimension.
            OutOfMemoryError: 1710, the call needs more memory than there is or than the limit allows.
            RunError: 18xx, the data made compiled code fail (an index out of range); it names the operation.
            KeyboardInterrupt, or what another signal handler raised: the call is abandoned, the executable usable.
        """
        prompt = self._prompt
        if prompt is not None and not named and self._pool.ready:
            state = self._take_state()
            outputs = small_arrays(prompt.plain) if state.arena_size >= prompt.arena else None
            if outputs is not None:
                status = prompt.run(prompt.way, state.frame.address, arrays, outputs)
                if status > 0:
                    raise self._failure(state, step_at(self._plan, status))
                if status == 0:
                    self._states.append(state)
                    return outputs
            self._states.append(state)
        return self._call(arrays, named)

    def _call(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """A call the longer way: sizes are read, what does not fit is converted, lent or refused."""
        try:
            state, bound, outputs = self._begin(arrays, named)
        except CallError as refusal:
            other = self._overridden(refusal, named)
            if other is not None:
                return other(*arrays, **named)
            return self._variant(refusal, arrays, named)(*arrays, **named)
        frame = state.frame
        holding = self._static_holding
        if holding is None:
            holding = self._work is not None and self._work(frame.words) < HOLD_LOCK_BELOW
        native = self._context.native
        late: dict[int, Array] | None = None
        if state.allocations is not None:
            late = {}
            self._expect(state, self._gate_outputs(late))
        status = (native.run_holding if holding else native.run)(self._entry, frame.address)
        if status:
            raise self._failure(state, step_at(self._plan, status))
        if late is not None:
            outputs = _completed(state, outputs, late)
        if bound.write_backs:
            self._gate.finish(bound)
        self._states.append(state)
        return outputs

    def run_core(
        self,
        addresses: Sequence[int],
        dims: Sequence[Sequence[int]],
        strides: Sequence[Sequence[int] | None],
        allocator: Allocator,
    ) -> tuple[CoreResult, ...]:
        """The entry beneath all callers: bare memory in, bare memory out.

        Args:
            addresses: where each input's first element is, aligned to its element size.
            dims: the shape of each input.
            strides: element strides of each input, or None for a dense one; others than dense ones are refused here
                (a caller copies first, and counts it).
            allocator: where the memory of fresh outputs comes from; the caller owns it afterwards.

        Raises:
            CallError: 1701 for the wrong number of inputs, 1704 rank, 1705 dimension, 1712 strides or alignment.
            RunError, OutOfMemoryError: as a call.
        """
        if not len(addresses) == len(dims) == len(strides) == len(self.inputs):
            raise CallError(1701, f"{len(self.inputs)} inputs are expected, {len(addresses)} were given")
        state = self._take_state()
        frame = state.frame
        try:
            bind_bare(self._plan, self._layout, frame, addresses, dims, strides)
            if self._memory_limit is not None:
                self._check_limit(frame)
        except CallError:
            self._states.append(state)
            raise
        results: list[CoreResult] = []
        taken: list[int] = []
        try:
            late = frozenset[int]() if self._measured is None else self._measured.positions
            listed = zip(self._plan.outputs, self._shapes, self._layout.outputs, strict=True)
            for position, (output, shape_of, slot) in enumerate(listed):
                if position in late:
                    results.append(CoreResult(0, ()))
                    continue
                shape = shape_of(frame.words)
                if output.policy.kind == "fresh":
                    size = int(np.prod(shape, dtype=object)) * output.type.dtype.itemsize
                    address = allocator.allocate(max(size, 1), 64, "host")
                    taken.append(address)
                    frame.words[slot] = address
                else:
                    offset = output.policy.offset
                    start = 0 if offset is None else int(offset.evaluate(self._symbol_values(frame)))
                    address = addresses[output.policy.of or 0] + start * output.type.dtype.itemsize
                results.append(CoreResult(address, shape))
            self._prepare(state)

            def make(position: int, shape: tuple[int, ...]) -> int:
                size = math.prod(shape) * self._plan.outputs[position].type.dtype.itemsize
                taken.append(allocator.allocate(max(size, 1), 64, "host"))
                results[position] = CoreResult(taken[-1], shape)
                return taken[-1]

            self._expect(state, make)
            status = self._context.native.run(self._entry, frame.address)
            if status:
                raise self._failure(state, step_at(self._plan, status))
        except BaseException:
            for address in taken:
                allocator.release(address)
            raise
        if state.allocations is not None:
            state.allocations.memory.end()
        self._states.append(state)
        return tuple(results)

    def stepped(self, *arrays: Any, **named: Any) -> Stepped:
        """As `step_times`, and which executable served the call: this one, or one for these sizes or initialisers."""
        from tilework.runtime.interactive import kind_of, run_steps

        try:
            state, bound, outputs = self._begin(arrays, named)
        except CallError as refusal:
            other = self._overridden(refusal, named)
            if other is not None:
                return other.stepped(*arrays, **named)
            return self._variant(refusal, arrays, named).stepped(*arrays, **named)
        frame = state.frame
        times: list[StepTime] = []
        values = self._symbol_values(frame)
        late: dict[int, Array] = {}
        self._expect(state, self._gate_outputs(late))
        memory = state.allocations.memory if state.allocations is not None else None
        for step, run in run_steps(self._plan, self._layout, frame, values, self._step_entries, self._context, memory):
            start = time.perf_counter()
            status = run()
            seconds = time.perf_counter() - start
            if values:
                values = self._symbol_values(frame)
            times.append(StepTime(step.name, step.origin, seconds, start, kind_of(step), step.queue, values))
            if status:
                raise self._failure(state, step)
        outputs = _completed(state, outputs, late)
        self._gate.finish(bound)
        self._states.append(state)
        return Stepped(self, outputs, tuple(times))

    # -- what it is ----------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.tilework` file, whole or not at all; `tilework.load` reads it.

        Raises:
            UsageError: 1002, that is no path.
            FileFormatError: 1901, the file cannot be written; 1905, the executable runs what no file can hold.
        """
        from tilework.runtime.package import save_package

        place = expect_path("path", path)
        try:
            sections = self.sections()
        except FileFormatError as error:
            raise FileFormatError(error.code, error.message, where=str(place), hint=error.hint) from None
        assert self._parts is not None
        save_package(place, self._plan.name, self._parts.target, sections)

    def sections(self) -> Sections:
        """What a file holds of it; constants are not copied. Raises `FileFormatError` 1905 where no file can."""
        from tilework.runtime.sections import sections_of

        if self._parts is None:
            raise FileFormatError(1905, "it was built from a schedule, or has black boxes around it")
        return sections_of(self._plan, self._layout, self._constants, self.explain(), self._parts, self.overridable)

    def explain(self) -> Explanation:
        """What was decided for each region, and what it cost."""
        if not isinstance(self._explanation, Explanation):
            self._explanation = self._explanation()
        return self._explanation

    def note(self, notice: Notice) -> None:
        """Add to what `explain` tells."""
        told = self.explain()
        self._explanation = replace(told, notices=(*told.notices, notice))

    @property
    def context(self) -> Context:
        return self._context

    @property
    def overridable(self) -> tuple[Port, ...]:
        """The initialisers that a call may give another value, by name alone; such calls run code compiled for that."""
        return self.overriding.ports if self.overriding is not None else ()

    @property
    def plan(self) -> Plan:
        """The plan it runs."""
        return self._plan

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans that a call runs, in order: one, unless there are black boxes between them."""
        return (self._plan,)

    @property
    def threads(self) -> int:
        """Threads that a call uses, the caller's own included."""
        return self._pool.threads

    @property
    def copies(self) -> Mapping[tuple[str, str], int]:
        """How often arguments were converted or copied: (input's name, reason) to a count."""
        return dict(self._gate.counted)

    def trim(self) -> None:
        """Give back the memory of states that are not in use."""
        while self._states:
            state = self._states.pop()
            if state.arena is not None:
                self._context.blocks.give(state.arena)
            if state.allocations is not None:
                state.allocations.memory.release()

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(f"{p.name}: {p.type}" for p in ports) for ports in (self.inputs, self.outputs))
        return f"<tilework.Executable {self._plan.name!r}: ({inputs}) -> ({outputs})>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Executable holds machine code loaded into this process: it can be neither pickled nor copied; "
            "compile the model again where you need it (threads and forked children may share one)"
        )

    # -- how -----------------------------------------------------------------------------------------------------------
    def _begin(
        self, arrays: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[CallState, Accepted, tuple[Array | None, ...]]:
        """A state that is ready to run, the arguments it is bound to, and its outputs; a refused call hands it back."""
        gate = self._gate
        state = self._take_state()
        frame = state.frame
        try:
            given = gate.order(arrays, named) if named or len(arrays) != gate.count else arrays
            bound = gate.bind(frame, given)
            if self._memory_limit is not None:
                self._check_limit(frame)
            outputs = gate.allocate(frame, bound)
            self._prepare(state)
        except CallError:
            self._states.append(state)
            raise
        return state, bound, outputs

    def _overridden(self, refusal: CallError, named: Mapping[str, object]) -> Executable | PerShape | None:
        """What takes the initialisers that a refused call gives by name; None where it gives none."""
        if self.overriding is None or refusal.code != UNKNOWN_ARGUMENTS:
            return None
        return self.overriding.serving(named)

    def _variant(self, refusal: CallError, arrays: tuple[object, ...], named: Mapping[str, object]) -> Executable:
        """The executable for the very shapes of a refused call; raises the refusal where the model has none either."""
        if self.variants is None or refusal.code not in OTHER_SIZES:
            raise refusal
        try:
            return self.variants(shapes_of(self._gate.names, self._gate.order(arrays, named)))
        except TileworkError as reason:
            raise refusal from reason

    def _take_state(self) -> CallState:
        """A state that no other call uses. One whose call starts and does not end well is not handed back."""
        try:
            return self._states.pop()
        except IndexError:
            return self._new_state()

    def _new_state(self) -> CallState:
        frame = Frame(self._layout.size, self._context.pool.address)
        for digest, slot in self._layout.constants.items():
            frame.words[slot] = self._constants[digest].ctypes.data
        allocations = None
        if self._measured is not None:
            allocations = Allocations(self._measured, frame, self._context.blocks)
        return CallState(frame, allocations)

    def _expect(self, state: CallState, make: OutputMaker) -> None:
        """Make ready for what the call allocates while it runs."""
        if state.allocations is None:
            return
        limit = self._memory_limit
        if limit is not None:
            limit -= self._arena_bytes(state.frame.words) + self._output_bytes(state.frame.words)
        state.allocations.memory.begin(make, limit)

    def _gate_outputs(self, made: dict[int, Array]) -> OutputMaker:
        """Makes numpy arrays, and keeps them in `made`."""

        def make(position: int, shape: tuple[int, ...]) -> int:
            made[position] = self._gate.measured(position, shape)
            return made[position].ctypes.data

        return make

    def _prepare(self, state: CallState) -> None:
        """The arena for these sizes, a clean error word, and workers."""
        words = state.frame.words
        words[ERROR_SLOT] = 0
        needed = self._arena_bytes(words)
        if needed > state.arena_size:
            blocks = self._context.blocks
            if state.arena is not None:
                blocks.give(state.arena)
                state.arena, state.arena_size = None, -1
            state.arena_size = 0
            if needed:
                state.arena = blocks.take(needed)
                words[self._arena_slot] = state.arena.address
                state.arena_size = state.arena.size
        if self._pool.stale:
            self._pool.ensure()

    def _check_limit(self, frame: Frame) -> None:
        needed = self._arena_bytes(frame.words) + self._output_bytes(frame.words)
        if self._memory_limit is not None and needed > self._memory_limit:
            raise OutOfMemoryError(
                1710, f"this call needs {needed} bytes and the limit is {self._memory_limit} bytes",
                hint="use smaller dimensions, or compile with a larger memory_limit",
            )  # fmt: skip

    def _symbol_values(self, frame: Frame) -> dict[str, int]:
        return {name: int(frame.words[slot]) for name, slot in self._layout.symbols.items()}

    def _failure(self, state: CallState, step: Step | None) -> BaseException:
        memory = state.allocations.memory if state.allocations is not None else None
        return failure(self._plan, self._layout, state.frame, step, memory)


def _completed(
    state: CallState, outputs: tuple[Array | None, ...], late: Mapping[int, Array]
) -> tuple[Array | None, ...]:
    """The outputs with those that the call itself has made."""
    if state.allocations is None:
        return outputs
    state.allocations.memory.end()
    return tuple(late.get(position, output) for position, output in enumerate(outputs))
