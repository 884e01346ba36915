"""The rules of loop programs: every fault of a program at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilework.dims import Atom, Bounds, Dim, Extreme, FloorDiv, Loaded, Mod, dim, symbol_bounds
from tilework.dtypes import DType
from tilework.errors import Fault, TileworkError, VerificationError
from tilework.fast_dataclass import dataclass, field
from tilework.loops.equal import same_expression
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, Parameter, walk
from tilework.loops.functions import result_type
from tilework.loops.program import (
    Access,
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
    Reducer,
    Sequence,
    Storage,
)  # fmt: skip
from tilework.loops.program import walk as walk_nodes
from tilework.loops.reducers import BUILT_IN
from tilework.loops.reducers import reducer as built_in_reducer


def verify(program: LoopProgram) -> None:
    """Raise `VerificationError` with every fault of the program (codes 1320 to 1331); nothing where it has none."""
    faults = faults_of(program)
    if faults:
        raise VerificationError(f"loop program {program.name}", faults)


def faults_of(program: LoopProgram) -> list[Fault]:
    """Every fault of the program."""
    return _Verifier(program).faults


def index_faults(value: Dim, variables: Iterable[str]) -> bool:
    """Whether a dim may not be an index or guard over these loop variables.

    Allowed: sums in which each term holds at most one factor that depends on a loop variable or on data: the variable
    itself, a quotient or remainder by symbols and integers, a minimum or maximum, a loaded integer.
    """
    inside = set(variables)
    for monomial, _ in value.terms:
        if sum(_varies(atom, inside) for atom in monomial) > 1:
            return True
        for atom in monomial:
            if isinstance(atom, (FloorDiv, Mod)):
                divisor = atom.denominator if isinstance(atom, FloorDiv) else atom.modulus
                if divisor.names() & inside or divisor.loads():
                    return True
            if any(index_faults(part, inside) for part in _parts(atom)):
                return True
    return False


def _varies(atom: Atom, variables: set[str]) -> bool:
    if isinstance(atom, str):
        return atom in variables
    return isinstance(atom, Loaded) or any(part.names() & variables or part.loads() for part in _parts(atom))


def _parts(atom: Atom) -> tuple[Dim, ...]:
    match atom:
        case str():
            return ()
        case FloorDiv(numerator=above, denominator=below) | Mod(value=above, modulus=below):
            return above, below
        case Extreme(arguments=arguments):
            return arguments
        case Loaded(index=index):
            return index


@dataclass
class _Scope:
    loops: dict[str, Loop] = field(default_factory=dict[str, Loop])
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    vectorized: str = ""


class _Verifier:
    def __init__(self, program: LoopProgram) -> None:
        self.faults: list[Fault] = []
        self._symbols = {symbol.name for symbol in program.symbols}
        self._bounds: Bounds = {
            # a program over an empty range has nothing out of bounds: ask what happens from 1 on
            name: (max(low, 1), max(high, 1))
            for name, (low, high) in symbol_bounds(program.symbols).items()
        }
        self._read_only = {a.buffer.name for a in program.arguments if a.access == "read"}
        self._groups = {n.group for n in walk_nodes(program.body) if isinstance(n, AsyncCopy)}
        self._variables: set[str] = set()
        self._stored: dict[str, Buffer] = {}
        self._reducers: dict[str, Reducer] = {}
        scope = _Scope()
        for number, symbol in enumerate(program.symbols):
            if any(symbol.name == other.name for other in program.symbols[:number]):
                self._fault(1321, "symbols", f"symbol {symbol.name} is declared twice")
        for argument in program.arguments:
            if argument.buffer.name in scope.buffers:
                self._fault(1321, "arguments", f"argument {argument.buffer.name} is declared twice")
            self._buffer(argument.buffer, scope)
            scope.buffers[argument.buffer.name] = argument.buffer
        self._node(program.body, scope)

    def _fault(self, code: int, where: str, message: str) -> None:
        self.faults.append(Fault(code, where, message))

    # -- tree ----------------------------------------------------------------------------------------------------------
    def _node(self, node: Node, scope: _Scope) -> None:
        match node:
            case Sequence(children=nodes):
                for child in nodes:
                    self._node(child, scope)
            case Intrinsic(body=body):
                self._node(body, scope)
            case Storage(buffer=buffer, body=body):
                self._storage(buffer, scope)
                self._node(body, _Scope(scope.loops, {**scope.buffers, buffer.name: buffer}, scope.vectorized))
            case Loop():
                self._loop(node, scope)
            case Compute():
                self._compute(node, scope)
            case Prefetch(name=name, target=target, guards=guards):
                # an element that does not exist is not fetched: no bounds
                self._guards(guards, scope, f"prefetch {name}")
                self._access(target, scope, f"prefetch {name}", bounds=False)
            case AsyncCopy():
                self._copy(node, scope)
            case AsyncWait(group=group, pending=pending):
                if group not in self._groups:
                    self._fault(1331, f"wait {group}", f"no copy belongs to group {group}")
                if pending < 0:
                    self._fault(1331, f"wait {group}", f"{pending} copies cannot be pending")
            case Barrier():
                pass

    def _loop(self, loop: Loop, scope: _Scope) -> None:
        where = f"loop {loop.variable}"
        if loop.variable in self._variables:
            self._fault(1321, where, f"two loops are called {loop.variable}")
        elif loop.variable in self._symbols:
            self._fault(1321, where, f"{loop.variable} is a symbol and a loop variable")
        self._variables.add(loop.variable)
        self._extent(loop.extent, scope, where)
        vectorized = scope.vectorized
        if loop.kind == "vectorized":
            if vectorized:
                self._fault(1327, where, f"it is inside the vectorized loop {vectorized}")
            vectorized = loop.variable
        self._node(loop.body, _Scope({**scope.loops, loop.variable: loop}, scope.buffers, vectorized))

    def _storage(self, buffer: Buffer, scope: _Scope) -> None:
        where = f"storage {buffer.name}"
        if buffer.name in scope.buffers:
            self._fault(1321, where, f"{buffer.name} hides another buffer of that name")
        elif self._stored.setdefault(buffer.name, buffer) != buffer:
            self._fault(1321, where, f"two different buffers are called {buffer.name}")
        self._buffer(buffer, scope)

    def _buffer(self, buffer: Buffer, scope: _Scope) -> None:
        for extent in buffer.shape:
            self._extent(extent, scope, f"buffer {buffer.name}")

    def _extent(self, extent: Dim, scope: _Scope, where: str) -> None:
        self._dim(extent, scope, where)
        if extent.bounds(self._variable_bounds(scope))[1] < 0:
            self._fault(1329, where, f"its extent {extent} is negative")

    def _variable_bounds(self, scope: _Scope) -> Bounds:
        found = dict(self._bounds)
        for name, loop in scope.loops.items():
            found[name] = (0, max(0, loop.extent.bounds(found)[1] - 1))
        return found

    # -- statements ----------------------------------------------------------------------------------------------------
    def _compute(self, node: Compute, scope: _Scope) -> None:
        where = f"statement {node.name}"
        self._guards(node.guards, scope, where)
        for target in node.targets:
            self._written(target, scope, where)
            self._access(target, scope, where, bounds=not node.guards)
        if not node.targets or len(node.values) != len(node.targets):
            self._fault(1323, where, f"it has {len(node.targets)} targets and {len(node.values)} values")
        for value in node.values:
            self._expression(value, scope, where, {}, bounds=not node.guards)
        for variable in node.reduction:
            if variable not in scope.loops:
                self._fault(1326, where, f"reduction variable {variable} is no enclosing loop")
        types = [self._target_type(node, target, scope) for target in node.targets]
        for value, expected in zip(node.values, types, strict=False):
            if expected is not None and value.dtype != expected:
                self._fault(1323, where, f"a value of type {value.dtype} is kept as {expected}")
        if node.reducer is None:
            for what, given in (("an init", node.init), ("reduction variables", node.reduction)):
                if given:
                    self._fault(1326, where, f"it has {what} and no reducer")
            if node.accumulate is not None:
                self._fault(1326, where, "it has an accumulation type and no reducer")
            return
        self._reducer(node.reducer, where)
        if node.reducer.arity != len(node.targets):
            message = f"{node.reducer.name} has {node.reducer.arity} components, not {len(node.targets)}"
            self._fault(1330, where, message)
        for side in (node.reducer.left, node.reducer.right):
            for parameter, expected in zip(side, types, strict=False):
                if expected is not None and parameter.dtype != expected:
                    message = f"{node.reducer.name} combines {parameter.dtype}, and {expected} is kept"
                    self._fault(1323, where, message)
                    break
        if node.init is not None:
            if len(node.init) != len(node.targets):
                self._fault(1326, where, f"it has {len(node.init)} inits for {len(node.targets)} targets")
            for start, expected in zip(node.init, types, strict=False):
                if expected is not None and start.dtype != expected:
                    self._fault(1323, where, f"an init of type {start.dtype} is kept as {expected}")

    def _target_type(self, node: Compute, target: Access, scope: _Scope) -> DType | None:
        buffer = scope.buffers.get(target.buffer)
        return node.accumulate or (None if buffer is None else buffer.dtype)

    def _written(self, target: Access, scope: _Scope, where: str) -> None:
        if target.buffer in self._read_only and target.buffer in scope.buffers and target.buffer not in self._stored:
            self._fault(1328, where, f"{target.buffer} is read-only")

    def _copy(self, node: AsyncCopy, scope: _Scope) -> None:
        where = f"copy {node.name}"
        self._guards(node.guards, scope, where)
        self._written(node.target, scope, where)
        types = [self._access(access, scope, where, bounds=not node.guards) for access in (node.target, node.source)]
        if None not in types and types[0] != types[1]:
            self._fault(1323, where, f"{types[1]} is copied to {types[0]}")

    def _guards(self, guards: tuple[Dim, ...], scope: _Scope, where: str) -> None:
        for guard in guards:
            self._dim(guard, scope, where)

    def _reducer(self, reducer: Reducer, where: str) -> None:
        known = self._reducers.get(reducer.name)
        if known is reducer:
            return
        if known is not None and reducer.name not in BUILT_IN and not _same_reducer(known, reducer):
            self._fault(1321, where, f"two different reducers are called {reducer.name}")
        self._reducers[reducer.name] = reducer
        sizes = {len(side) for side in (reducer.left, reducer.right, reducer.combine, reducer.identity)}
        if len(sizes) != 1 or 0 in sizes:
            self._fault(1330, where, f"reducer {reducer.name} has parts of different lengths")
            return
        names = [p.name for p in (*reducer.left, *reducer.right)]
        if len(set(names)) != len(names):
            self._fault(1330, where, f"reducer {reducer.name} has two parameters of one name")
        parameters = {p.name: p.dtype for p in (*reducer.left, *reducer.right)}
        rows = zip(reducer.left, reducer.right, reducer.combine, reducer.identity, strict=True)
        for number, (left, right, combine, identity) in enumerate(rows):
            if {right.dtype, combine.dtype, identity.dtype} != {left.dtype}:
                self._fault(1330, where, f"component {number} of reducer {reducer.name} has more than one type")
            self._expression(combine, _Scope(), f"reducer {reducer.name}", parameters, bounds=False)
        if reducer.name in BUILT_IN:
            self._built_in(reducer, where)

    def _built_in(self, reducer: Reducer, where: str) -> None:
        try:
            expected = built_in_reducer(reducer.name, reducer.left[0].dtype)
        except TileworkError as error:
            self._fault(1330, where, error.message)
            return
        if not _same_reducer(expected, reducer):
            self._fault(1330, where, f"{reducer.name} is a built-in reducer and is defined otherwise here")

    # -- expressions and indices ---------------------------------------------------------------------------------------
    def _expression(
        self, root: Expression, scope: _Scope, where: str, parameters: Mapping[str, DType], bounds: bool
    ) -> None:
        for node in walk(root):
            match node:
                case Load(buffer=buffer, index=index, dtype=dtype):
                    held = self._access(Access(buffer, index), scope, where, bounds)
                    if held is not None and held != dtype:
                        self._fault(1323, where, f"{buffer} holds {held} and is loaded as {dtype}")
                case Index(value=value, dtype=dtype):
                    self._dim(value, scope, where)
                    if dtype.kind in ("boolean", "complex"):
                        self._fault(1323, where, f"an index cannot be {dtype}")
                case Parameter(name=name, dtype=dtype):
                    if parameters.get(name) != dtype:
                        self._fault(1330, where, f"{name} is no {dtype} parameter here")
                case Call():
                    self._call(node, where)
                case Constant():
                    pass
                case _:
                    self._fault(1323, where, f"{type(node).__name__} is no expression")

    def _call(self, node: Call, where: str) -> None:
        types = tuple(a.dtype for a in node.arguments)
        if node.function in ("cast", "bitcast"):
            if len(types) != 1 or (node.function == "bitcast" and types[0].bits != node.dtype.bits):
                self._fault(1323, where, f"{node.function} of {', '.join(map(str, types))} to {node.dtype}")
            return
        try:
            found = result_type(node.function, types)
        except TileworkError as error:
            self._fault(1323, where, error.message)
            return
        if found != node.dtype:
            self._fault(1323, where, f"{node.function} gives {found}, not {node.dtype}")

    def _dim(self, value: Dim, scope: _Scope, where: str) -> None:
        for name in sorted(value.names() - scope.loops.keys() - self._symbols):
            self._fault(1320, where, f"{name} is no enclosing loop and no symbol")
        if index_faults(value, scope.loops):
            self._fault(1324, where, f"{value} multiplies or divides by what varies")
        for found in sorted(value.loads(), key=str):
            held = scope.buffers.get(found.buffer)
            if held is None:
                self._fault(1320, where, f"no buffer is called {found.buffer} here")
            elif not held.dtype.is_integer and held.dtype.kind != "boolean":
                self._fault(1324, where, f"{found} is {held.dtype}, no integer")
            elif len(found.index) != len(held.shape):
                self._fault(1322, where, f"{found.buffer} has {len(held.shape)} dimensions, not {len(found.index)}")

    def _access(self, access: Access, scope: _Scope, where: str, bounds: bool = True) -> DType | None:
        """Check an element's index; the element's type."""
        for part in access.index:
            self._dim(part, scope, where)
        buffer = scope.buffers.get(access.buffer)
        if buffer is None:
            self._fault(1320, where, f"no buffer is called {access.buffer} here")
            return None
        if len(access.index) != len(buffer.shape):
            self._fault(1322, where, f"{access.buffer} has {len(buffer.shape)} dimensions, not {len(access.index)}")
        elif bounds:
            for part, extent in zip(access.index, buffer.shape, strict=True):
                self._inside(part, extent, scope, f"{access.buffer}[{', '.join(map(str, access.index))}]", where)
        return buffer.dtype

    def _inside(self, part: Dim, extent: Dim, scope: _Scope, text: str, where: str) -> None:
        if any(loop.extent.bounds(self._bounds)[1] <= 0 for loop in scope.loops.values()):
            return  # a loop that never runs
        low, high = _extremes(part, scope.loops)
        if low is not None and low.bounds(self._bounds)[1] < 0:
            self._fault(1325, where, f"{text}: the index {part} comes down to {low}")
        if high is not None and (extent - 1 - high).bounds(self._bounds)[1] < 0:
            self._fault(1325, where, f"{text}: the index {part} reaches {high}, and the extent is {extent}")


def _extremes(value: Dim, loops: Mapping[str, Loop]) -> tuple[Dim | None, Dim | None]:
    """The least and greatest value over the loops' ranges, both attained; None where the form does not say."""
    if not value.affine_in(loops) or value.loads():
        return None, None
    low = high = value
    for name in value.names() & loops.keys():
        last = loops[name].extent - 1
        if last.names() & loops.keys() or last.loads():
            return None, None
        first = dim(0)
        least, greatest = (first, last) if value.coefficient(name) > 0 else (last, first)
        low, high = low.substitute({name: least}), high.substitute({name: greatest})
    return low, high


def _same_reducer(a: Reducer, b: Reducer) -> bool:
    pairs = [
        (x, y)
        for left, right in ((a.left, b.left), (a.right, b.right), (a.combine, b.combine), (a.identity, b.identity))
        for x, y in zip(left, right, strict=False)
    ]
    sizes = [tuple(map(len, (r.left, r.right, r.combine, r.identity))) for r in (a, b)]
    return sizes[0] == sizes[1] and a.relaxable == b.relaxable and all(same_expression(x, y) for x, y in pairs)
