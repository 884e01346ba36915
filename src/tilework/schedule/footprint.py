"""Which part of a buffer some accesses cover while the loops inside a point run: a box of starts and sizes.

The start depends on the loops outside; the size does not. Where accesses start at different places, or an index cannot
be split into what moves inside and what does not, there is no box, and who asked refuses. Beside it: who reads and
writes what.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tilework.dims import Bound, Dim, Extreme, FloorDiv, Mod, Monomial, dim, product
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Load, walk
from tilework.loops.program import AsyncCopy, Compute, Loop, LoopProgram, Node, Prefetch, Storage, path, statements
from tilework.loops.program import walk as walk_tree


@dataclass(frozen=True)
class Side:
    """One dimension of a box: `size` elements from `start`."""

    start: Dim
    size: Dim


Box = tuple[Side, ...]


def box(
    indices: Sequence[tuple[Dim, ...]], inside: Mapping[str, Dim], shape: Sequence[Dim], clamp: bool = False
) -> Box | None:
    """The smallest box that holds all indices while the variables in `inside` (with their extents) run.

    `shape` is the buffer's: a dimension that is walked whole has that size. `clamp` cuts off what sticks out of the
    buffer where the box always starts at the same place. None where there is no such box.
    """
    sides: list[Side] = []
    for d, extent in enumerate(shape):
        side = side_of([index[d] for index in indices], inside, extent, clamp)
        if side is None:
            return None
        sides.append(side)
    return tuple(sides)


@dataclass(frozen=True)
class Span:
    """Dimensions of a buffer that are taken as one, by their number in row-major order, and the range covered of it."""

    dims: range
    extent: Dim
    side: Side

    def flat(self, index: Sequence[Dim], shape: Sequence[Dim]) -> Dim:
        """The number of an element."""
        total = dim(0)
        for d in self.dims:
            total = total * shape[d] + index[d]
        return total

    def index(self, flat: Dim, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The entries of the element of a number."""
        found: list[Dim] = []
        for d in reversed(self.dims):
            last = d == self.dims.start
            found.append(flat if last else flat % shape[d])
            flat = flat if last else flat // shape[d]
        return tuple(reversed(found))


def spans(
    indices: Sequence[tuple[Dim, ...]], inside: Mapping[str, Dim], shape: Sequence[Dim]
) -> tuple[Span, ...] | None:
    """As `box`, where neighbouring dimensions that have no range of their own may have one together: what is walked
    along rows and columns as one, i // w and i % w, is a range of elements, though no box of rows and columns.
    """
    found: list[Span] = []
    start = 0
    while start < len(shape):
        for stop in range(start + 1, len(shape) + 1):
            part = Span(range(start, stop), product(shape[start:stop]), Side(dim(0), dim(0)))
            side = side_of([part.flat(index, shape) for index in indices], inside, part.extent)
            if side is not None:
                found.append(replace(part, side=side))
                break
        else:
            return None
        start = found[-1].dims.stop
    return tuple(found)


def side_of(entries: Sequence[Dim], inside: Mapping[str, Dim], extent: Dim, clamp: bool = False) -> Side | None:
    """One dimension of `box`: the smallest range that holds all entries; `extent` is the buffer's."""
    bounds: dict[str, tuple[Bound, Bound]] = {}
    for name, size in inside.items():
        bounds[name] = (0, math.inf if size.value is None else max(0, size.value - 1))
    if all(_walks_whole(entry, inside, extent) for entry in entries):
        return Side(dim(0), extent)
    starts: set[Dim] = set()
    low: Bound = math.inf
    high: Bound = -math.inf
    for entry in entries:
        parts = _apart(entry, inside)
        if parts is None:
            return None
        outer, inner = parts
        a, b = inner.bounds(bounds)
        starts.add(Dim(outer.terms, 0))
        low, high = min(low, a + outer.constant), max(high, b + outer.constant)
    if len(starts) != 1:
        return None
    start = starts.pop()
    if math.isinf(low) or math.isinf(high):
        # what a minimum or maximum keeps inside a buffer of symbolic extent may be anywhere in it
        return Side(dim(0), extent) if not start.terms and any(map(_is_clamped, entries)) else None
    known = extent.value
    if clamp and known is not None and not start.terms:
        # elements outside the buffer are never there: whoever walks over them is guarded
        low, high = max(low, 0), min(high, known - 1)
        if high < low:
            low, high = 0, 0
    return Side(start + int(low), dim(int(high - low) + 1))


