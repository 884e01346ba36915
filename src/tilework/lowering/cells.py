"""Buffers kept in registers: each element is a value, or each group of lanes along one dimension is a vector.

An index must be constants (unrolled loops) plus at most the lane, in one dimension: the same for all writes. Reads with
lanes along another one see the tile transposed (`transposes.py`). A buffer that is used in another way is kept in
memory instead; the values are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Index, Load, loads
from tilework.loops.expressions import walk as walk_expression
from tilework.loops.program import Access, AsyncCopy, Buffer, Compute, Loop, Node, Storage, children, walk
from tilework.lowering.indices import Indices
from tilework.lowering.registers import Value
from tilework.lowering.spare_lanes import spare_lanes
from tilework.lowering.state import MAX_UNROLLED, State, moved_as, register_kind
from tilework.lowering.transposes import column_of


@dataclass(frozen=True)
class CellLayout:
    """How a buffer lies in registers.

    `home`: the dimension along which `width` lanes form a vector, or None for scalars; `private`: the lane variable
    when every lane has its own buffer (then each element is a vector of `width`).
    """

    kind: str
    home: int | None = None
    width: int = 0
    private: str | None = None
    turned: bool = False
    """Whether something reads it with lanes along another dimension than its home."""
    bits: bool = False
    """Whether it holds elements' bits (see `moved_as`): they come from memory and go to memory, and that is all."""
    spare: bool = False
    """Whether lanes that a mask leaves out may hold anything (see `spare_lanes`)."""


def moves(node: Compute, target: Access, value: Expression, buffers: Mapping[str, Buffer]) -> bool:
    """Whether a statement moves elements as they are from one buffer to another."""
    if node.reducer is not None or not isinstance(value, Load):
        return False
    held = buffers.get(target.buffer)
    return held is not None and held.dtype == value.dtype


def unrolls(loop: Loop) -> bool:
    """Whether a loop's iterations are written out one after another."""
    count = loop.extent.value
    return count is not None and (count == 1 or (loop.kind == "unrolled" and count <= MAX_UNROLLED))


def _uses(node: Node, name: str) -> Iterator[tuple[tuple[Dim, ...], bool] | None]:
    """Every index with which a buffer is used below a node, and whether it is written there; None for a use that no
    register can serve.
    """
    for found in walk(node):
        dims: list[Dim] = []
        if isinstance(found, Compute):
            dims += found.guards
            for target in found.targets:
                dims += target.index
                if target.buffer == name:
                    yield target.index, True
            for value in found.values:
                for part in walk_expression(value):
                    if isinstance(part, Load):
                        dims += part.index
                        if part.buffer == name:
                            yield part.index, False
                    elif isinstance(part, Index):
                        dims.append(part.value)
        elif isinstance(found, Loop):
            dims.append(found.extent)
            if found.kind == "parallel":
                yield None
        elif isinstance(found, AsyncCopy):
            if name in (found.source.buffer, found.target.buffer):
                yield None
            dims += [*found.guards, *found.source.index, *found.target.index]
        if any(element.buffer == name for d in dims if d.terms for element in d.loads()):
            yield None


