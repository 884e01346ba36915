"""The text form of plans, for people and for `plan.parse`.

    plan small
      symbol n in 0..64
      space host
      device cpu: cpu sees (host)
      queue main on cpu
      arena scratch: 4*n bytes in host aligned 64
      input x: float32[n]
      output y: float32[n] is y
      bind n: dimension 0 of input 0
      buffer x: float32[n] in host at input 0 + 0 aligned 4
      buffer t: float32[n] in host at arena scratch + 0 aligned 64
      buffer y: float32[n] in host at output 0 + 0 aligned 64

    segment captured
      call first: kernel 0 (x, t) [n] on main signals (1)
      call second: kernel 0 (t, y) [n] on main waits (1)

    kernel 0: twice
      read x: float32[n] aligned 4
      write y: float32[n] aligned 4
      symbol n in 0..
      meaning
        program twice
          ...

Kernels that are equal, meaning included, are printed once. Constants and black boxes stand by digest and identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilework.dims import Symbol
from tilework.loops.text import program_text
from tilework.loops.words import dim_text, index_text, name_text
from tilework.plan.buffers import ArenaPlace, ConstantPlace, InputPlace, MeasuredPlace, OutputPlace, PlanBuffer
from tilework.plan.guard import Guard
from tilework.plan.plan import Plan, PlanInput, PlanOutput
from tilework.plan.signature import KernelSignature
from tilework.plan.steps import (
    Allocate,
    BlackBoxStep,
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


def plan_text(plan: Plan) -> str:
    """The text of a plan; `plan.parse.parse_plan` reads it back to the same form."""
    kernels: dict[tuple[KernelSignature, str], int] = {}
    lines = [f"plan {name_text(plan.name)}", *("  " + line for line in _table_lines(plan))]
    for segment in plan.segments:
        lines += ["", f"segment {segment.kind}", *_step_lines(segment.steps, "  ", kernels)]
    for (kernel, meaning), number in kernels.items():
        lines += ["", f"kernel {number}: {name_text(kernel.name)}", *("  " + line for line in signature_lines(kernel))]
        lines += ["  meaning", *(f"    {line}" if line else "" for line in meaning.splitlines())]
    return "\n".join(lines) + "\n"


def _table_lines(plan: Plan) -> Iterator[str]:
    for symbol in plan.symbols:
        yield symbol_text(symbol)
    for space in plan.spaces:
        yield f"space {name_text(space.name)}"
    for device in plan.devices:
        copies = f" copies {_names(device.copy_spaces)}" if device.copy_spaces else ""
        yield f"device {name_text(device.name)}: {name_text(device.kind)} sees {_names(device.spaces)}{copies}"
    for queue in plan.queues:
        yield f"queue {name_text(queue.name)} on {name_text(queue.device)}"
    for arena in plan.arenas:
        size = f"{dim_text(arena.bytes)} bytes in {name_text(arena.space)}"
        yield f"arena {name_text(arena.name)}: {size} aligned {arena.alignment}"
    for given in plan.inputs:
        yield _input_text(given)
    for output in plan.outputs:
        yield _output_text(output)
    for binding in plan.bindings:
        line = f"bind {name_text(binding.symbol)}: dimension {binding.dimension} of input {binding.position}"
        if (binding.factor, binding.addend) != (1, 0):
            line += f" factor {binding.factor} addend {binding.addend}"
        yield line
    for guard in plan.guards:
        yield guard_text(guard)
    for buffer in plan.buffers:
        yield _buffer_text(buffer)


def symbol_text(symbol: Symbol) -> str:
    """A symbol with its bounds, as loop programs write it."""
    measured = "measured " if symbol.measured else ""
    upper = "" if symbol.upper is None else str(symbol.upper)
    step = f" step {symbol.multiple}" if symbol.multiple != 1 else ""
    return f"symbol {measured}{name_text(symbol.name)} in {symbol.lower}..{upper}{step}"


def guard_text(guard: Guard) -> str:
    """A condition with its message."""
    relation = ">=" if guard.relation == "nonnegative" else "=="
    return f"guard {dim_text(guard.value)} {relation} 0 else {name_text(guard.message)}"


def _input_text(given: PlanInput) -> str:
    line = f"input {name_text(given.name)}: {given.type.dtype}{index_text(given.type.shape)}"
    policy = given.policy
    if policy.access == "donated":
        line += " donated"
    elif policy.access == "mutated":
        line += " mutated" if policy.mutated_by is None else f" mutated by {policy.mutated_by}"
    if policy.noncontiguous != "copy":
        line += f" noncontiguous {policy.noncontiguous}"
    return line


def _output_text(output: PlanOutput) -> str:
    policy = output.policy
    kind = f"{output.type.dtype}{index_text(output.type.shape)}"
    line = f"output {name_text(output.name)}: {kind} is {name_text(output.buffer)}"
    if policy.kind != "fresh":
        line += f" {policy.kind}"
    if policy.of is not None:
        line += f" of {policy.of}"
    if policy.strides is not None:
        line += f" strides {index_text(policy.strides)}"
    if policy.offset is not None:
        line += f" offset {dim_text(policy.offset)}"
    return line


def _buffer_text(buffer: PlanBuffer) -> str:
    match buffer.place:
        case InputPlace(position=position):
            place = f"input {position} + {dim_text(buffer.offset)}"
        case OutputPlace(position=position):
            place = f"output {position} + {dim_text(buffer.offset)}"
        case ArenaPlace(arena=arena):
            place = f"arena {name_text(arena)} + {dim_text(buffer.offset)}"
        case ConstantPlace(digest=digest):
            place = f"constant {name_text(digest)}"
        case MeasuredPlace():
            place = "allocation"
    kind = f"{buffer.dtype}{index_text(buffer.shape)} in {name_text(buffer.space)}"
    alias = f" set {name_text(buffer.alias_set)}" if buffer.alias_set else ""
    return f"buffer {name_text(buffer.name)}: {kind} at {place} aligned {buffer.alignment}{alias}"


def signature_lines(kernel: KernelSignature) -> Iterator[str]:
    """The lines of a kernel's signature below its name."""
    for formal in kernel.buffers:
        aligned = f" aligned {formal.alignment}" if formal.alignment != 1 else ""
        line = f"{formal.access} {name_text(formal.name)}: {formal.dtype}{index_text(formal.shape)}{aligned}"
        yield line + "".join(f" box {index_text(b.start)} of {index_text(b.extents)}" for b in formal.boxes)
    for symbol in kernel.symbols:
        yield symbol_text(symbol)
    for first, second in kernel.may_alias:
        yield f"alias ({name_text(first)}, {name_text(second)})"
    for fault in kernel.faults:
        yield f"fault {name_text(fault)}"
    if kernel.launch:
        yield f"launch {index_text(kernel.launch)}"
    if kernel.random_counter:
        yield "random"


