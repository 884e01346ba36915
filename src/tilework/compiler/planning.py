"""From kernels to a plan: which buffer holds which value, which bytes are shared, and the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tilework.candidates.region import Region
from tilework.codegen.cpu.kernel import KernelText
from tilework.compiler.conditions import checks, guards
from tilework.compiler.control import ByteClasses, control_steps, growing_rows, share_bytes
from tilework.compiler.kernels import RegionKernel
from tilework.compiler.origins import blamed, origin_of, reason_of
from tilework.compiler.parts import Parts, alignment_at, at
from tilework.compiler.plan_items import PlanBlock, PlanControl, PlanItem
from tilework.compiler.stacking import ProgramKernel
from tilework.decisions.windows import Window
from tilework.dims import Dim, Symbol, dim
from tilework.errors import CodegenError, GraphError
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Constant, Graph, Node, Value
from tilework.graph.types import TensorType
from tilework.loops.program import LoopProgram
from tilework.ops.registry import operator
from tilework.plan.buffers import (
    Arena,
    ArenaPlace,
    ConstantPlace,
    InputPlace,
    MeasuredPlace,
    OutputPlace,
    Place,
    PlanBuffer,
)
from tilework.plan.plan import Plan, PlanInput, PlanOutput, Segment, input_bindings
from tilework.plan.steps import Allocate, CopyStep, KernelStep, Reading, Step, measured_by, walk

ARENA = "arena"
ALIGNMENT = 64
"""Bytes to which arena buffers are aligned: a cache line, and a vector of the widest machine."""


def is_view(region: Region) -> bool:
    """Whether a region only gives its operand another shape, and so can be the same bytes.

    Memory of a size that the call measures is allocated by that size: what is only assumed to be as large is copied.
    """
    if len(region.nodes) != 1 or not operator(region.root.operator).view:
        return False
    source, result = region.values[region.root.inputs[0]].tensor, region.root.output.tensor
    if source.size == result.size:  # 0, perhaps: then an extent may be measured after the operand's memory is allocated
        names = _names(result) - _names(source)
    else:
        names = source.size.names() | result.size.names()
    return not any(symbol.measured and symbol.name in names for symbol in region.symbols)


def _names(kind: TensorType) -> set[str]:
    """The symbols of a type's extents."""
    return {name for extent in kind.shape for name in extent.names()}


def build_plan(block: PlanBlock) -> tuple[Plan, dict[str, Constant]]:
    """The draft plan (arena offsets not yet placed), and the constants that kernels want packed, by digest.

    One step a kernel, in order, control steps around those of subgraphs, and copies into outputs that are no kernel's
    own result.
    """
    planner = _Planner(block)
    return planner.plan(), planner.packed


@dataclass(frozen=True)
class _Change:
    """Output number `position`, the value `name`, becomes the contents of input number `input`."""

    position: int
    name: str
    input: int