class Cells:
    """Reads and writes elements kept in registers."""

    def __init__(self, state: State, indices: Indices) -> None:
        self.state = state
        self.indices = indices
        self.layouts: dict[str, CellLayout] = {}

    def layout(self, storage: Storage) -> CellLayout | None:
        """How the buffer of a register storage lies in registers, or None where it must be in memory."""
        state = self.state
        buffer = storage.buffer
        bits = self._only_moved(storage)
        kind = register_kind(buffer.dtype if bits is None else bits)
        constants = set(state.environment)
        lanes: dict[str, int] = {}
        for node in walk(storage.body):
            if isinstance(node, Loop):
                if unrolls(node):
                    constants.add(node.variable)
                elif node.kind == "vectorized" and state.lane is None and node.extent.value is not None:
                    lanes[node.variable] = node.extent.value
        written: set[tuple[int, int]] = set()
        read: set[tuple[int, int]] = set()
        for use in _uses(storage.body, buffer.name):
            along = _lanes_along(use[0], constants, lanes) if use is not None else None
            if use is None or along is None:
                return None
            (written if use[1] else read).update(along)
        homes = written or read
        if len(homes) > 1:
            return None
        home, width = next(iter(homes), (None, 0))
        turned = read - homes
        if any(position == home or not _powers_of_two(count, width) for position, count in turned):
            return None
        spare = spare_lanes(storage)
        if state.lane is not None:
            return CellLayout(kind, None, state.lane.width, state.lane.variable, bits=bits is not None, spare=spare)
        return CellLayout(kind, home, width, turned=bool(turned), bits=bits is not None, spare=spare)

    def _only_moved(self, storage: Storage) -> DType | None:
        """The type as which the buffer's elements are moved, where nothing but moves to and from memory touches it."""
        name = storage.buffer.name
        found = moved_as(storage.buffer.dtype)
        if found is None:
            return None
        for node in walk(storage.body):
            if not isinstance(node, Compute):
                continue
            for target, value in zip(node.targets, node.values, strict=True):
                ends = {target.buffer, *(load.buffer for load in loads(value))}
                others = [self.state.buffers[end] for end in ends - {name} if end in self.state.buffers]
                if name in ends and not (
                    moves(node, target, value, self.state.buffers)
                    and others
                    and all(other.scope not in ("register", "fragment") for other in others)
                ):
                    return None
        return found

    # -- access --------------------------------------------------------------------------------------------------------
    def _key(self, layout: CellLayout, index: tuple[Dim, ...]) -> tuple[tuple[int, ...], int | None]:
        """The value's key, and the lane wanted of it (None: all)."""
        key: list[int] = []
        whole = False
        for value in index:
            found = self.indices.resolve(value)
            whole = whole or bool(found.lane)
            key.append(found.constant)
        if layout.private is not None:
            return tuple(key), self.state.environment.get(layout.private)
        if layout.home is None or whole:
            return tuple(key), None
        at = key[layout.home]
        key[layout.home] = at // layout.width * layout.width
        return tuple(key), at % layout.width

    def _stored(self, name: str, layout: CellLayout, key: tuple[int, ...]) -> Value:
        found = self.state.function.cells.get((name, key))
        return found if found is not None else self.empty(layout)

    def empty(self, layout: CellLayout) -> Value:
        """What an element holds before it is written (undefined by the program; zero here)."""
        zero = 0.0 if layout.kind.startswith("f") else False if layout.kind == "i1" else 0
        return self.state.builder.constant(layout.kind, zero, layout.width)

    def read(self, name: str, index: tuple[Dim, ...]) -> Value:
        layout = self.layouts[name]
        if layout.turned:
            along = next((d for d, value in enumerate(index) if self.indices.resolve(value).lane), layout.home)
            if along != layout.home:
                return self._across(name, layout, index, along)
        key, lane = self._key(layout, index)
        found = self._stored(name, layout, key)
        return found if lane is None else extract(self.state, found, lane)

    def _across(self, name: str, layout: CellLayout, index: tuple[Dim, ...], along: int | None) -> Value:
        """Lanes along another dimension than the home: a column of the tile that vectors along the home are."""
        assert layout.home is not None
        assert self.state.lane is not None
        key = [self.indices.resolve(value).constant for value in index]
        column = key[layout.home] % layout.width
        key[layout.home] -= column
        rows: list[Value] = []
        for i in range(self.state.lane.width):
            row = [part + i if d == along else part for d, part in enumerate(key)]
            rows.append(self._stored(name, layout, tuple(row)))
        return column_of(self.state.builder, tuple(rows), column)

    def varies(self, name: str, index: tuple[Dim, ...]) -> bool:
        """Whether the access touches another element (or another lane's buffer) in each lane."""
        layout = self.layouts[name]
        if layout.private is not None:
            return self.state.lane is not None
        return any(self.indices.resolve(value).lane for value in index)

    def write(
        self, name: str, index: tuple[Dim, ...], value: Value, mask: Value | None, *, guarded: bool = True
    ) -> None:
        """Write an element, or the lanes of the mask. `guarded`: the mask is that of the statement's guards."""
        layout = self.layouts[name]
        builder = self.state.builder
        key, lane = self._key(layout, index)
        old = self._stored(name, layout, key)
        if lane is not None:
            if mask is not None:
                value = builder.select(mask, value, extract(self.state, old, lane))
            value = builder.pure("insert", layout.kind, layout.width, (old, value), lane)
        else:
            value = builder.wide(value, layout.width)
            if mask is not None and not (guarded and layout.spare):
                value = builder.select(mask, value, old)
        self.state.function.cells[name, key] = value

    def written(self, node: Node, environment: dict[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The keys of cells that a node writes, with multiplicity; those stored inside it are not yet among
        `layouts`.
        """
        if isinstance(node, Loop) and unrolls(node):
            for i in range(int(node.extent)):
                yield from self.written(node.body, {**environment, node.variable: i})
            return
        if isinstance(node, Compute):
            for target in node.targets:
                layout = self.layouts.get(target.buffer)
                if layout is None:
                    continue
                key = [_constant_part(value, environment) for value in target.index]
                if layout.home is not None:
                    key[layout.home] = key[layout.home] // layout.width * layout.width
                yield target.buffer, tuple(key)
            return
        for child in children(node):
            yield from self.written(child, environment)


def _lanes_along(
    index: tuple[Dim, ...], constants: set[str], lanes: dict[str, int]
) -> tuple[tuple[int, int], ...] | None:
    """The dimension along which an index has lanes, and how many (none: empty); None where it is no index of a cell."""
    found: tuple[tuple[int, int], ...] = ()
    for position, value in enumerate(index):
        names = value.names()
        used = names & lanes.keys()
        if names - constants - used or (used and not value.affine_in(used)):
            return None
        if not used:
            continue
        (lane, *more) = used
        if more or value.coefficient(lane) != 1 or found:
            return None
        rest, width = value - lane, lanes[lane]
        if rest.constant % width or any(c % width for _, c in rest.terms):
            return None
        found = ((position, width),)
    return found


def _powers_of_two(*numbers: int) -> bool:
    return all(n > 1 and n & (n - 1) == 0 for n in numbers)


def _constant_part(value: Dim, environment: dict[str, int]) -> int:
    """The value with unrolled variables as numbers and the lane as 0."""
    total = value.constant
    for monomial, coefficient in value.terms:
        if len(monomial) == 1 and isinstance(monomial[0], str):
            total += coefficient * environment.get(monomial[0], 0)
        else:
            return int(value.substitute({name: environment.get(name, 0) for name in value.names()}))
    return total


def extract(state: State, value: Value, lane: int) -> Value:
    """One lane of a vector (a scalar is every lane of itself)."""
    builder = state.builder
    if not value.lanes:
        return value
    if value.constant is not None:
        number = value.constant[lane] if isinstance(value.constant, tuple) else value.constant
        return builder.constant(value.kind, number)
    return builder.pure("extract", value.kind, 0, (value,), lane)