def _is_clamped(entry: Dim) -> bool:
    return any(isinstance(atom, Extreme) for monomial, _ in entry.terms for atom in monomial)


def _walks_whole(entry: Dim, inside: Mapping[str, Dim], extent: Dim) -> bool:
    return any(entry == dim(name) and size == extent for name, size in inside.items())


def _apart(entry: Dim, inside: Mapping[str, Dim]) -> tuple[Dim, Dim] | None:
    """The dim as (what does not move inside) + (what moves inside only); None where a term mixes both."""
    outer: list[tuple[Monomial, int]] = []
    inner: list[tuple[Monomial, int]] = []
    for monomial, coefficient in entry.terms:
        term = Dim(((monomial, 1),))
        names = term.names()
        if term.loads():
            return None  # the place depends on data
        if not names & inside.keys():
            outer.append((monomial, coefficient))
        elif names <= inside.keys() and all(isinstance(atom, (str, FloorDiv, Mod, Extreme)) for atom in monomial):
            inner.append((monomial, coefficient))
        else:
            return None
    return Dim(tuple(outer), entry.constant), Dim(tuple(inner))


def loops_inside(node: Node) -> dict[str, Dim]:
    """The extents of all loops below a node, by variable."""
    return {found.variable: found.extent for found in walk_tree(node) if isinstance(found, Loop)}


def reads_of(buffer: str, body: Iterable[Compute]) -> list[tuple[Dim, ...]]:
    """The indices at which statements' values read a buffer."""
    return [part.index for statement in body for part in statement.loads if part.buffer == buffer]


def writes_of(buffer: str, body: Node) -> list[tuple[Dim, ...]]:
    """The indices at which statements and copies below a node write a buffer."""
    found = [target.index for s in statements(body) for target in s.targets if target.buffer == buffer]
    copies = [n.target.index for n in walk_tree(body) if isinstance(n, AsyncCopy) and n.target.buffer == buffer]
    return found + copies


def node_dims(found: Node) -> list[Dim]:
    """Every dim of one node: guards, indices, extents."""
    match found:
        case Compute():
            return list(found.dims)
        case Prefetch():
            return [*found.guards, *found.target.index]
        case AsyncCopy():
            return [*found.guards, *found.target.index, *found.source.index]
        case Loop():
            return [found.extent]
        case Storage():
            return list(found.buffer.shape)
        case _:
            return []


def reads_in_dims(node: Node) -> set[str]:
    """Buffers whose elements the indices, guards and extents below a node are made from."""
    found: set[str] = set()
    for below in walk_tree(node):
        if isinstance(below, Compute):
            found.update(load.buffer for load in below.loaded)
        else:
            found.update(load.buffer for entry in node_dims(below) for load in entry.loads())
    return found


def read_buffers(node: Node) -> set[str]:
    """Buffers that anything below a node reads (a reduction's read of its own target excluded)."""
    found = reads_in_dims(node)
    for part in walk_tree(node):
        if isinstance(part, Compute):
            found |= {n.buffer for value in part.values for n in walk(value) if isinstance(n, Load)}
        elif isinstance(part, AsyncCopy):
            found.add(part.source.buffer)
    return found


def written_buffers(node: Node) -> set[str]:
    """Buffers that anything below a node writes."""
    found: set[str] = set()
    for part in walk_tree(node):
        if isinstance(part, Compute):
            found |= {target.buffer for target in part.targets}
        elif isinstance(part, AsyncCopy):
            found.add(part.target.buffer)
    return found


def touched_buffers(node: Node) -> set[str]:
    """Buffers that anything below a node reads, writes or prefetches."""
    near = {n.target.buffer for n in walk_tree(node) if isinstance(n, Prefetch)}
    return read_buffers(node) | written_buffers(node) | near


