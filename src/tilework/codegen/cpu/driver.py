"""The driver of a captured segment: one native function that runs all of its steps over one frame.

It is generated from the plan alone. The frame is an array of int64 slots (see `FrameLayout`): the caller fills in the
symbols and the base addresses; the driver adds the offsets, which may depend on the symbols.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilework.dims import Dim, Extreme, FloorDiv, Loaded, Mod
from tilework.errors import CodegenError
from tilework.plan.buffers import ArenaPlace, ConstantPlace, InputPlace, MeasuredPlace, OutputPlace, PlanBuffer
from tilework.plan.plan import Plan, Segment
from tilework.plan.steps import Branch, CopyStep, KernelStep, LibraryStep, Repeat, Step

ERROR_SLOT, POOL_SLOT, POLL_SLOT, FIRST_FREE_SLOT = 0, 1, 2, 3
FEW_STEPS = 8
"""Steps up to which a driver is generated with care: what it adds to a call shows only beside little work. That of a
longer one goes through LLVM's fast path, which takes half the time for as much again as each step costs, nanoseconds.
"""
COPIED_BYTES = 1 << 24
"""Bytes that a copy moves between two looks for signals: a few milliseconds."""


@dataclass(frozen=True)
class FrameLayout:
    """Which int64 slot of a call's frame holds what.

    Slot 0 is the error word, slot 1 the pool's address, slot 2 the address of the poll state. Then come the symbols,
    and the base addresses of inputs, outputs, constants (by digest) and arenas.
    """

    symbols: dict[str, int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: dict[str, int]
    arenas: dict[str, int]
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
    return FrameLayout(symbols, inputs, outputs, constants, arenas, slot)


def emit_driver(plan: Plan, segment: Segment, name: str) -> str:
    """LLVM text of `i32 @name(ptr frame)`, and declarations of the kernels it calls.

    It returns 0, or 1 + the number of the step (in the order of `plan.walk`, within the segment) at which a kernel
    reported a fault (the error word says which) or a signal handler raised. Kernels find the poll state behind the
    error word and look for signals too: where one ended early the driver stops before the next step.
    Raises `CodegenError` 1651 for a step that a captured segment cannot hold.
    """
    return _Driver(plan, name).text(segment.steps)


@dataclass
class _Driver:
    plan: Plan
    name: str
    lines: list[str] = field(default_factory=list[str])
    kernels: dict[str, None] = field(default_factory=dict[str, None])
    widest: int = 1
    count: int = 0
    ordinal: int = 0
    polled: bool = False

    def __post_init__(self) -> None:
        self.layout = frame_layout(self.plan)
        self.entry: list[str] = []
        self.addresses: dict[str, str] = {}
        self.dims: dict[Dim, str] = {}
        self.trips: dict[str, str] = {}

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

    def new(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def label(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # -- values --------------------------------------------------------------------------------------------------------
    def value(self, dim: Dim, lines: list[str]) -> str:
        """The dim as an i64 operand; computed in the entry block when it depends on symbols alone."""
        if dim.value is not None:
            return str(dim.value)
        inside = dim.names() & self.trips.keys()
        if not inside:
            if dim not in self.dims:
                self.dims[dim] = self._compute(dim, self.entry)
            return self.dims[dim]
        return self._compute(dim, lines)

    def _emit(self, lines: list[str], text: str) -> str:
        name = self.new()
        lines.append(f"  {name} = {text}")
        return name

    def _compute(self, dim: Dim, lines: list[str]) -> str:
        total = str(dim.constant) if dim.constant or not dim.terms else ""
        for monomial, coefficient in dim.terms:
            factor = ""
            for atom in monomial:
                operand = self._atom(atom, lines)
                factor = operand if not factor else self._emit(lines, f"mul i64 {factor}, {operand}")
            if coefficient != 1:
                factor = self._emit(lines, f"mul i64 {factor}, {coefficient}")
            total = factor if not total else self._emit(lines, f"add i64 {total}, {factor}")
        return total

    def _atom(self, atom: object, lines: list[str]) -> str:
        match atom:
            case str() if atom in self.trips:
                return self.trips[atom]
            case str():
                if atom not in self.layout.symbols:
                    raise CodegenError(1651, f"the symbol {atom} has no place in the frame")
                key = Dim((((atom,), 1),))
                if key not in self.dims:
                    at = self._emit(self.entry, f"getelementptr i64, ptr %frame, i64 {self.layout.symbols[atom]}")
                    self.dims[key] = self._emit(self.entry, f"load i64, ptr {at}")
                return self.dims[key]
            case FloorDiv(numerator=numerator, denominator=denominator):
                return self._floor_division(numerator, denominator, lines)[0]
            case Mod(value=value, modulus=modulus):
                return self._floor_division(value, modulus, lines)[1]
            case Extreme(name=name, arguments=arguments):
                operands = [self.value(argument, lines) for argument in arguments]
                found = operands[0]
                for operand in operands[1:]:
                    relation = "sgt" if name == "max" else "slt"
                    test = self._emit(lines, f"icmp {relation} i64 {found}, {operand}")
                    found = self._emit(lines, f"select i1 {test}, i64 {found}, i64 {operand}")
                return found
            case Loaded():
                raise CodegenError(1651, f"{atom} cannot be read while a plan computes its sizes")
            case _:
                raise CodegenError(1651, f"{atom} is no part of a size")

    def _floor_division(self, numerator: Dim, denominator: Dim, lines: list[str]) -> tuple[str, str]:
        """Quotient and remainder, rounded towards minus infinity.

        A divisor below 1 (never in a verified plan) counts as 1, so that nothing traps.
        """
        a, b = self.value(numerator, lines), self.value(denominator, lines)
        if denominator.value is None:
            positive = self._emit(lines, f"icmp sgt i64 {b}, 0")
            b = self._emit(lines, f"select i1 {positive}, i64 {b}, i64 1")
        remainder = self._emit(lines, f"srem i64 {a}, {b}")
        quotient = self._emit(lines, f"sdiv i64 {a}, {b}")
        below = self._emit(lines, f"icmp slt i64 {remainder}, 0")
        step = self._emit(lines, f"zext i1 {below} to i64")
        lifted = self._emit(lines, f"add i64 {remainder}, {b}")
        return (
            self._emit(lines, f"sub i64 {quotient}, {step}"),
            self._emit(lines, f"select i1 {below}, i64 {lifted}, i64 {remainder}"),
        )

    def address(self, buffer: PlanBuffer) -> str:
        """The buffer's address as an i64 operand, computed once in the entry block."""
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
                raise CodegenError(1651, f"{buffer.name} is allocated during the call; its segment must be interactive")
        at = self._emit(self.entry, f"getelementptr i64, ptr %frame, i64 {slot}")
        found = self._emit(self.entry, f"load i64, ptr {at}")
        if buffer.offset != 0:
            found = self._emit(self.entry, f"add i64 {found}, {self.value(buffer.offset, self.entry)}")
        self.addresses[buffer.name] = found
        return found

    def pointer(self, name: str) -> str:
        return self._emit(self.lines, f"inttoptr i64 {self.address(self.plan.buffer_named[name])} to ptr")

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
                    self._copy(step)
                case Branch():
                    self._branch(step)
                case Repeat():
                    self._repeat(step)
                case _:
                    raise CodegenError(1651, f"{step.name} cannot run inside one native call", where=step.origin)

    def _poll(self) -> None:
        status = self._emit(self.lines, "call i32 @tilework_poll(ptr %poll)")
        self._stop_unless_zero(status)

    def _stop_unless_zero(self, status: str) -> None:
        test = self._emit(self.lines, f"icmp eq i32 {status}, 0")
        onward = self.label("onward")
        self.lines += [f"  br i1 {test}, label %{onward}, label %stopped", f"{onward}:"]

    def _call(self, step: KernelStep | LibraryStep) -> None:
        self.kernels[step.kernel.name] = None
        operands = ["%error", *(self.address(self.plan.buffer_named[name]) for name in step.arguments)]
        operands += [self.value(symbol, self.lines) for symbol in step.symbols]
        self.widest = max(self.widest, len(operands))
        for position, operand in enumerate(operands):
            at = self._emit(self.lines, f"getelementptr i64, ptr %arguments, i64 {position}")
            self.lines.append(f"  store i64 {operand}, ptr {at}")
        self._stop_unless_zero(self._emit(self.lines, f"call i32 @{step.kernel.name}(ptr %arguments, ptr %pool)"))

    def _copy(self, step: CopyStep) -> None:
        bytes_ = self.plan.buffer_named[step.source].bytes
        size = self.value(bytes_, self.lines)
        target, source = self.pointer(step.target), self.pointer(step.source)
        if bytes_.value is not None and bytes_.value <= COPIED_BYTES:
            self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
            return
        done = self._emit(self.entry, "alloca i64")
        piece, look, after = self.label("piece"), self.label("look"), self.label("after")
        self.lines += [f"  store i64 0, ptr {done}", f"  br label %{piece}", f"{piece}:"]
        at = self._emit(self.lines, f"load i64, ptr {done}")
        left = self._emit(self.lines, f"sub i64 {size}, {at}")
        few = self._emit(self.lines, f"icmp sle i64 {left}, {COPIED_BYTES}")
        count = self._emit(self.lines, f"select i1 {few}, i64 {left}, i64 {COPIED_BYTES}")
        to = self._emit(self.lines, f"getelementptr i8, ptr {target}, i64 {at}")
        of = self._emit(self.lines, f"getelementptr i8, ptr {source}, i64 {at}")
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {count}, i1 false)")
        following = self._emit(self.lines, f"add i64 {at}, {COPIED_BYTES}")
        self.lines += [f"  store i64 {following}, ptr {done}", f"  br i1 {few}, label %{after}, label %{look}"]
        self.lines.append(f"{look}:")
        self._poll()
        self.lines += [f"  br label %{piece}", f"{after}:"]

    def _truth(self, buffer: str) -> str:
        value = self._emit(self.lines, f"load i8, ptr {self.pointer(buffer)}")
        return self._emit(self.lines, f"icmp ne i8 {value}, 0")

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
        counter = self._emit(self.entry, "alloca i64")
        self.lines.append(f"  store i64 0, ptr {counter}")
        head, body, after = self.label("trip"), self.label("body"), self.label("after")
        self.lines += [f"  br label %{head}", f"{head}:"]
        trip = self._emit(self.lines, f"load i64, ptr {counter}")
        if step.trips is not None:
            test = self._emit(self.lines, f"icmp slt i64 {trip}, {self.value(step.trips, self.lines)}")
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
        following = self._emit(self.lines, f"add i64 {trip}, 1")
        self.lines += [f"  store i64 {following}, ptr {counter}", f"  br label %{head}", f"{after}:"]
