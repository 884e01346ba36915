"""From a loop program to register form: the walk over the tree.

Serial loops become loops that carry the cells their bodies write, unrolled ones are written out, a vectorised one is
the lanes of the statements below it, the outermost parallel one of a nest becomes a function of its own.
"""

from __future__ import annotations

from tilework.dims import Dim
from tilework.errors import CodegenError
from tilework.loops.expressions import Load
from tilework.loops.program import (
    AsyncCopy,
    AsyncWait,
    Barrier,
    Buffer,
    Compute,
    Intrinsic,
    Loop,
    LoopProgram,
    Node,
    Prefetch,
    Sequence,
    Storage,
    walk,
)  # fmt: skip
from tilework.lowering import parallel
from tilework.lowering.accumulators import promoted
from tilework.lowering.builder import Builder, Scope
from tilework.lowering.cells import unrolls
from tilework.lowering.intrinsics import Instructions, Intrinsics
from tilework.lowering.polls import Polls
from tilework.lowering.registers import Carried, Function, Module, Region, Value
from tilework.lowering.registers import Loop as RegisterLoop
from tilework.lowering.state import MAX_LANES, FunctionState, Lane
from tilework.lowering.versions import Versions
from tilework.lowering.whole_tiles import instances
from tilework.numerics import Numerics

STACK_BUFFER_BYTES = 16384
"""Inner storage up to this size is on the stack; larger or symbolic ones are workspaces of the caller."""
MAX_STATEMENTS = 20000
"""A program of more statements, once unrolled, would take too long to compile."""
LINE_BYTES = 64
"""What one prefetch brings near, at least."""
STACK_BYTES = 131072
"""All stack buffers of one function together."""
_MACHINE_KINDS = ("serial", "parallel", "vectorized", "unrolled")


def lower(
    program: LoopProgram,
    numerics: Numerics,
    name: str,
    *,
    checked: bool,
    streaming: frozenset[str],
    last_level_bytes: int,
    lookup_lanes: int,
    masked_loads: frozenset[int],
    instructions: Instructions,
) -> tuple[Module, dict[str, Buffer]]:
    """The program in register form, and the workspaces that its caller must provide.

    `lookup_lanes`: elements of 32 bits that one instruction looks up in a register (0: functions do without).
    `masked_loads`: widths in bits of the elements of which one instruction loads some, by a mask.
    `instructions` answers the machine's instruction of a name.

    Raises:
        CodegenError: 1602 a vectorised loop without a constant extent of at most 64, 1603 an element type or function
            without code, 1604 a loop kind of another machine, 1605 a name that means nothing where it stands, 1606
            storage whose size changes from iteration to iteration, 1607 a parallel loop whose iterations may meet,
            1608 too many statements once unrolled.
    """
    lowering = _Lowering(program, numerics, name, checked, streaming, last_level_bytes, instructions)
    lowering.state.lookup_lanes = lookup_lanes
    lowering.state.masked_loads = masked_loads
    found = lowering.run()
    del lowering.indices.load_element  # what is left goes at once, not with the next search for cyclic garbage
    return found