def _step_lines(steps: tuple[Step, ...], margin: str, kernels: dict[tuple[KernelSignature, str], int]) -> Iterator[str]:
    for step in steps:
        yield f"{margin}{_step_text(step, kernels)}{_ending(step)}"
        if isinstance(step, Branch):
            yield f"{margin}  then"
            yield from _step_lines(step.then, margin + "    ", kernels)
            yield f"{margin}  else"
            yield from _step_lines(step.otherwise, margin + "    ", kernels)
        elif isinstance(step, Repeat):
            yield from _step_lines(step.body, margin + "  ", kernels)


def _step_text(step: Step, kernels: dict[tuple[KernelSignature, str], int]) -> str:
    name = name_text(step.name)
    match step:
        case KernelStep() | LibraryStep():
            number = kernels.setdefault((step.kernel, program_text(step.meaning)), len(kernels))
            library = ""
            if isinstance(step, LibraryStep):
                library = f" library {name_text(step.library)} function {name_text(step.function)}"
            values = index_text(step.symbols) if step.symbols else "[]"
            return f"call {name}: kernel {number}{library} {_names(step.arguments)} {values}"
        case CopyStep():
            return f"copy {name}: {name_text(step.source)} to {name_text(step.target)}"
        case BlackBoxStep():
            text = f"box {name}: {name_text(step.box.identity)} {_names(step.inputs)} to {_names(step.outputs)}"
            if step.ordered:
                text += " ordered"
            for extent in step.measures:
                text += f" measures {name_text(extent.symbol)} dimension {extent.dimension} of {extent.output}"
            return text
        case Allocate():
            text = f"allocate {name}: {_names(step.buffers)}" + (" keep" if step.keep else "")
            return text + "".join(map(_reading_text, step.readings))
        case Carry():
            pairs = ", ".join(f"{name_text(source)} to {name_text(target)}" for source, target in step.pairs)
            return f"carry {name}: ({pairs})" + "".join(map(_reading_text, step.sizes))
        case Check():
            return f"check {name}: {step.code}" + "".join(f" {guard_text(guard)}" for guard in step.guards)
        case Branch():
            return f"branch {name}: {name_text(step.predicate)}"
        case Repeat():
            text = f"repeat {name}:"
            if step.trips is not None:
                text += f" trips {dim_text(step.trips)}"
            if step.condition:
                text += f" while {name_text(step.condition)}"
            if step.iteration:
                text += f" as {name_text(step.iteration)}"
            return text


def _reading_text(reading: Reading | Sized) -> str:
    symbol = name_text(reading.symbol)
    if isinstance(reading, Sized):
        return f" measures {symbol} as {dim_text(reading.value)}"
    return f" measures {symbol} element {reading.element} of {name_text(reading.buffer)}"


def _ending(step: Step) -> str:
    text = f" on {name_text(step.queue)}"
    if step.waits:
        text += f" waits ({', '.join(map(str, step.waits))})"
    if step.signals:
        text += f" signals ({', '.join(map(str, step.signals))})"
    if step.origin:
        text += f" from {name_text(step.origin)}"
    if isinstance(step, KernelStep) and step.fault_origins:
        text += f" faults from {_names(step.fault_origins)}"
    if isinstance(step, KernelStep) and step.fault_reasons:
        text += f" saying {_names(step.fault_reasons)}"
    return text


def _names(names: Iterable[str]) -> str:
    return f"({', '.join(map(name_text, names))})"
