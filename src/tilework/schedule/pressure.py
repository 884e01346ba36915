"""How many vector registers the innermost loops of a program hold at once: past the machine's number, code spills.

An innermost loop here is one whose body is straight code once unrolled and vectorised loops are written out. In it live

- **cells**: elements of register buffers (and partial results of reductions into memory, which the lowering keeps in
  registers) that live across iterations;
- **operands**: values that are used again later in the body or that the loop does not move, and what the statement at
  work needs for itself.

For a tile of a product, whose outer unrolled loop streams one operand and keeps the other, operands are kept + 1. One
that is used once, and that the machine's instructions take from memory, needs no register.

Past the limit there are always spills. Within it there are none, but for tiles that stream whole vectors and keep
broadcasts: LLVM loads the streamed ones ahead, and may spill one when less than two registers are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Call, Constant, Expression, Index, Load, walk
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import Buffer, Compute, Loop, LoopProgram, Node, Sequence, Storage, children, statements
from tilework.loops.program import walk as walk_nodes
from tilework.schedule.primitive import Machine

MAX_INSTANCES = 4096
"""Statements of a body, once unrolled, beyond which no prediction is made."""
MAX_UNROLLED = 1024
"""Iterations of an unrolled loop beyond which it stays a loop."""
MAX_ACCUMULATORS = 64
"""Vectors that a reduction into memory keeps in registers at most."""
_AVX512_BITS = 512
_ORDERED = ("maximum", "minimum")
"""Functions that need one more register for the mask of NaNs where masks lie in vector registers."""
_TEMPORARIES = 6
"""Registers that a polynomial needs for itself, roughly."""


@dataclass(frozen=True)
class LoopPressure:
    """Vector registers of one innermost loop. `exact` is false where a function's own needs are only estimated."""

    loop: str
    """The loop's variable; empty for straight code outside all loops."""
    cells: int
    operands: int
    registers: int
    """Vector registers that the machine has."""
    exact: bool = True

    @property
    def live(self) -> int:
        """Registers that must hold a value at the worst moment."""
        return self.cells + self.operands

    @property
    def fits(self) -> bool:
        """Whether nothing needs to be spilled."""
        return self.live <= self.registers


def register_pressure(program: LoopProgram, machine: Machine) -> tuple[LoopPressure, ...]:
    """The pressure of every innermost loop, in order of execution. Bodies of more than `MAX_INSTANCES` are left out."""
    found: list[LoopPressure] = []
    _visit(program.body, (), program.buffers, machine, found)
    return tuple(found)


def worst_pressure(program: LoopProgram, machine: Machine) -> LoopPressure | None:
    """The innermost loop that holds most registers; None for a program without statements in reach."""
    return max(register_pressure(program, machine), key=lambda found: found.live, default=None)


def _flat(loop: Loop) -> bool:
    """Whether a loop is written out, or is the lanes of its body."""
    count = loop.extent.value
    if loop.kind == "vectorized":
        return count is not None
    return count is not None and (count == 1 or (loop.kind == "unrolled" and count <= MAX_UNROLLED))


def _straight(node: Node) -> bool:
    return all(_flat(found) for found in walk_nodes(node) if isinstance(found, Loop))


def _visit(
    node: Node, around: tuple[Loop, ...], buffers: Mapping[str, Buffer], machine: Machine, found: list[LoopPressure]
) -> None:
    if isinstance(node, Loop) and not _flat(node) and _straight(node.body):
        _add(node.body, (*around, node), buffers, machine, found)
        return
    if isinstance(node, Loop):
        around = (*around, node)
    elif not around and _straight(node) and not isinstance(node, Sequence):
        _add(node, (), buffers, machine, found)
        return
    for child in children(node):
        _visit(child, around, buffers, machine, found)


def _add(
    body: Node, around: tuple[Loop, ...], buffers: Mapping[str, Buffer], machine: Machine, found: list[LoopPressure]
) -> None:
    if any(True for _ in statements(body)):
        made = _Body(body, around, buffers, machine).pressure()
        if made is not None:
            found.append(made)