class _Lowering(Versions):
    def __init__(
        self,
        program: LoopProgram,
        numerics: Numerics,
        name: str,
        checked: bool,
        streaming: frozenset[str],
        last_level: int,
        instructions: Instructions,
    ) -> None:
        count = instances(program.body)
        if count > MAX_STATEMENTS:
            raise CodegenError(1608, f"unrolled, the program has {count} statements", where=f"program {program.name}")
        program = promoted(program, numerics)
        self.name = name
        super().__init__(program, numerics, checked, streaming, last_level)
        self.regions: list[Function] = []
        self.polls = Polls(self.state, self.indices)
        self.intrinsics = Intrinsics(self.state, self.statements, instructions)

    def run(self) -> tuple[Module, dict[str, Buffer]]:
        state = self.state
        self.node(state.program.body)
        entry = Function(self.name, state.builder.scopes[0].block)
        return Module(entry, self.regions, tuple(state.faults)), state.workspaces

    # -- nodes ---------------------------------------------------------------------------------------------------------
    def node(self, node: Node) -> None:
        match node:
            case Sequence(children=nodes):
                for child in nodes:
                    self.node(child)
            case Compute():
                self.statements.compute(node)
            case Storage():
                self.tile(node, lambda: self.storage(node))
            case Loop():
                self.tile(node, lambda: self.guarded_loop(node))
            case Intrinsic(body=body):
                if not self.intrinsics.emit(node):
                    self.node(body)
            case Prefetch():
                self.prefetch(node)
            case AsyncCopy():
                self.statements.compute(self.copy(node))
            case Barrier() | AsyncWait():
                pass  # one thread: what was ordered before is done

    def copy(self, node: AsyncCopy) -> Compute:
        """A copy that is complete as soon as it is issued."""
        dtype = self.state.buffers[node.source.buffer].dtype
        value = Load(node.source.buffer, node.source.index, dtype)
        return Compute(node.name, (node.target,), (value,), guards=node.guards)

    def prefetch(self, node: Prefetch) -> None:
        """A prefetch for every element, or for every cache line of lanes that lie next to each other."""
        name, lane = node.target.buffer, self.state.lane
        if name in self.cells.layouts or any(i.loads() for i in node.target.index):
            return
        if node.once and not self.state.streams:
            return  # it lies in a cache already, or comes in time

        def emit(mask: Value | None) -> None:
            del mask
            found = self.indices.resolve(self.memory.facts(name, node.target.index).flat)
            elements = 1
            if lane is not None and found.varies:
                if found.lane != 1 or found.vector:
                    return
                elements = lane.width
            for shift in range(0, elements, max(1, LINE_BYTES // self.state.buffers[name].dtype.itemsize)):
                pointer = self.memory.address(name, found, shift)
                self.state.builder.effect("prefetch", (pointer,), (node.write, node.once))

        varies = {lane.variable} if lane is not None else set[str]()
        plain = tuple(g for g in node.guards if not g.loads() and not g.names() & varies)
        self.statements.conditional(plain, (), emit)

    # -- storage -------------------------------------------------------------------------------------------------------
    def storage(self, node: Storage) -> None:
        state, name = self.state, node.buffer.name
        layout = self.cells.layout(node) if node.buffer.scope in ("register", "fragment") else None
        if layout is not None:
            self.cells.layouts[name] = layout
            self.node(node.body)
            del self.cells.layouts[name]
            for key in [key for key in state.function.cells if key[0] == name]:
                del state.function.cells[key]
            return
        if state.lane is not None:
            self.memory.private[name] = (state.lane.variable, state.lane.width)
        self._place(node.buffer)
        self.node(node.body)
        if self.memory.private.pop(name, None) is not None:
            self.memory.forget(name)

    def _place(self, buffer: Buffer) -> None:
        """Give a buffer in memory its address: on the stack, or in a workspace of the caller."""
        state, function = self.state, self.state.function
        copies = state.lane.width if state.lane is not None else 1
        count = buffer.size.value
        if count is not None:
            size = max(1, count * buffer.dtype.itemsize * copies)
            if size <= STACK_BUFFER_BYTES and function.stack_bytes + size <= STACK_BYTES:
                if buffer.name not in function.bases:
                    function.stack_bytes += size
                    function.bases[buffer.name] = function.builder.pure("stack", "ptr", 0, (), (size, buffer.name))
                return
        shape = buffer.shape if copies == 1 else (*buffer.shape, Dim((), copies))
        unknown = {n for extent in shape for n in extent.names()} - set(state.symbols)
        if unknown or any(extent.loads() for extent in shape):
            names = ", ".join(sorted(unknown)) or "loaded elements"
            raise CodegenError(1606, f"the size of {buffer.name} depends on {names}", where=f"storage {buffer.name}")
        if function.region:
            self.memory.chunked.add(buffer.name)
            shape = (Dim((), parallel.MAX_CHUNKS), *shape)
        state.workspaces[buffer.name] = Buffer(buffer.name, shape, buffer.dtype)

    # -- loops ---------------------------------------------------------------------------------------------------------
    def guarded_loop(self, node: Loop) -> None:
        """A loop, inside a branch on the guards that all of its statements share."""
        lane = self.state.lane.variable if self.state.lane is not None else None
        guards = [g for g in self.common(node) if g not in self.statements.assumed and lane not in g.names()]
        if not guards:
            self.loop(node)
            return
        guards.sort(key=str)

        def then(mask: Value | None) -> None:
            del mask
            self.statements.assumed.update(guards)
            self.loop(node)
            self.statements.assumed.difference_update(guards)

        self.statements.guarded(tuple(guards), None, then)

    def loop(self, node: Loop) -> None:
        state = self.state
        if node.kind not in _MACHINE_KINDS:
            raise CodegenError(1604, f"a {node.kind} loop cannot run on a CPU", where=f"loop {node.variable}")
        if unrolls(node):
            for i in range(int(node.extent)):
                state.environment[node.variable] = i
                self.node(node.body)
            del state.environment[node.variable]
        elif node.kind == "vectorized" and state.lane is None and not self._vectorized_below(node):
            self.versions(node, lambda: self.vectorized(node))
        elif node.kind == "parallel" and state.lane is None and not state.function.region:
            self.parallel(node)
        elif parallel.outlined(node) and not state.function.region:
            self.serial(node)
        else:
            self.versions(node, lambda: self.serial(node))

    def _vectorized_below(self, node: Loop) -> bool:
        return any(isinstance(n, Loop) and n.kind == "vectorized" and not unrolls(n) for n in walk(node.body))

    def vectorized(self, node: Loop) -> None:
        width = node.extent.value
        if width is None or width > MAX_LANES:
            raise CodegenError(
                1602, f"the vectorised loop {node.variable} has extent {node.extent}", where=f"loop {node.variable}",
                hint=f"split it by a constant of at most {MAX_LANES} first",
            )  # fmt: skip
        if width <= 0:
            return
        self.state.lane = Lane(node.variable, width)
        self.node(node.body)
        self.state.lane = None

    def serial(self, node: Loop) -> None:
        builder = self.state.builder
        extent = self.indices.value(node.extent)
        self.loop_between(node, builder.integer(0), extent, self.state.certain(node.extent))

    def loop_between(self, node: Loop, start: Value, stop: Value, certain: bool) -> None:
        """The iterations from `start` to `stop` - 1, one after another."""
        state, function, builder = self.state, self.state.function, self.state.builder
        if isinstance(stop.constant, int) and isinstance(start.constant, int) and stop.constant <= start.constant:
            return
        piece = self.polls.piece(node)
        keys = list(dict.fromkeys(self.cells.written(node.body, state.environment)))
        scope = Scope(self.written(node.body), certain=certain)
        builder.scopes.append(scope)
        variable = builder.fresh("i64")
        function.variables[node.variable] = variable
        carried: list[tuple[tuple[str, tuple[int, ...]], Value, Value]] = []
        for key in keys:
            before = function.cells.get(key)
            if before is None:
                before = self.cells.empty(self.cells.layouts[key[0]])
            inside = builder.fresh(before.kind, before.lanes)
            function.cells[key] = inside
            carried.append((key, before, inside))
        self.node(node.body)
        builder.scopes.pop()
        del function.variables[node.variable]
        loop = RegisterLoop(variable, start, stop, certain, scope.block, piece=piece)
        function.polls = function.polls or piece is not None
        for key, before, inside in carried:
            after = builder.fresh(inside.kind, inside.lanes)
            loop.carried.append(Carried(inside, before, function.cells[key], after))
            function.cells[key] = after
        builder.scopes[-1].block.items.append(loop)

    # -- parallel ------------------------------------------------------------------------------------------------------
    def parallel(self, node: Loop) -> None:
        """The loop's body as a function over a chunk of its iterations, and the call that runs all chunks."""
        state = self.state
        parallel.check_independent(node)
        if any(name in self.cells.layouts for name in self.written(node.body)):
            self.serial(node)
            return
        chunks = parallel.known_chunks(state, node)
        if chunks is not None and chunks <= 1:  # a function of its own costs more than it gives
            self.versions(node, lambda: self.serial(node))
            return
        outer = state.function
        extent = self.indices.value(node.extent)
        count = parallel.chunk_count(state, self.indices, node, extent)
        builder = Builder()
        inner = FunctionState(builder, outer, region=(node.variable,))
        inner.chunk, inner.chunks = builder.fresh("i32", 0, 0), builder.fresh("i32", 0, 0)
        inner.cells = {}
        state.function = inner
        start, stop = parallel.chunk_bounds(state, self.indices.value(node.extent))
        self.versions(node, lambda: self.loop_between(node, start, stop, certain=True))
        state.function = outer
        name = f"{self.name}_r{len(self.regions)}"
        function = Function(name, builder.scopes[0].block, inner.chunk, inner.chunks, inner.captured, inner.polls)
        self.regions.append(function)
        outer.builder.scopes[-1].block.items.append(Region(function, count, inner.captured))
        for buffer in self.written(node.body):
            outer.epochs[buffer] = outer.epochs.get(buffer, 0) + 1
