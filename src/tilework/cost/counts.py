"""What a program does, counted: operations, accesses, footprints and reuse of loops. Exact unless it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.cost.accesses import Access, Kind, accesses_in, bound, domain_of, middle, statements_in
from tilework.cost.domain import Count, Domain, Integers, distinct, line_set, points, touched
from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Call, Expression, walk
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import Buffer, Compute, Loop, LoopProgram, Node, children
from tilework.loops.text import index_text, name_text

_ARITHMETIC = {
    "add": 1, "subtract": 1, "multiply": 1, "divide": 1, "remainder": 1, "floor_remainder": 1, "maximum": 1,
    "minimum": 1, "negate": 1, "absolute": 1, "square_root": 1, "fused_multiply_add": 2,
}  # fmt: skip
"""Operations of a function that is no polynomial; those that only choose, compare, round or convert are none."""


@dataclass(frozen=True)
class Work:
    """Operations: on floating numbers, on integers, and calls of functions that are polynomials (exp, tanh, ...).

    A multiply-add is two. A reduction combines once an iteration, the first included.
    """

    flops: int = 0
    integer_operations: int = 0
    transcendentals: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.integer_operations + other.integer_operations,
            self.transcendentals + other.transcendentals,
        )

    def times(self, count: int) -> Work:
        return Work(self.flops * count, self.integer_operations * count, self.transcendentals * count)


@dataclass(frozen=True)
class StatementCount:
    """A statement: how often it runs and the work of all runs."""

    name: str
    runs: int
    work: Work
    exact: bool


@dataclass(frozen=True)
class AccessCount:
    """An access: how often it happens, and the bytes it moves.

    `issued_bytes` go between registers and memory: what straight code touches once it loads once, and what the loops
    inside do not move stays in a register. `useful_bytes` are those of the distinct elements.
    """

    statement: str
    buffer: str
    index: str
    kind: Kind
    scope: str
    runs: int
    issued_bytes: int
    useful_bytes: int
    exact: bool


@dataclass(frozen=True)
class LoopCount:
    """A loop: how often it starts, and what one run of it (at the middle of the loops around it) touches.

    `footprint_bytes` are whole cache lines of buffers in memory, `useful_bytes` the distinct elements in them, and
    `reuse` how often each of these is touched.
    """

    variable: str
    kind: str
    extent: str
    runs: int
    footprint_bytes: int
    useful_bytes: int
    reuse: float
    exact: bool


def work_of(statement: Compute) -> Work:
    """The work of one run of a statement."""
    total = Work()
    seen: set[int] = set()
    for root in (*statement.values, *(statement.reducer.combine if statement.reducer is not None else ())):
        for part in walk(root):
            if isinstance(part, Call) and id(part) not in seen:
                seen.add(id(part))
                total += _work_of_call(part, part.arguments[-1])
    return total


def _work_of_call(part: Call, operand: Expression) -> Work:
    known = FUNCTIONS.get(part.function)
    if known is not None and known.transcendental:
        return Work(transcendentals=1)
    count = _ARITHMETIC.get(part.function, 0)
    if operand.dtype.is_floating or operand.dtype.kind == "complex":
        return Work(flops=count)
    return Work(integer_operations=count)


def statement_counts(program: LoopProgram) -> tuple[StatementCount, ...]:
    """Every statement of a program without symbols."""
    found: list[StatementCount] = []
    for statement, loops in statements_in(program.body):
        runs = points(domain_of(loops, statement.guards))
        found.append(StatementCount(statement.name, runs.value, work_of(statement).times(runs.value), runs.exact))
    return tuple(found)


def access_counts(program: LoopProgram) -> tuple[AccessCount, ...]:
    """Every access of a program without symbols."""
    return tuple(_count(access, program.buffers[access.buffer]) for access in accesses_in(program.body))


def _count(access: Access, buffer: Buffer) -> AccessCount:
    domain = domain_of(access.loops, access.guards)
    runs = points(domain)
    extents = shape_of(buffer)
    reached = touched(domain, access.index, extents)
    issued = Count(0)
    if buffer.scope not in ("register", "fragment"):
        issued = _issued(access, domain, runs)
    itemsize = buffer.dtype.itemsize
    return AccessCount(
        access.statement,
        access.buffer,
        name_text(access.buffer) + index_text(access.index),
        access.kind,
        buffer.scope,
        runs.value,
        issued.value * itemsize * (2 if access.kind == "update" else 1),
        reached.elements * itemsize,
        runs.exact and reached.exact and issued.exact,
    )


def _issued(access: Access, domain: Domain, runs: Count) -> Count:
    """Loads (or stores) of elements: once for each run of straight code and of the loops that do not move them."""
    if any(entry.loads() for entry in access.index):
        return Count(runs.value, runs.value == 0)
    moved = {name for entry in access.index for name in entry.names()}
    outer = list(access.loops)
    while outer and (is_flat(outer[-1]) or outer[-1].variable not in moved):
        outer.pop()
    return distinct(domain, (*access.index, *(dim(loop.variable) for loop in outer)))


def is_flat(loop: Loop) -> bool:
    """Whether a loop is written out, or is the lanes of vectors."""
    return loop.kind in ("unrolled", "vectorized") or loop.extent.value == 1


def shape_of(buffer: Buffer) -> tuple[int, ...]:
    """Extents as integers; those that still change with a loop count as their constant part at least 1."""
    return tuple(extent.value if extent.value is not None else max(1, extent.constant) for extent in buffer.shape)


# -- loops -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Footprint:
    """Lines of one buffer that a node touches in one run."""

    lines: int
    elements: int
    exact: bool


class Footprints:
    """What nodes touch in one run, at the middle of the loops around them; every answer is kept."""

    def __init__(self, program: LoopProgram, line_bytes: int) -> None:
        self.program = program
        self.line_bytes = line_bytes
        self._found: dict[int, dict[str, Footprint]] = {}

    def of(self, node: Node, around: tuple[Loop, ...]) -> Mapping[str, Footprint]:
        """By buffer; buffers in registers are left out."""
        found = self._found.get(id(node))
        if found is None:
            found = self._found[id(node)] = self._find(node, around)
        return found

    def bytes(self, node: Node, around: tuple[Loop, ...]) -> int:
        """Bytes of all lines."""
        return sum(part.lines for part in self.of(node, around).values()) * self.line_bytes

    def _find(self, node: Node, around: tuple[Loop, ...]) -> dict[str, Footprint]:
        fixed = middle(around)
        places: dict[str, dict[tuple[object, ...], tuple[Domain, tuple[Dim, ...]]]] = {}
        for access in accesses_in(node, around):
            if self.program.buffers[access.buffer].scope in ("register", "fragment"):
                continue
            domain = domain_of(access.loops, access.guards, fixed)
            index = tuple(entry.substitute({n: dim(v) for n, v in fixed.items()}) for entry in access.index)
            key = (index, tuple(sorted(domain.extents.items())), frozenset(domain.guards))
            places.setdefault(access.buffer, {})[key] = (domain, index)
        return {name: self._union(self.program.buffers[name], list(found.values())) for name, found in places.items()}

    def _union(self, buffer: Buffer, places: list[tuple[Domain, tuple[Dim, ...]]]) -> Footprint:
        import numpy as np

        extents = shape_of(buffer)
        itemsize = buffer.dtype.itemsize
        reached = [touched(domain, index, extents) for domain, index in places]
        sets = [line_set(one, itemsize, self.line_bytes, listed=len(reached) > 1) for one in reached]
        elements = [line_set(one, itemsize, itemsize) for one in reached] if len(reached) > 1 else []
        exact = all(one.exact for one in reached)
        if len(reached) == 1:
            (only,) = sets
            sure = exact and (not isinstance(only, Count) or only.exact)
            return Footprint(_size(only), reached[0].elements, sure)
        whole = -(-int(np.prod(extents, dtype=np.int64)) * itemsize // self.line_bytes)
        lines, lines_exact = _joined(sets, whole)
        count, count_exact = _joined(elements, int(np.prod(extents, dtype=np.int64)))
        return Footprint(lines, count, exact and lines_exact and count_exact)


def _size(found: Integers | Count) -> int:
    return found.value if isinstance(found, Count) else int(found.size)


def _joined(sets: list[Integers | Count], most: int) -> tuple[int, bool]:
    """How many there are in any of the sets."""
    import numpy as np

    listed = [found for found in sets if not isinstance(found, Count)]
    if len(listed) == len(sets):
        return int(np.unique(np.concatenate(listed)).size), True
    return min(most, sum(map(_size, sets))), False


def loop_counts(program: LoopProgram, footprints: Footprints) -> tuple[LoopCount, ...]:
    """Every loop of a program without symbols, in order of execution."""
    found: list[LoopCount] = []

    def visit(node: Node, around: tuple[Loop, ...]) -> None:
        if isinstance(node, Loop):
            found.append(_loop(program, node, around, footprints))
        inside = (*around, node) if isinstance(node, Loop) else around
        for child in children(node):
            visit(child, inside)

    visit(program.body, ())
    return tuple(found)


def _loop(program: LoopProgram, loop: Loop, around: tuple[Loop, ...], footprints: Footprints) -> LoopCount:
    runs = points(domain_of(around, ()))
    parts = footprints.of(loop, around)
    fixed = middle(around)
    uses = useful = 0
    exact = runs.exact and all(part.exact for part in parts.values())
    for access in accesses_in(loop, around):
        buffer = program.buffers[access.buffer]
        if buffer.scope not in ("register", "fragment"):
            times = points(domain_of(access.loops, access.guards, fixed))
            uses += times.value * buffer.dtype.itemsize
            exact = exact and times.exact
    for name, part in parts.items():
        useful += part.elements * program.buffers[name].dtype.itemsize
    lines = sum(part.lines for part in parts.values())
    return LoopCount(
        loop.variable, loop.kind, str(loop.extent), runs.value, lines * footprints.line_bytes, useful,
        uses / useful if useful else 0.0, exact,
    )  # fmt: skip


__all__ = [
    "AccessCount",
    "Footprints",
    "LoopCount",
    "StatementCount",
    "Work",
    "access_counts",
    "bound",
    "loop_counts",
    "statement_counts",
    "work_of",
]
