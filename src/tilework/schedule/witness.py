"""Two iterations of a loop that touch one element, found by running through a few iterations: a certain witness.

Only accesses that surely happen count: guards and indices that depend on data are passed by.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from tilework.dims import Dim
from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Load, walk
from tilework.loops.program import AsyncCopy, Compute, Loop, LoopProgram, Node, Storage, children, path
from tilework.loops.program import walk as walk_tree
from tilework.schedule.verdict import Dependence, Witness

_POINTS = 4000
"""Iterations looked at."""
_EXTENT = 12
"""Iterations of one loop looked at."""


@dataclass(frozen=True)
class Conflict:
    """A dependence carried by a loop, and two iterations that show it."""

    dependence: Dependence
    witness: Witness
    reduction: bool
    """Whether both iterations only combine into the element."""


@dataclass(frozen=True)
class _Touch:
    point: Mapping[str, int]
    combines: bool


def conflict(program: LoopProgram, loop: Loop) -> Conflict | None:
    """Two iterations of the loop, the loops around it standing at 0, that touch one element, one of them writing it."""
    symbols = _symbol_values(program)
    if symbols is None:
        return None
    outer: dict[str, int] = {}
    try:
        for node in path(program.body, loop)[:-1]:
            if isinstance(node, Loop):
                if node.extent.evaluate({**symbols, **outer}) < 1:
                    return None
                outer[node.variable] = 0
        private = {n.buffer.name for n in walk_tree(loop.body) if isinstance(n, Storage)}
        if any(isinstance(n, AsyncCopy) for n in walk_tree(loop.body)):
            return None
        return _search(loop, {**symbols, **outer}, private, symbols)
    except UsageError:
        return None  # an extent depends on data


def _symbol_values(program: LoopProgram) -> dict[str, int] | None:
    values: dict[str, int] = {}
    for symbol in program.symbols:
        wanted = max(symbol.lower, 3)
        value = -(-wanted // symbol.multiple) * symbol.multiple
        if symbol.upper is not None and value > symbol.upper:
            value = symbol.upper // symbol.multiple * symbol.multiple
        if value < symbol.lower:
            return None
        values[symbol.name] = value
    return values


def _search(loop: Loop, fixed: Mapping[str, int], private: set[str], symbols: dict[str, int]) -> Conflict | None:
    writes: dict[tuple[str, tuple[int, ...]], _Touch] = {}
    reads: dict[tuple[str, tuple[int, ...]], _Touch] = {}
    for statement, values in itertools.islice(_instances(loop, dict(fixed)), _POINTS):
        if any(guard.loads() or guard.evaluate(values) < 0 for guard in statement.guards):
            continue
        point = {name: value for name, value in values.items() if name not in fixed}
        own = [(t.buffer, t.index) for t in statement.targets if t.buffer not in private]
        combines = statement.reducer is not None
        touched = [("write", buffer, index, combines) for buffer, index in own]
        if statement.reducer is not None:
            touched += [("read", buffer, index, True) for buffer, index in own]
        for value in statement.values:
            touched += [
                ("read", n.buffer, n.index, False)
                for n in walk(value)
                if isinstance(n, Load) and n.buffer not in private
            ]
        touched.sort(key=lambda entry: entry[0])  # a statement reads before it writes
        for what, buffer, index, combined in touched:
            if any(entry.loads() for entry in index):
                continue
            key = buffer, tuple(int(entry.evaluate(values)) for entry in index)
            touch = _Touch(point, combined)
            others = [("flow", writes)] if what == "read" else [("output", writes), ("anti", reads)]
            for dependence, table in others:
                other = table.get(key)
                if other is not None and other.point[loop.variable] != point[loop.variable]:
                    both = other.combines and combined
                    found = Dependence(dependence, buffer, (loop.variable,), ("<",))  # type: ignore[arg-type]
                    return Conflict(found, Witness(other.point, point, symbols), both)
            (writes if what == "write" else reads).setdefault(key, touch)
    return None


def _instances(node: Node, values: dict[str, int]) -> Iterator[tuple[Compute, dict[str, int]]]:
    """Every statement with the values of the loops around it, in order."""
    match node:
        case Loop():
            for value in range(min(_EXTENT, _count(node.extent, values))):
                yield from _instances(node.body, {**values, node.variable: value})
        case Compute():
            yield node, values
        case _:
            for child in children(node):
                yield from _instances(child, values)


def _count(extent: Dim, values: Mapping[str, int]) -> int:
    return int(extent.evaluate(values))
