"""The verifier's part for what stands around the steps: tables of names, symbols, buffers, inputs and outputs."""

from __future__ import annotations

from tilework.dims import Dim, dim
from tilework.plan.buffers import ArenaPlace, InputPlace, OutputPlace, PlanBuffer
from tilework.plan.findings import Findings, at, buffer_text, place_text
from tilework.plan.steps import measured_by


class TableVerifier:
    """Notes the faults of everything but steps."""

    def __init__(self, findings: Findings) -> None:
        self.plan = findings.plan
        self.samples = findings.samples
        self.faults = findings.faults
        self.buffers = findings.buffers
        self.devices = findings.devices
        self.spaces = findings.spaces
        self.measured = findings.measured
        self.names = findings.names
        self.fault = findings.fault
        self.known = findings.known
        self.alignment = findings.alignment
        self.same_shape = findings.same_shape

    def run(self) -> None:
        """Look at all tables."""
        self.tables()
        self.symbols()
        for buffer in self.plan.buffers:
            self.buffer(buffer)
        self.boundary()

    def tables(self) -> None:
        plan = self.plan
        for kind, names in (
            ("space", [space.name for space in plan.spaces]),
            ("device", [device.name for device in plan.devices]),
            ("queue", [queue.name for queue in plan.queues]),
            ("arena", [arena.name for arena in plan.arenas]),
            ("buffer", [buffer.name for buffer in plan.buffers]),
            ("symbol", [symbol.name for symbol in plan.symbols]),
            ("input", [given.name for given in plan.inputs]),
            ("output", [output.name for output in plan.outputs]),
        ):
            seen: set[str] = set()
            for name in names:
                if name in seen:
                    self.fault(1402, f"{kind} {name}", f"there are two {kind}s of this name")
                seen.add(name)
        for device in plan.devices:
            for space in (*device.spaces, *device.copy_spaces):
                if space not in self.spaces:
                    self.fault(1401, f"device {device.name}", f"reaches space {space!r}, which the plan does not have")
        for queue in plan.queues:
            if queue.device not in self.devices:
                self.fault(1401, f"queue {queue.name}", f"is on device {queue.device!r}, which the plan does not have")
        for arena in plan.arenas:
            where = f"arena {arena.name}"
            if arena.space not in self.spaces:
                self.fault(1401, where, f"is in space {arena.space!r}, which the plan does not have")
            self.alignment(where, arena.alignment)
            self.known(where, "its size", arena.bytes, fixed=True)

    def symbols(self) -> None:
        bound: set[str] = set()
        for binding in self.plan.bindings:
            where = f"binding of {binding.symbol}"
            if binding.symbol not in self.names:
                self.fault(1401, where, "is of no symbol of the plan")
            elif binding.symbol in self.measured:
                self.fault(1416, where, "the symbol is measured: no input binds it")
            if binding.symbol in bound:
                self.fault(1402, where, "another binding gives the symbol a value too")
            bound.add(binding.symbol)
            if not 0 <= binding.position < len(self.plan.inputs):
                self.fault(1401, where, f"there is no input number {binding.position}")
                continue
            given = self.plan.inputs[binding.position]
            if not 0 <= binding.dimension < given.type.rank:
                self.fault(1401, where, f"input {given.name} has no dimension {binding.dimension}")
            elif given.type.shape[binding.dimension] != dim(binding.symbol) * binding.factor + binding.addend:
                extent = given.type.shape[binding.dimension]
                wanted = dim(binding.symbol) * binding.factor + binding.addend
                text = f"extent {extent} of input {given.name} is not {wanted}"
                self.fault(1416, where, text)
        for symbol in self.plan.symbols:
            if not symbol.measured and symbol.name not in bound:
                self.fault(
                    1416, f"symbol {symbol.name}", "no extent of an input gives it a value, and it is not measured"
                )
        measuring = {name for _, step in self.plan.walk() for name in measured_by(step)}
        for name in sorted(self.measured - measuring):
            self.fault(1416, f"symbol {name}", "it is measured, but no step measures it")
        for position, guard in enumerate(self.plan.guards):
            self.known(f"guard {position}", "its condition", guard.value, fixed=True)

    # -- buffers -----------------------------------------------------------------------------------------------------
    def buffer(self, buffer: PlanBuffer) -> None:
        where = f"buffer {buffer.name}"
        plan = self.plan
        if buffer.space not in self.spaces:
            self.fault(1401, where, f"is in space {buffer.space!r}, which the plan does not have")
        self.alignment(where, buffer.alignment)
        for extent in buffer.shape:
            self.known(where, "extent", extent)
            if extent.is_constant and extent.constant < 0:
                self.fault(1404, where, f"extent {extent} is negative")
        self.known(where, "offset", buffer.offset, fixed=True)
        match buffer.place:
            case InputPlace(position=position):
                if not 0 <= position < len(plan.inputs):
                    self.fault(1401, where, f"there is no input number {position}")
            case OutputPlace(position=position):
                if not 0 <= position < len(plan.outputs):
                    self.fault(1401, where, f"there is no output number {position}")
                elif plan.outputs[position].policy.kind != "fresh":
                    text = f"output {plan.outputs[position].name} is no fresh array: it has no memory of its own"
                    self.fault(1412, where, text)
            case ArenaPlace(arena=name):
                arena = plan.arena_named.get(name)
                if arena is None:
                    self.fault(1401, where, f"there is no arena {name!r}")
                elif arena.space != buffer.space:
                    self.fault(1411, where, f"is in space {buffer.space}, but its arena {name} is in {arena.space}")
            case _:
                pass

    def boundary(self) -> None:
        plan = self.plan
        for position, given in enumerate(plan.inputs):
            where = f"input {given.name}"
            for extent in given.type.shape:
                self.known(where, "extent", extent, fixed=True)
            changed = given.policy.mutated_by
            if given.policy.access != "mutated":
                continue
            if changed is None or not 0 <= changed < len(plan.outputs):
                self.fault(1412, where, f"it is mutated, but by output {changed}, which there is not")
            elif (plan.outputs[changed].policy.kind, plan.outputs[changed].policy.of) != ("alias", position):
                self.fault(
                    1412, where, f"it is mutated by output {plan.outputs[changed].name}, which is no alias of it"
                )
        for position, output in enumerate(plan.outputs):
            where = f"output {output.name}"
            policy = output.policy
            for extent in output.type.shape:
                self.known(where, "extent", extent)
            buffer = self.buffers.get(output.buffer)
            if buffer is None:
                self.fault(1401, where, f"there is no buffer {output.buffer!r}")
                continue
            if policy.kind == "fresh":
                if buffer.place != OutputPlace(position):
                    self.fault(
                        1412,
                        where,
                        f"a fresh output needs a buffer at its own memory; {buffer.name} is at {place_text(buffer)}",
                    )
                if not self.same_shape(buffer.shape, output.type.shape) or buffer.dtype != output.type.dtype:
                    self.fault(1413, where, f"is {output.type}, but buffer {buffer.name} is {buffer_text(buffer)}")
                continue
            if policy.of is None or not 0 <= policy.of < len(plan.inputs):
                self.fault(1412, where, f"is {policy.kind} of input {policy.of}, which there is not")
                continue
            if not isinstance(buffer.place, InputPlace) or buffer.place.position != policy.of:
                text = f"is {policy.kind} of input {policy.of}, but buffer {buffer.name} is at {place_text(buffer)}"
                self.fault(1412, where, text)
                continue
            if policy.kind == "alias":
                if not self.same_shape(buffer.shape, output.type.shape) or buffer.dtype != output.type.dtype:
                    self.fault(1413, where, f"is {output.type}, but buffer {buffer.name} is {buffer_text(buffer)}")
                continue
            self.view(where, buffer, output.type.shape, policy.strides, policy.offset)

    def view(
        self,
        where: str,
        buffer: PlanBuffer,
        shape: tuple[Dim, ...],
        strides: tuple[Dim, ...] | None,
        offset: Dim | None,
    ) -> None:
        if strides is None or offset is None or len(strides) != len(shape):
            self.fault(1412, where, "a view needs an offset and one stride per dimension")
            return
        for value in (*strides, offset):
            self.known(where, "stride or offset", value)
        if self.faults:
            return
        for values in self.samples:
            extents = [extent.evaluate(values) for extent in shape]
            if 0 in extents:
                continue
            low = high = offset.evaluate(values)
            for extent, stride in zip(extents, strides, strict=True):
                reach = (extent - 1) * stride.evaluate(values)
                low, high = low + min(reach, 0), high + max(reach, 0)
            elements = buffer.elements.evaluate(values)
            if low < 0 or high >= elements:
                text = f"reaches elements {low} to {high} of the {elements} of buffer {buffer.name}{at(values)}"
                self.fault(1412, where, text)
                return
