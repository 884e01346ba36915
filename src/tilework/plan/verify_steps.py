"""The verifier's part for single steps: names, reach, arguments, shapes, types, and meanings."""

from __future__ import annotations

from tilework.dims import Dim, dim, symbol_bounds
from tilework.dtypes import boolean
from tilework.plan.boxes import boxes_of
from tilework.plan.buffers import ArenaPlace, ConstantPlace, InputPlace
from tilework.plan.findings import Findings, at, buffer_text, same_dim, step_text
from tilework.plan.proof import nonnegative
from tilework.plan.signature import Box, KernelBuffer, KernelSignature
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
    bodies,
    touches,
)


class StepVerifier:
    """Notes the faults of steps one by one."""

    def __init__(self, findings: Findings) -> None:
        self.plan = findings.plan
        self.samples = findings.samples
        self.faults = findings.faults
        self.buffers = findings.buffers
        self.devices = findings.devices
        self.queues = findings.queues
        self.measured = findings.measured
        self.names = findings.names
        self.fault = findings.fault
        self.known = findings.known
        self.same_shape = findings.same_shape

    def steps(self, steps: tuple[Step, ...], prefix: str, iterations: frozenset[str] = frozenset()) -> None:
        """Look at a list of steps and at the lists inside; `iterations` are the names of trip numbers around it."""
        for position, step in enumerate(steps):
            where = step_text(f"{prefix}{position}", step)
            before = len(self.faults)
            if step.queue not in self.queues:
                self.fault(1401, where, f"there is no queue {step.queue!r}")
            for name in dict.fromkeys(self.mentioned(step)):
                if name not in self.buffers:
                    self.fault(1401, where, f"there is no buffer {name!r}")
            if len(self.faults) == before:
                self.reach(where, step)
                self.writes(where, step)
                self.step(where, step, iterations)
            inner = iterations
            if isinstance(step, Repeat) and step.iteration:
                if step.iteration in self.names or step.iteration in iterations:
                    self.fault(1402, where, f"{step.iteration!r} names something else already")
                inner = iterations | {step.iteration}
            for arm, body in bodies(step):
                self.steps(body, f"{prefix}{position}.{arm}.", inner)

    def mentioned(self, step: Step) -> tuple[str, ...]:
        match step:
            case KernelStep() | LibraryStep():
                return step.arguments
            case Allocate():
                return (*step.buffers, *(r.buffer for r in step.readings if isinstance(r, Reading)))
            case _:
                return tuple(touch.buffer for touch in touches(step))

    def reach(self, where: str, step: Step) -> None:
        device = self.devices.get(self.queues[step.queue].device)
        if device is None:
            return
        spaces = (*device.spaces, *device.copy_spaces) if isinstance(step, CopyStep) else device.spaces
        for touch in touches(step):
            buffer = self.buffers[touch.buffer]
            if buffer.space not in spaces:
                text = f"buffer {buffer.name} is in space {buffer.space}, out of reach of device {device.name}"
                self.fault(1411, where, text)

    def writes(self, where: str, step: Step) -> None:
        for touch in touches(step):
            buffer = self.buffers[touch.buffer]
            if not touch.writes:
                continue
            match buffer.place:
                case ConstantPlace():
                    self.fault(1414, where, f"writes buffer {buffer.name}, which is a constant")
                case InputPlace(position=position) if 0 <= position < len(self.plan.inputs):
                    given = self.plan.inputs[position]
                    if given.policy.access == "read":
                        self.fault(
                            1414, where, f"writes buffer {buffer.name}, which is the caller's input {given.name}"
                        )
                case _:
                    pass

    def step(self, where: str, step: Step, iterations: frozenset[str]) -> None:
        match step:
            case KernelStep() | LibraryStep():
                self.kernel(where, step, iterations)
            case CopyStep():
                source, target = self.buffers[step.source], self.buffers[step.target]
                if source.dtype != target.dtype or not same_dim(source.elements, target.elements, self.samples):
                    text = f"copies {buffer_text(source)} to {buffer_text(target)}: types or numbers of elements differ"
                    self.fault(1404, where, text)
            case BlackBoxStep():
                for extent in step.measures:
                    self.measure(where, extent.symbol)
                    if not 0 <= extent.output < len(step.outputs):
                        self.fault(1403, where, f"measures result {extent.output}, of {len(step.outputs)}")
                        continue
                    buffer = self.buffers[step.outputs[extent.output]]
                    if not 0 <= extent.dimension < len(buffer.shape):
                        self.fault(1404, where, f"measures dimension {extent.dimension} of {buffer_text(buffer)}")
                    elif buffer.shape[extent.dimension] != dim(extent.symbol):
                        text = (
                            f"dimension {extent.dimension} of {buffer_text(buffer)} is not the measured {extent.symbol}"
                        )
                        self.fault(1404, where, text)
            case Allocate():
                for reading in step.readings:
                    self.measure(where, reading.symbol)
                    if isinstance(reading, Sized):
                        self.known(where, "measured value", reading.value, extra=iterations)
                        continue
                    buffer = self.buffers[reading.buffer]
                    if not (buffer.dtype.is_integer or buffer.dtype == boolean):
                        self.fault(1417, where, f"measures {reading.symbol} from {buffer_text(buffer)}: not integers")
                    count = buffer.elements.value
                    if reading.element < 0 or (count is not None and reading.element >= count):
                        self.fault(1417, where, f"{buffer_text(buffer)} has no element {reading.element}")
            case Carry():
                self.carry(where, step, iterations)
            case Check():
                for guard in step.guards:
                    self.known(where, "its condition", guard.value, extra=iterations)
            case Branch():
                self.truth(where, step.predicate)
            case Repeat():
                if step.condition:
                    self.truth(where, step.condition)
                if step.trips is not None:
                    self.known(where, "number of trips", step.trips, extra=iterations)
                elif not step.condition:
                    self.fault(1417, where, "has neither a number of trips nor a condition: it would never end")

    def carry(self, where: str, step: Carry, iterations: frozenset[str]) -> None:
        for size in step.sizes:
            self.measure(where, size.symbol)
            self.known(where, "measured value", size.value, extra=iterations)
        sizes = {size.symbol: size.value for size in step.sizes}
        targets = {self.buffers[target].memory for _, target in step.pairs}
        for name, other in step.pairs:
            source, target = self.buffers[name], self.buffers[other]
            shape = tuple(extent.substitute(sizes) for extent in target.shape)
            if source.dtype != target.dtype or not self.same_shape(source.shape, shape):
                text = f"carries {buffer_text(source)} to {buffer_text(target)}: types or extents differ"
                self.fault(1404, where, text)
            if source.memory in targets and not isinstance(source.place, ArenaPlace):
                self.fault(1412, where, f"{source.name} is in the memory of a target")

    def measure(self, where: str, symbol: str) -> None:
        if symbol not in self.measured:
            self.fault(1416, where, f"measures {symbol!r}, which is no measured symbol of the plan")

    def truth(self, where: str, name: str) -> None:
        buffer = self.buffers[name]
        if buffer.dtype != boolean or buffer.elements != dim(1):
            self.fault(1417, where, f"decides by {buffer_text(buffer)}: it must be one boolean")

    def kernel(self, where: str, step: KernelStep | LibraryStep, iterations: frozenset[str]) -> None:
        kernel = step.kernel
        if len(step.arguments) != len(kernel.buffers) or len(step.symbols) != len(kernel.symbols):
            text = (
                f"gives {len(step.arguments)} buffers and {len(step.symbols)} symbols to kernel {kernel.name}, "
                f"which has {len(kernel.buffers)} and {len(kernel.symbols)}"
            )
            self.fault(1403, where, text)
            return
        before = len(self.faults)
        for value in step.symbols:
            self.known(where, "symbol value", value, extra=iterations)
        values = {symbol.name: value for symbol, value in zip(kernel.symbols, step.symbols, strict=True)}
        for formal in kernel.buffers:
            for extent in formal.shape:
                for name in sorted(extent.names() - set(values)):
                    self.fault(
                        1416,
                        where,
                        f"kernel {kernel.name}: extent {extent} of {formal.name} uses {name!r}, no symbol of it",
                    )
            self.boxes(where, step.kernel, formal, set(values))
        if len(self.faults) != before:
            return
        for name, formal in zip(step.arguments, kernel.buffers, strict=True):
            buffer = self.buffers[name]
            shape = tuple(extent.substitute(values) for extent in formal.shape)
            if buffer.dtype != formal.dtype or not self.same_shape(buffer.shape, shape):
                wanted = f"{formal.dtype}[{', '.join(map(str, shape))}]"
                self.fault(
                    1404, where, f"kernel {kernel.name} takes {formal.name}: {wanted}, not {buffer_text(buffer)}"
                )
            if buffer.alignment % formal.alignment:
                wanted = f"kernel {kernel.name} takes {formal.name} at multiples of {formal.alignment} bytes"
                text = f"{wanted}, {name} is at {buffer.alignment}"
                self.fault(1405, where, text)
            for box in boxes_of(step, formal):
                self.box_inside(where, step.kernel, formal, box, shape)
        self.bounds(where, step)
        self.meaning(where, step)

    def boxes(self, where: str, kernel: KernelSignature, formal: KernelBuffer, names: set[str]) -> None:
        """Boxes have the buffer's rank, and use the kernel's symbols."""
        for box in formal.boxes:
            if len(box.start) != len(formal.shape) or len(box.extents) != len(formal.shape):
                self.fault(1404, where, f"kernel {kernel.name}: a box of {formal.name} has another rank")
            for value in (*box.start, *box.extents):
                for name in sorted(value.names() - names):
                    text = f"kernel {kernel.name}: a box of {formal.name} uses {name!r}, no symbol of it"
                    self.fault(1416, where, text)

    def box_inside(
        self, where: str, kernel: KernelSignature, formal: KernelBuffer, box: Box, shape: tuple[Dim, ...]
    ) -> None:
        """A box is inside its buffer."""
        limits = symbol_bounds(self.plan.symbols)
        for start, extent, size in zip(box.start, box.extents, shape, strict=True):
            for value in (start, extent, size - start - extent):
                if nonnegative(value, limits) or value.names() - self.names:
                    continue
                wrong = next((values for values in self.samples or [{}] if value.evaluate(values) < 0), None)
                if wrong is not None:
                    text = f"a box of {formal.name} from {start} to {start + extent} is not inside 0 to {size}"
                    self.fault(1404, where, f"kernel {kernel.name}: {text}{at(wrong)}")

    def bounds(self, where: str, step: KernelStep | LibraryStep) -> None:
        """Values of the kernel's symbols must lie in their bounds."""
        limits = symbol_bounds(self.plan.symbols)
        for symbol, value in zip(step.kernel.symbols, step.symbols, strict=True):
            low, high = value.bounds(limits)
            least, most = symbol.bounds
            if (low >= least and high <= most) or value.names() - self.names:
                continue
            for values in self.samples:
                number = value.evaluate(values)
                if not least <= number <= most or number % symbol.multiple:
                    self.fault(
                        1404, where, f"kernel {step.kernel.name} takes {symbol}, not {value} = {number}{at(values)}"
                    )
                    break

    def meaning(self, where: str, step: KernelStep | LibraryStep) -> None:
        formals = {formal.name: formal for formal in step.kernel.buffers}
        stated: set[str] = set()
        for argument in step.meaning.arguments:
            buffer = argument.buffer
            stated.add(buffer.name)
            formal = formals.get(buffer.name)
            if formal is None:
                self.fault(
                    1423, where, f"its meaning has buffer {buffer.name}, which kernel {step.kernel.name} does not take"
                )
            elif formal.dtype != buffer.dtype or formal.shape != buffer.shape:
                self.fault(
                    1423,
                    where,
                    f"its meaning has another shape or type of {buffer.name} than kernel {step.kernel.name}",
                )
            elif formal.access != argument.access:
                text = (
                    f"its meaning does {argument.access} {buffer.name}, kernel {step.kernel.name} does {formal.access}"
                )
                self.fault(1423, where, text)
        for formal in step.kernel.buffers:
            if formal.access != "workspace" and formal.name not in stated:
                self.fault(1423, where, f"its meaning lacks buffer {formal.name} of kernel {step.kernel.name}")
        names = {symbol.name for symbol in step.kernel.symbols}
        for symbol in step.meaning.symbols:
            if symbol.name not in names:
                self.fault(1423, where, f"its meaning has symbol {symbol.name}, kernel {step.kernel.name} does not")