Key = tuple[str, tuple[Dim, ...]]
"""A buffer and an index in which unrolled variables are numbers and the lane is 0."""


@dataclass
class _Value:
    """A value in vector registers: how many it takes, and the first and last statement that need it."""

    width: int
    first: int
    last: int
    uses: int = 1
    pinned: bool = False
    """Alive through the whole loop."""
    foldable: bool = True
    """Whether an instruction can take it from memory where it is used once."""


class _Body:
    """The straight code of one innermost loop."""

    def __init__(self, body: Node, around: tuple[Loop, ...], buffers: Mapping[str, Buffer], machine: Machine) -> None:
        self.body = body
        self.buffers = buffers
        self.machine = machine
        self.loop = next((loop for loop in reversed(around) if not _flat(loop)), None)
        self.outer = {
            loop.variable: loop.extent.value or 1 for loop in around if _flat(loop) and loop.kind == "vectorized"
        }
        self.inside = {node.buffer.name for node in walk_nodes(body) if isinstance(node, Storage)}
        self.written = {target.buffer for statement in statements(body) for target in statement.targets}
        self.values: dict[Key, _Value] = {}
        self.cells: dict[Key, int] = {}
        self.needs: list[int] = []
        self.exact = True

    def pressure(self) -> LoopPressure | None:
        """Walk through the statements as they will run; None where there are too many."""
        for position, (statement, constants, lanes) in enumerate(self._instances(self.body, {}, self.outer)):
            if position >= MAX_INSTANCES:
                return None
            self._instance(position, statement, constants, lanes)
        cells = sum(self.cells.values())
        name = self.loop.variable if self.loop is not None else ""
        return LoopPressure(name, cells, self._operands(), self.machine.vector_registers, self.exact)

    def _operands(self) -> int:
        """Registers of everything but cells, at the worst statement."""
        changes = [0] * (len(self.needs) + 1)
        own = list(self.needs)
        pinned = 0
        for value in self.values.values():
            if value.pinned:
                pinned += value.width
            elif value.first == value.last:
                if not (value.uses == 1 and value.foldable):
                    own[value.first] += value.width
            else:
                changes[value.first] += value.width
                changes[value.last + 1] -= value.width
        worst = kept = 0
        for position, need in enumerate(own):
            kept += changes[position]
            worst = max(worst, kept + need)
        return pinned + worst

    # -- statements ----------------------------------------------------------------------------------------------------
    def _instances(
        self, node: Node, constants: Mapping[str, int], lanes: Mapping[str, int]
    ) -> Iterator[tuple[Compute, Mapping[str, int], Mapping[str, int]]]:
        match node:
            case Compute():
                yield node, constants, lanes
            case Loop() if node.kind == "vectorized" and node.extent.value != 1:
                yield from self._instances(node.body, constants, {**lanes, node.variable: int(node.extent)})
            case Loop():
                for i in range(int(node.extent)):
                    yield from self._instances(node.body, {**constants, node.variable: i}, lanes)
            case _:
                for child in children(node):
                    yield from self._instances(child, constants, lanes)

    def _instance(
        self, position: int, statement: Compute, constants: Mapping[str, int], lanes: Mapping[str, int]
    ) -> None:
        need = 0
        roots = statement.values
        reducer = statement.reducer
        fused = reducer is not None and reducer.name == "sum" and _is_product(roots[0])
        for root in roots:
            for part in walk(root):
                if isinstance(part, Load):
                    self._load(position, part, constants, lanes)
            need = max(need, self._temporaries(root, lanes, fused))
        if reducer is not None and reducer.name in _ORDERED and not self._masks_apart():
            need += self._width(reducer.combine[0].dtype, lanes)
        self.needs.append(need)
        for target in statement.targets:
            buffer = self.buffers[target.buffer]
            if buffer.scope in ("register", "fragment") or self._carried(statement, target.index):
                key = self._key(target.buffer, target.index, constants, lanes)
                self._cell(position, key, buffer.dtype, lanes, buffer.name in self.inside)

    def _cell(self, position: int, key: Key, dtype: DType, lanes: Mapping[str, int], inside: bool) -> None:
        width = self._width(dtype, lanes)
        if not inside and self.loop is not None:
            self.cells[key] = width
            return
        known = self.values.get(key)
        if known is None:
            self.values[key] = _Value(width, position, position, foldable=False)
        else:
            known.last = position

    def _carried(self, statement: Compute, index: tuple[Dim, ...]) -> bool:
        """Whether a reduction into memory keeps this element in a register while the loop runs."""
        if self.loop is None or statement.reducer is None or any(entry.loads() for entry in index):
            return False
        return all(self.loop.variable not in entry.names() for entry in index)

    def _load(self, position: int, load: Load, constants: Mapping[str, int], lanes: Mapping[str, int]) -> None:
        key = self._key(load.buffer, load.index, constants, lanes)
        if key in self.cells:
            return
        buffer = self.buffers[load.buffer]
        width = self._width(buffer.dtype, lanes)
        if buffer.scope in ("register", "fragment") and load.buffer not in self.inside and self.loop is not None:
            self.cells[key] = width
            return
        known = self.values.get(key)
        if known is not None:
            known.last = position
            known.uses += 1
            return
        if load.buffer in self.inside and buffer.scope in ("register", "fragment"):
            for row in [value for (name, _), value in self.values.items() if name == load.buffer]:
                row.last = position  # a column of a tile: all rows live until the last one is made
            return
        moved = {name for entry in load.index for name in entry.names()}
        spread = bool(lanes) and not moved & lanes.keys()
        still = self.loop is not None and self.loop.variable not in moved and load.buffer not in self.written
        foldable = width == 1 and (not spread or self._masks_apart())
        self.values[key] = _Value(width, position, position, pinned=still, foldable=foldable)

    def _temporaries(self, root: Expression, lanes: Mapping[str, int], fused: bool) -> int:
        """Registers for the intermediate results of one value."""
        needs: dict[int, int] = {}
        for part in walk(root):
            needs[id(part)] = self._own(part, needs, lanes)
        top = needs[id(root)]
        if fused and isinstance(root, Call):
            return max((needs[id(a)] for a in root.arguments), default=0)
        return top

    def _own(self, part: Expression, needs: Mapping[int, int], lanes: Mapping[str, int]) -> int:
        if not isinstance(part, Call):
            return 1 if isinstance(part, Index) else 0
        width = self._width(part.dtype, lanes)
        known = FUNCTIONS.get(part.function)
        extra = 0
        if known is not None and known.transcendental:
            self.exact = False
            extra = _TEMPORARIES * width
        elif part.function in _ORDERED and not self._masks_apart():
            extra = width
        inner = sorted((needs[id(a)] for a in part.arguments if not isinstance(a, Constant)), reverse=True)
        held = 0
        deepest = 0
        for number, need in enumerate(inner):
            deepest = max(deepest, need + number * width if need else held)
        return max(deepest, width + extra)

    def _masks_apart(self) -> bool:
        """Whether masks have registers of their own, and instructions broadcast from memory: AVX-512 brought both."""
        return self.machine.vector_bits >= _AVX512_BITS

    # -- names and widths ----------------------------------------------------------------------------------------------
    def _key(self, buffer: str, index: tuple[Dim, ...], constants: Mapping[str, int], lanes: Mapping[str, int]) -> Key:
        table: dict[str, int] = {**constants}
        varies = tuple(sorted(lanes.keys() & {name for entry in index for name in entry.names()}))
        table.update(dict.fromkeys(varies, 0))
        mark = (Dim((), 1),) if varies else ()
        return buffer, (*(entry.substitute(table) for entry in index), *mark)

    def _width(self, dtype: DType, lanes: Mapping[str, int]) -> int:
        """Vector registers that a value of all lanes takes; a scalar takes one too."""
        count = 1
        for extent in lanes.values():
            count *= extent
        bits = max(dtype.bits, 32) if dtype.is_floating else max(dtype.bits, 8)
        return max(1, -(-count * bits // self.machine.vector_bits))


def _is_product(value: Expression) -> bool:
    return isinstance(value, Call) and value.function == "multiply"
