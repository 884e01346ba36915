"""The driver of a captured segment: one native function that runs all of its steps over one frame.

It is generated from the plan alone. The frame is an array of int64 slots (see `FrameLayout`): the caller fills in the
symbols and the base addresses; the driver adds the offsets, which may depend on the symbols.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilework.codegen.cpu.driver_values import DriverValues
from tilework.codegen.cpu.frame_layout import POLL_SLOT, POOL_SLOT
from tilework.dims import total
from tilework.errors import CodegenError
from tilework.fast_dataclass import dataclass, field
from tilework.plan.buffers import ArenaPlace, ConstantPlace, InputPlace, MeasuredPlace, OutputPlace, PlanBuffer
from tilework.plan.guard import Guard
from tilework.plan.plan import Plan, Segment, needs_allocation
from tilework.plan.steps import (
    Allocate,
    Branch,
    Carry,
    Check,
    CopyStep,
    KernelStep,
    LibraryStep,
    Reading,
    Repeat,
    Sized,
    Step,
)

FEW_STEPS = 8
"""Steps up to which a driver is generated with care: what it adds to a call shows only beside little work. That of a
longer one goes through LLVM's fast path, which takes half the time for as much again as each step costs, nanoseconds.
"""
COPIED_BYTES = 1 << 24
"""Bytes that a copy moves between two looks for signals: a few milliseconds."""

_WRITTEN = ("write", "accumulate")
"""Accesses of a kernel that change a buffer."""


def emit_driver(plan: Plan, segment: Segment, name: str) -> str:
    """LLVM text of `i32 @name(ptr frame)`, and declarations of the kernels it calls.

    It returns 0, or 1 + the number of the step (in the order of `plan.walk`, within the segment) at which a kernel
    reported a fault (the error word says which) or a signal handler raised. Kernels find the poll state behind the
    error word and look for signals too: where one ended early the driver stops before the next step.
    Raises `CodegenError` 1651 for a step that a captured segment cannot hold.
    """
    return _Driver(plan, name).text(segment.steps)


@dataclass
class _Driver(DriverValues):
    kernels: dict[str, None] = field(default_factory=dict[str, None])
    widest: int = 1
    ordinal: int = 0
    polled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.addresses: dict[str, str] = {}
        self.numbers = {memory: number for number, memory in enumerate(self.layout.memories)}

    # -- text ----------------------------------------------------------------------------------------------------------
    def text(self, steps: tuple[Step, ...]) -> str:
        self._steps(steps)
        attributes = "nounwind" if self.ordinal <= FEW_STEPS else "nounwind noinline optnone"
        declared = "".join(f"declare i32 @{kernel}(ptr, ptr)\n" for kernel in self.kernels)
        head = [
            f"define i32 @{self.name}(ptr %frame) {attributes} {{",
            "entry:",
            "  %step = alloca i32",
            "  store i32 0, ptr %step",
            f"  %arguments = alloca [{self.widest} x i64], align 16",
            "  %error = ptrtoint ptr %frame to i64",
            f"  %pool_at = getelementptr i64, ptr %frame, i64 {POOL_SLOT}",
            "  %pool = load ptr, ptr %pool_at",
            f"  %poll_at = getelementptr i64, ptr %frame, i64 {POLL_SLOT}",
            "  %poll = load ptr, ptr %poll_at",
            *self.entry,
            # the first look starts the clock
            "  %started = call i32 @tilework_poll(ptr %poll)",
            "  br label %start",
            "start:",
        ]
        tail = ["  ret i32 0", "stopped:", "  %at = load i32, ptr %step", "  ret i32 %at", "}"]
        poll = "declare i32 @tilework_poll(ptr)\n"
        copy = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        return declared + poll + copy + "\n".join([*head, *self.lines, *tail]) + "\n"

    # -- memory --------------------------------------------------------------------------------------------------------
    def address(self, buffer: PlanBuffer) -> str:
        """The buffer's address as an i64 operand: computed once, in the entry block, unless a step allocates it."""
        if needs_allocation(self.plan, buffer):
            position = buffer.place.position if isinstance(buffer.place, OutputPlace) else 0
            slot = self.layout.measured.get(buffer.memory) or self.layout.outputs[position]
            at = self.emit(self.lines, f"getelementptr i64, ptr %frame, i64 {slot}")
            return self.emit(self.lines, f"load i64, ptr {at}")
        if buffer.name in self.addresses:
            return self.addresses[buffer.name]
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
                raise CodegenError(1651, f"nothing allocates {buffer.name}")
        at = self.emit(self.entry, f"getelementptr i64, ptr %frame, i64 {slot}")
        found = self.emit(self.entry, f"load i64, ptr {at}")
        if buffer.offset != 0:
            found = self.emit(self.entry, f"add i64 {found}, {self.value(buffer.offset, self.entry)}")
        self.addresses[buffer.name] = found
        return found

    def pointer(self, name: str) -> str:
        return self.emit(self.lines, f"inttoptr i64 {self.address(self.plan.buffer_named[name])} to ptr")

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if self.polled:
                self._poll()
            self.polled = True
            self.ordinal += 1
            self.lines.append(f"  store i32 {self.ordinal}, ptr %step")
            match step:
                case KernelStep() | LibraryStep():
                    self._call(step)
                case CopyStep():
                    self._copy(step.source, step.target)
                case Allocate():
                    self._allocate(step)
                case Carry():
                    self._carry(step)
                case Check():
                    for number, guard in enumerate(step.guards):
                        self._check(guard, step.code, number)
                case Branch():
                    self._branch(step)
                case Repeat():
                    self._repeat(step)
                case _:
                    raise CodegenError(1651, f"{step.name} cannot run inside one native call", where=step.origin)

    def _poll(self) -> None:
        status = self.emit(self.lines, "call i32 @tilework_poll(ptr %poll)")
        self._stop_unless_zero(status)

    def _stop_unless_zero(self, status: str) -> None:
        test = self.emit(self.lines, f"icmp eq i32 {status}, 0")
        onward = self.label("onward")
        self.lines += [f"  br i1 {test}, label %{onward}, label %stopped", f"{onward}:"]

    def _call(self, step: KernelStep | LibraryStep) -> None:
        self.kernels[step.kernel.name] = None
        after = self._past_nothing(step)
        operands = ["%error", *(self.address(self.plan.buffer_named[name]) for name in step.arguments)]
        operands += [self.value(symbol, self.lines) for symbol in step.symbols]
        self.widest = max(self.widest, len(operands))
        for position, operand in enumerate(operands):
            at = self.emit(self.lines, f"getelementptr i64, ptr %arguments, i64 {position}")
            self.lines.append(f"  store i64 {operand}, ptr {at}")
        self._stop_unless_zero(self.emit(self.lines, f"call i32 @{step.kernel.name}(ptr %arguments, ptr %pool)"))
        if after:
            self.lines += [f"  br label %{after}", f"{after}:"]

    def _past_nothing(self, step: KernelStep | LibraryStep) -> str:
        """Jump to a label (returned) where everything that the step writes has no elements; empty if it never has.

        Loops around one without trips may have any number of them.
        """
        formals = zip(step.kernel.buffers, step.arguments, strict=True)
        written = [self.plan.buffer_named[name] for formal, name in formals if formal.access in _WRITTEN]
        if not written or any(buffer.bytes.value is not None for buffer in written):
            return ""
        sizes = self.value(total(buffer.bytes for buffer in written), self.lines)
        test = self.emit(self.lines, f"icmp eq i64 {sizes}, 0")
        some, after = self.label("some"), self.label("after")
        self.lines += [f"  br i1 {test}, label %{after}, label %{some}", f"{some}:"]
        return after

    # -- sizes that steps measure --------------------------------------------------------------------------------------
    def _allocate(self, step: Allocate) -> None:
        values = [self._reading(reading) for reading in step.readings]
        for number, (reading, value) in enumerate(zip(step.readings, values, strict=True)):
            self._bind(reading.symbol, value, number)
        self._memories(step.buffers, step.keep)

    def _carry(self, step: Carry) -> None:
        values = [self.value(size.value, self.lines) for size in step.sizes]
        counts = [self.value(self.plan.buffer_named[source].bytes, self.lines) for source, _ in step.pairs]
        for number, (size, value) in enumerate(zip(step.sizes, values, strict=True)):
            self._bind(size.symbol, value, number)
        self._memories((target for _, target in step.pairs), keep=False)
        for (source, target), count in zip(step.pairs, counts, strict=True):
            self._copy(source, target, count)

    def _reading(self, reading: Reading | Sized) -> str:
        if isinstance(reading, Sized):
            return self.value(reading.value, self.lines)
        buffer = self.plan.buffer_named[reading.buffer]
        kind = f"i{8 * buffer.dtype.itemsize}"
        at = self.emit(self.lines, f"getelementptr {kind}, ptr {self.pointer(reading.buffer)}, i64 {reading.element}")
        value = self.emit(self.lines, f"load {kind}, ptr {at}")
        if kind == "i64":
            return value
        return self.emit(self.lines, f"{'sext' if buffer.dtype.kind == 'signed' else 'zext'} {kind} {value} to i64")

    def _bind(self, name: str, value: str, number: int) -> None:
        """Give a measured symbol its value, and end the call with error 1424 where its bounds do not allow it."""
        symbol = self.plan.symbol_named[name]
        at = self.emit(self.lines, f"getelementptr i64, ptr %frame, i64 {self.layout.symbols[name]}")
        self.lines.append(f"  store i64 {value}, ptr {at}")
        wrong = [self.emit(self.lines, f"icmp slt i64 {value}, {symbol.lower}")]
        if symbol.upper is not None:
            wrong.append(self.emit(self.lines, f"icmp sgt i64 {value}, {symbol.upper}"))
        if symbol.multiple != 1:
            rest = self.emit(self.lines, f"srem i64 {value}, {symbol.multiple}")
            wrong.append(self.emit(self.lines, f"icmp ne i64 {rest}, 0"))
        for test in wrong:
            self._fault(test, 1424, number)

    def _check(self, guard: Guard, code: int, number: int) -> None:
        value = self.value(guard.value, self.lines)
        relation = "slt" if guard.relation == "nonnegative" else "ne"
        self._fault(self.emit(self.lines, f"icmp {relation} i64 {value}, 0"), code, number)

    def _fault(self, test: str, code: int, detail: int) -> None:
        """End the call with an error where a test is true."""
        wrong, onward = self.label("wrong"), self.label("onward")
        self.lines += [f"  br i1 {test}, label %{wrong}, label %{onward}", f"{wrong}:"]
        self.lines += [f"  store i64 {code << 32 | detail}, ptr %frame", "  br label %stopped", f"{onward}:"]

    def _memories(self, buffers: Iterable[str], keep: bool) -> None:
        """Ask for the memories of some buffers (those that steps allocate)."""
        named = self.plan.buffer_named
        for memory in dict.fromkeys(named[name].memory for name in buffers if needs_allocation(self.plan, named[name])):
            at = self.emit(self.lines, f"getelementptr i64, ptr %frame, i64 {self.layout.allocator}")
            function = self.emit(self.lines, f"load ptr, ptr {at}")
            answer = self.emit(self.lines, f"getelementptr i64, ptr %frame, i64 {self.layout.answer}")
            self.lines.append(f"  store i64 1, ptr {answer}")
            self.lines.append(f"  call void {function}(i64 {self.numbers[memory]}, i64 {int(keep)})")
            answered = self.emit(self.lines, f"load i64, ptr {answer}")
            self._stop_unless_zero(self.emit(self.lines, f"trunc i64 {answered} to i32"))

    def _copy(self, source_name: str, target_name: str, count: str = "") -> None:
        bytes_ = self.plan.buffer_named[source_name].bytes
        size = count or self.value(bytes_, self.lines)
        target, source = self.pointer(target_name), self.pointer(source_name)
        if bytes_.value is not None and bytes_.value <= COPIED_BYTES:
            self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
            return
        done = self.emit(self.entry, "alloca i64")
        piece, look, after = self.label("piece"), self.label("look"), self.label("after")
        self.lines += [f"  store i64 0, ptr {done}", f"  br label %{piece}", f"{piece}:"]
        at = self.emit(self.lines, f"load i64, ptr {done}")
        left = self.emit(self.lines, f"sub i64 {size}, {at}")
        few = self.emit(self.lines, f"icmp sle i64 {left}, {COPIED_BYTES}")
        count = self.emit(self.lines, f"select i1 {few}, i64 {left}, i64 {COPIED_BYTES}")
        to = self.emit(self.lines, f"getelementptr i8, ptr {target}, i64 {at}")
        of = self.emit(self.lines, f"getelementptr i8, ptr {source}, i64 {at}")
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {count}, i1 false)")
        following = self.emit(self.lines, f"add i64 {at}, {COPIED_BYTES}")
        self.lines += [f"  store i64 {following}, ptr {done}", f"  br i1 {few}, label %{after}, label %{look}"]
        self.lines.append(f"{look}:")
        self._poll()
        self.lines += [f"  br label %{piece}", f"{after}:"]

    def _truth(self, buffer: str) -> str:
        value = self.emit(self.lines, f"load i8, ptr {self.pointer(buffer)}")
        return self.emit(self.lines, f"icmp ne i8 {value}, 0")

    def _branch(self, step: Branch) -> None:
        test = self._truth(step.predicate)
        then, otherwise, after = self.label("then"), self.label("else"), self.label("after")
        self.lines += [f"  br i1 {test}, label %{then}, label %{otherwise}", f"{then}:"]
        self._steps(step.then)
        self.lines += [f"  br label %{after}", f"{otherwise}:"]
        self._steps(step.otherwise)
        self.lines += [f"  br label %{after}", f"{after}:"]

    def _repeat(self, step: Repeat) -> None:
        # the counter lives in memory, so that nothing needs to know which block a trip ends in
        counter = self.emit(self.entry, "alloca i64")
        self.lines.append(f"  store i64 0, ptr {counter}")
        head, body, after = self.label("trip"), self.label("body"), self.label("after")
        self.lines += [f"  br label %{head}", f"{head}:"]
        trip = self.emit(self.lines, f"load i64, ptr {counter}")
        if step.trips is not None:
            test = self.emit(self.lines, f"icmp slt i64 {trip}, {self.value(step.trips, self.lines)}")
            more = self.label("more")
            self.lines += [f"  br i1 {test}, label %{more}, label %{after}", f"{more}:"]
        if step.condition:
            self.lines += [f"  br i1 {self._truth(step.condition)}, label %{body}, label %{after}", f"{body}:"]
        else:
            self.lines += [f"  br label %{body}", f"{body}:"]
        self._poll()
        if step.iteration:
            self.trips[step.iteration] = trip
        self._steps(step.body)
        self.trips.pop(step.iteration, None)
        following = self.emit(self.lines, f"add i64 {trip}, 1")
        self.lines += [f"  store i64 {following}, ptr {counter}", f"  br label %{head}", f"{after}:"]