def special_users(buffer: str, node: Node) -> list[Node]:
    """Prefetches and asynchronous copies below a node that name a buffer: rewrites of its accesses pass them by."""
    return [
        n
        for n in walk_tree(node)
        if (isinstance(n, Prefetch) and n.target.buffer == buffer)
        or (isinstance(n, AsyncCopy) and buffer in (n.target.buffer, n.source.buffer))
    ]


def runs_after(program: LoopProgram, first: Node) -> list[Node]:
    """Leaves that come after a subtree in the program's text."""
    every: list[Node] = [n for n in walk_tree(program.body) if isinstance(n, (Compute, AsyncCopy, Prefetch))]
    own = {id(n) for n in walk_tree(first)}
    last = max((p for p, n in enumerate(every) if id(n) in own), default=-1)
    return every[last + 1 :]


def written_whole(program: LoopProgram, buffer: str, reader: Node) -> bool:
    """Whether every element of a buffer surely has a value when a subtree starts to run.

    An argument that the caller fills has; for anything else one statement has to walk over all of it in loops of its
    own, before the reader and in the same life of the buffer.
    """
    for argument in program.arguments:
        if argument.buffer.name == buffer and argument.access != "write":
            return True
    chain = path(program.body, reader)
    around = {id(n) for n in chain}
    alive = next((p for p, n in enumerate(chain) if isinstance(n, Storage) and n.buffer.name == buffer), None)
    life = program.body if alive is None else chain[alive]
    order = {id(n): position for position, n in enumerate(walk_tree(program.body))}
    for writer in statements(life):
        if order[id(writer)] > order[id(reader)]:
            break
        places = [target.index for target in writer.targets if target.buffer == buffer]
        if not places or (writer.reducer is not None and writer.init is None):
            continue
        loops = [n for n in path(life, writer) if isinstance(n, Loop)]
        own = {n.variable: n.extent for n in loops if id(n) not in around}
        if any(own[v].value in (None, 0) for v in own if v in writer.reduction):
            continue
        index, beside = _all_places(places)
        if _covers(index, program.buffers[buffer].shape, {**own, **beside}, writer):
            return True
    return False


def _all_places(places: Sequence[tuple[Dim, ...]]) -> tuple[tuple[Dim, ...], dict[str, Dim]]:
    """One index for several that are a box of constants apart, with a variable for each of its sides; else the first.

    A statement that writes a[2 i] and a[2 i + 1] writes a[2 i + s] for s < 2.
    """
    first = places[0]
    base = tuple(entry - entry.constant for entry in first)
    corners = {tuple(entry.constant for entry in place) for place in places}
    sides = [sorted({corner[d] for corner in corners}) for d in range(len(first))]
    alike = all(tuple(entry - entry.constant for entry in place) == base for place in places)
    dense = all(side == list(range(len(side))) for side in sides)
    if len(places) == 1 or not alike or not dense or len(corners) != math.prod(map(len, sides)):
        return first, {}
    beside = {f"side {d}": dim(len(side)) for d, side in enumerate(sides) if len(side) > 1}
    return tuple(e + f"side {d}" if f"side {d}" in beside else e for d, e in enumerate(base)), beside


def _covers(index: Sequence[Dim], shape: Sequence[Dim], own: Mapping[str, Dim], writer: Compute) -> bool:
    """Whether an index walks over a whole shape, guarded only against what lies outside it."""
    used: set[str] = set()
    ends: set[Dim] = set()
    for entry, extent in zip(index, shape, strict=True):
        names = entry.names() & own.keys()
        if entry.constant or used & names or not entry.affine_in(names) or len(entry.terms) != len(names):
            return False
        used |= names
        reach = dim(1)  # elements covered by the smaller steps
        for name in sorted(names, key=entry.coefficient):
            if reach != entry.coefficient(name):
                return False
            reach = reach * own[name]
            if own[name] == extent.ceildiv(entry.coefficient(name)):
                reach = extent
        if reach != extent and (reach.value is None or extent.value is None or reach.value < extent.value):
            return False
        ends.add(extent - 1 - entry)
    extra = [name for name in own if name not in used and name not in writer.reduction]
    inner = {g for g in writer.guards if writer.init is not None and g.names() & set(writer.reduction)}
    return not extra and all(guard in ends for guard in writer.guards if guard not in inner)