class _Planner:
    def __init__(self, block: PlanBlock) -> None:
        self.graph = block.graph
        self.block = block
        self.signature = self.graph.signature_or_default()
        self.values: dict[str, Value] = {}
        for inner in _blocks(block):
            self.values.update(inner.graph.values)
        self.classes = ByteClasses()
        self.parts = Parts(self.classes)
        self._share(block)
        self.places: dict[str, Place] = {}
        self.buffers: dict[str, PlanBuffer] = {}
        self.steps: list[Step] = []
        self.packed: dict[str, Constant] = {}
        self.copies: dict[int, str] = {}
        """The buffer that the copy into each copied output writes."""
        self.shared = {self.parts.root(name) for name in self.classes.first} | self.parts.roots()
        self.measured = {symbol.name for symbol in self._symbols() if symbol.measured}
        self.allocated: set[str] = set()
        """The memories that a step allocates by now."""
        self.growing = {self.classes.of(name) for item in _controls(block) for name in growing_rows(item)}
        self.read = {name for inner in _blocks(block) for name in inner.graph.outputs}
        for inner in _blocks(block):
            self.read.update(name for node in inner.graph.nodes for name in node.inputs)

    def _share(self, block: PlanBlock) -> None:
        self.parts.add(block)
        for item in block.items:
            if isinstance(item, Value) and not block.windows.covers(block.graph.producers[item.name]):
                self.classes.first[item.name] = block.graph.producers[item.name].inputs[0]
            elif isinstance(item, PlanControl):
                share_bytes(item, self.classes, self._share)

    def plan(self) -> Plan:
        graph = self.graph
        inputs = tuple(
            PlanInput(value.name, value.tensor, policy)
            for value, policy in zip(graph.inputs, self.signature.inputs, strict=True)
        )
        for position, value in enumerate(graph.inputs):
            self.places[value.name] = InputPlace(position)
        for inner in _blocks(self.block):
            for constant in inner.graph.constants:
                self.places[constant.name] = ConstantPlace(constant.digest)
        copied, changed = self._place_outputs()
        self._items(self._needed(), graph)
        for position, name in copied:
            self._copy(position, name)
        self._change_inputs(changed)
        named = zip(graph.outputs, _distinct(graph.outputs), strict=True)
        outputs = tuple(self._output(position, name, shown) for position, (name, shown) in enumerate(named))
        bindings = input_bindings(inputs)
        known = self._symbols()
        bound = {b.symbol for b in bindings} | {m for _, step in walk(tuple(self.steps)) for m in measured_by(step)}
        unbound = {s.name for s in known} - bound
        used = {name for b in self.buffers.values() for d in b.shape for name in d.names()}
        kernels = [step for _, step in walk(tuple(self.steps)) if isinstance(step, KernelStep)]
        used |= {name for s in kernels for d in s.symbols for name in d.names()}
        if unbound & used:
            raise CodegenError(
                1653, f"no input's shape gives the symbol {min(unbound & used)} its value",
                hint="fix that dimension when compiling (shapes=...)",
            )  # fmt: skip
        symbols = tuple(s for s in known if s.name not in unbound)
        inner = [block.graph for block in _blocks(self.block)]
        return Plan(
            graph.name, inputs, outputs, tuple(self.buffers.values()), (Segment("captured", tuple(self.steps)),),
            symbols, bindings, guards(self.graph, inner, self.measured), (Arena(ARENA, "host", Dim(), ALIGNMENT),),
        )  # fmt: skip

    def _place_outputs(self) -> tuple[list[tuple[int, str]], list[_Change]]:
        """Give the first fresh output of each class of bytes that a kernel makes the output's own memory.

        Listed are the other fresh ones, which are copied at the end (an input or constant as output, one value twice),
        and the new contents of inputs. Raises `GraphError` 1207 for an alias that is not the input it names.
        """
        copied: list[tuple[int, str]] = []
        changed: list[_Change] = []
        mutating = {
            policy.mutated_by: number
            for number, policy in enumerate(self.signature.inputs)
            if policy.access == "mutated" and policy.mutated_by is not None
        }
        for position, number in mutating.items():
            if (self.signature.outputs[position].kind, self.signature.outputs[position].of) != ("alias", number):
                raise GraphError(
                    1207, f"output {position} changes input {self.graph.inputs[number].name}, so it must be its alias",
                    where=self.graph.name,
                )  # fmt: skip
        for position, name in enumerate(self.graph.outputs):
            policy = self.signature.outputs[position]
            base = self.classes.of(name)
            if position in mutating:
                changed.append(_Change(position, name, mutating[position]))
            elif policy.kind == "alias" and policy.of is not None:
                self._check_alias(position, base, policy.of)
            elif policy.kind == "fresh" and (base in self.places or base in self.parts.windows):
                copied.append((position, name))
            elif policy.kind == "fresh" and self._fills(base, name):
                self.places[base] = OutputPlace(position)
            elif policy.kind == "fresh":
                copied.append((position, name))
        return copied, changed

    def _fills(self, base: str, name: str) -> bool:
        """Whether a value is all that its first bytes hold, and these are nothing that a loop lets grow."""
        if base in self.growing:
            return False
        held, shown = self.values[base].tensor, self.graph.values[name].tensor
        return held.size == shown.size or not (held.size.names() | shown.size.names()) & self.measured

    def _check_alias(self, position: int, base: str, of: int) -> None:
        """An output that is an input's memory must be what that memory holds at the end."""
        given, policy = self.graph.inputs[of].name, self.signature.inputs[of]
        held = given
        if policy.access == "mutated" and policy.mutated_by is not None:
            held = self.classes.of(self.graph.outputs[policy.mutated_by])
        if base != held:
            raise GraphError(
                1207, f"output {position} is called an alias of input {given}, which does not hold its value",
                where=self.graph.name, hint="make it fresh, or say that it changes the input",
            )  # fmt: skip

    def _needed(self) -> list[PlanItem]:
        """The items whose results somebody reads: an output that is a view of an input needs none."""
        read = {
            self.parts.root(name)
            for name, policy in zip(self.graph.outputs, self.signature.outputs, strict=True)
            if policy.kind != "view"
        }
        found: list[PlanItem] = []
        for item in reversed(self.block.items):
            if isinstance(item, Value):
                found.append(item)
                if self.parts.root(item.name) in read:
                    read.update(self.parts.root(name) for name in self.parts.read(item.name, self.block.graph))
                continue
            measures = False
            if isinstance(item, RegionKernel):
                results, operands = item.region.outputs, [value.name for value in item.region.inputs]
                root = item.region.root
                measures = bool(operator(root.operator).measured(root.attributes))
                operands += root.inputs if measures else ()
            else:
                results, operands = item.control.node.outputs, list(item.control.outside)
            if measures or any(self.parts.root(value.name) in read for value in results):
                read.update(self.parts.root(name) for name in operands)
                found.append(item)
        return found[::-1]

    def _items(self, items: Iterable[PlanItem], graph: Graph) -> None:
        for item in items:
            if isinstance(item, RegionKernel):
                self._kernel(item, graph)
            elif isinstance(item, Value):
                self._check([graph.producers[item.name]], graph)
                self._join(item, graph)
            else:
                self.steps.extend(control_steps(self, item))

    # -- what control steps need ---------------------------------------------------------------------------------------
    def nested(self, block: PlanBlock, after: Callable[[], list[Step]] = list) -> list[Step]:
        """The steps of a block, and what comes after them in the same list. What these allocate is only so there."""
        around, self.steps = self.steps, []
        allocated = set(self.allocated)
        self._items(block.items, block.graph)
        found, self.steps = [*self.steps, *after()], around
        self.allocated = allocated
        return found

    def buffer_of(self, name: str) -> PlanBuffer:
        """The buffer of a value."""
        return self._buffer(self.values[name])

    def temporary(self, stem: str, like: PlanBuffer) -> PlanBuffer:
        """A new arena buffer of the same shape."""
        name = self._fresh(stem)
        made = self.buffers[name] = PlanBuffer(name, like.shape, like.dtype, "host", self._place(like.shape), ALIGNMENT)
        return made

    def _allocations(self, names: Iterable[str], origin: str) -> list[Step]:
        """Steps that allocate buffers before they are written, those whose sizes the call measures."""
        buffers = [self.buffers[name] for name in names]
        late = [b for b in buffers if self._is_late(b) and b.memory not in self.allocated]
        self.allocated.update(buffer.memory for buffer in late)
        names = tuple(buffer.name for buffer in late)
        return [Allocate(f"allocate {late[0].name}", (), names, origin=origin)] if late else []

    def _is_late(self, buffer: PlanBuffer) -> bool:
        """Whether a step allocates it: measured places, and outputs of measured size (`plan.needs_allocation`)."""
        if isinstance(buffer.place, OutputPlace):
            shape = self.graph.values[self.graph.outputs[buffer.place.position]].tensor.shape
            return any(extent.names() & self.measured for extent in shape)
        return isinstance(buffer.place, MeasuredPlace)

    def _place(self, shape: Iterable[Dim]) -> Place:
        """Where a new buffer lives: one whose size the call measures in memory of its own."""
        return MeasuredPlace() if any(extent.names() & self.measured for extent in shape) else ArenaPlace(ARENA)

    def copied(self, source: PlanBuffer, target: PlanBuffer, origin: str) -> list[Step]:
        """Steps that copy all elements, and allocate what they are copied to where a step has to."""
        copy = CopyStep(f"copy {source.name} to {target.name}", source.name, target.name, origin=origin)
        return [*self._allocations([target.name], origin), copy]

    def is_allocated(self, buffers: Sequence[PlanBuffer]) -> None:
        """Take note that steps of the caller's own allocate buffers."""
        self.allocated.update(buffer.memory for buffer in buffers)

    def called(self, name: str, kernel: ProgramKernel, arguments: Sequence[PlanBuffer], origin: str) -> list[Step]:
        """Steps that call a kernel, and allocate what it writes where a step has to."""
        return self._call(name, kernel.kernel, kernel.program, [buffer.name for buffer in arguments], origin)

    def _change_inputs(self, changes: list[_Change]) -> None:
        """Write the new contents of inputs, after everything that reads the old ones."""
        inputs = self.graph.inputs
        changing = {inputs[change.input].name for change in changes}
        sources: dict[int, PlanBuffer] = {}
        for change in changes:
            base, value = self.classes.of(change.name), self.graph.values[change.name]
            sources[change.position] = self._buffer(value)
            if base in changing - {inputs[change.input].name}:  # the old contents of an input that is changed too
                held = PlanBuffer(
                    self._fresh(f"old {base}"), value.tensor.shape, value.tensor.dtype, "host", ArenaPlace(ARENA),
                    ALIGNMENT,
                )  # fmt: skip
                self.buffers[held.name] = held
                self.steps.append(CopyStep(f"keep {base}", sources[change.position].name, held.name, origin=base))
                sources[change.position] = held
        for change in changes:
            if self.classes.of(change.name) != inputs[change.input].name:
                target = self._buffer(inputs[change.input]).name
                source = sources[change.position].name
                self.steps.append(CopyStep(f"copy {change.position}", source, target, origin=change.name))

    def _buffer(self, value: Value) -> PlanBuffer:
        """The plan's buffer that holds a value, made on first use."""
        value = self.values.get(self.parts.holder(value.name), value)
        found = self.buffers.get(value.name)
        if found is None:
            window = self.parts.of(value.name)
            found = self.buffers[value.name] = self._part(value.name, value.tensor, window)
        return found

    def _part(self, name: str, tensor: TensorType, window: Window) -> PlanBuffer:
        """A buffer of that name at a byte of the memory whose first value is `window.whole`."""
        whole = self.values[window.whole].tensor if window.whole in self.values else tensor
        # of 0 elements, a part may have fixed extents where those of the whole are measured
        place = at(self.places.get(window.whole) or self._place(whole.shape), window.start)
        own = isinstance(place, (ArenaPlace, ConstantPlace, MeasuredPlace))
        least = tensor.dtype.itemsize
        alignment = alignment_at(window.start, least, ALIGNMENT) if own else least
        alias = f"of {window.whole}" if window.whole in self.shared else ""
        return PlanBuffer(name, tensor.shape, tensor.dtype, "host", place, alignment, alias)

    def _join(self, result: Value, graph: Graph) -> None:
        """Copy into a concatenation that has no kernel what lives elsewhere: the rest is written there by others."""
        origin = origin_of(graph.producers[result.name])
        for copied in self.parts.joined.get(result.name, ()):
            operand = graph.values[copied.whole]
            if operand.tensor.size == 0:
                continue
            whole = self.parts.of(result.name)
            name = self._fresh(f"part of {result.name}")
            window = Window(whole.whole, whole.start + copied.start)
            self.buffers[name] = self._part(name, operand.tensor, window)
            step = CopyStep(f"copy {operand.name} to {result.name}", self._buffer(operand).name, name, origin=origin)
            self.steps.append(step)

    def _fresh(self, stem: str) -> str:
        """A name for a buffer that is no value of the graph; values may be called anything."""
        name = stem
        while name in self.buffers or name in self.values:
            name += "_"
        return name

    def _kernel(self, item: RegionKernel, graph: Graph) -> None:
        region = item.region
        values = (*region.inputs, *region.outputs)
        packed = {name: self._apart(constant) for name, constant in item.packed(graph).items()}
        arguments = [self._buffer(packed[value.name].value if value.name in packed else value).name for value in values]
        origin = origin_of(region.root)
        self._measure(region, graph)
        self._check(region.nodes, graph)
        if operator(region.root.operator).measured(region.root.attributes) and region.root.output.name not in self.read:
            return  # only the size is wanted
        *before, step = self._call(region.name, item.kernel, item.program, arguments, origin, item.closed.values)
        if isinstance(step, KernelStep) and item.kernel.faults:
            nodes = blamed(item.closed.region, item.kernel.faults)
            origins = tuple(map(origin_of, nodes))
            reasons = tuple(reason_of(node, region, graph) for node in nodes)
            step = replace(
                step, fault_origins=origins if any(one != origin for one in origins) else (),
                fault_reasons=reasons if any(reasons) else (),
            )  # fmt: skip
        self.steps += [*before, step]

    def _apart(self, constant: Constant) -> Constant:
        """A packed constant, placed, under a name that nothing else has: kernels may want different things of one."""
        place = ConstantPlace(constant.digest)
        while constant.name in self.values or self.places.get(constant.name, place) != place:
            constant = Constant(f"{constant.name}, {constant.digest[:8]}", constant.array)
        self.places[constant.name] = place
        self.packed[constant.digest] = constant
        return constant

    def _call(
        self, name: str, kernel: KernelText, program: LoopProgram, arguments: list[str], origin: str,
        symbols: tuple[Dim, ...] | None = None,
    ) -> list[Step]:  # fmt: skip
        """A kernel's step, with workspaces behind its arguments, after those that allocate what it writes.

        `symbols` are the values of the kernel's symbols, where these are not the plan's.
        """
        if symbols is None:
            symbols = tuple(dim(symbol.name) for symbol in kernel.signature.symbols)
        values = {symbol.name: value for symbol, value in zip(kernel.signature.symbols, symbols, strict=True)}
        for extra in kernel.signature.buffers[len(arguments) :]:
            made = self._fresh(f"{name}.{extra.name}")
            shape = tuple(extent.substitute(values) for extent in extra.shape)
            self.buffers[made] = PlanBuffer(made, shape, extra.dtype, "host", self._place(shape), ALIGNMENT)
            arguments.append(made)
        accesses = zip(arguments, kernel.signature.buffers, strict=True)
        found = self._allocations([argument for argument, formal in accesses if formal.access != "read"], origin)
        return [*found, KernelStep(name, kernel.signature, tuple(arguments), symbols, program, origin=origin)]

    def _copy(self, position: int, name: str) -> None:
        value = self.graph.values[name]
        target = self.copies[position] = self._fresh(f"output {position}")
        self.buffers[target] = PlanBuffer(
            target, value.tensor.shape, value.tensor.dtype, "host", OutputPlace(position), value.tensor.dtype.itemsize
        )
        copy = CopyStep(f"copy {position}", self._buffer(value).name, target, origin=name)
        self.steps += [*self._allocations([target], name), copy]

    def _output(self, position: int, name: str, shown: str) -> PlanOutput:
        value = self.graph.values[name]
        policy = self.signature.outputs[position]
        shows = value if policy.kind == "fresh" or policy.of is None else self.graph.inputs[policy.of]
        buffer = self.copies.get(position) or self._buffer(shows).name
        return PlanOutput(shown, value.tensor, buffer, self.signature.outputs[position])

    def _symbols(self) -> tuple[Symbol, ...]:
        """The symbols of the graph and those that are measured inside its subgraphs."""
        found = {symbol.name: symbol for symbol in self.graph.symbols}
        for inner in _blocks(self.block):
            found.update((symbol.name, symbol) for symbol in inner.graph.symbols if symbol.measured)
        return tuple(found.values())

    def _measure(self, region: Region, graph: Graph) -> None:
        """Bind the symbols that a region's root takes from its operands."""
        root = region.root
        wanted = operator(root.operator).measured(root.attributes)
        readings = tuple(
            Reading(symbol, self._buffer(graph.values[root.inputs[place]]).name) for symbol, place in wanted.items()
        )
        if readings:
            self.steps.append(Allocate(f"measure {', '.join(wanted)}", readings, origin=origin_of(root)))

    def _check(self, nodes: Iterable[Node], graph: Graph) -> None:
        """End the call where a size that it measured is not what an operator needs."""
        self.steps += checks(nodes, graph, {symbol.name for symbol in self.graph.symbols}, self.measured)


def _blocks(block: PlanBlock) -> Iterator[PlanBlock]:
    """The block and all inside it, outer before inner."""
    yield block
    for item in block.items:
        if isinstance(item, PlanControl):
            for inner in item.blocks:
                yield from _blocks(inner)


def _controls(block: PlanBlock) -> Iterator[PlanControl]:
    """Every control node of the block and of all inside it."""
    for inner in _blocks(block):
        yield from (item for item in inner.items if isinstance(item, PlanControl))


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of outputs, those told apart by a number that several have: one value may be returned twice."""
    taken = set(names)
    found: list[str] = []
    for name in names:
        shown, count = name, 1
        while shown in found or (count > 1 and shown in taken):
            count += 1
            shown = f"{name}.{count}"
        found.append(shown)
    return tuple(found)
