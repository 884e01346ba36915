"""Whether every access of a program stays inside its buffer: proven, or on conditions that a call can test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tilework.dims import Bounds, Dim, dim, maximum, symbol_bounds
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Load, walk
from tilework.loops.program import AsyncCopy, Buffer, Compute, Loop, LoopProgram, Node, Storage, children


@dataclass(frozen=True)
class Condition:
    """`value`, an expression of symbols, must be 0 or more: else `access` leaves its buffer."""

    value: Dim
    access: str


@dataclass(frozen=True)
class Inside:
    """What keeps the accesses inside. Those that data choose are left out: generated code always tests them."""

    conditions: tuple[Condition, ...]
    unproven: tuple[str, ...]
    """Accesses of which neither a proof nor a condition was found."""


def inside(program: LoopProgram) -> Inside:
    """Look at every access of a verified program."""
    finder = _Finder(symbol_bounds(program.symbols), dict(program.buffers))
    finder.node(program.body, {})
    return Inside(tuple(finder.conditions.values()), tuple(dict.fromkeys(finder.unproven)))


class _Finder:
    def __init__(self, symbols: Bounds, buffers: Mapping[str, Buffer]) -> None:
        self.symbols = symbols
        self.buffers = buffers
        self.conditions: dict[Dim, Condition] = {}
        self.unproven: list[str] = []

    def node(self, node: Node, loops: dict[str, Dim]) -> None:
        """Look at the accesses below a node; `loops` are the extents of the loops around it."""
        match node:
            case Loop():
                self.node(node.body, {**loops, node.variable: node.extent})
            case Compute():
                for buffer, index in accesses(node):
                    self.access(buffer, index, node.guards, loops)
            case AsyncCopy():
                for access in (node.source, node.target):
                    self.access(access.buffer, access.index, node.guards, loops)
            case Storage():
                self.node(node.body, loops)
            case _:
                for child in children(node):
                    self.node(child, loops)

    def access(self, buffer: str, index: tuple[Dim, ...], guards: tuple[Dim, ...], loops: dict[str, Dim]) -> None:
        text = f"{buffer}[{', '.join(map(str, index))}]"
        bounds = dict(self.symbols)
        for name, extent in loops.items():
            bounds[name] = (0, max(0, extent.bounds(bounds)[1] - 1))
        for entry, extent in zip(index, self.buffers[buffer].shape, strict=True):
            if entry.loads():
                continue
            for needed in (entry, extent - 1 - entry):
                if not any(self.holds(needed - guard, loops, bounds) for guard in (dim(0), *guards)):
                    self.require(needed, text, guards, loops)

    def holds(self, value: Dim, loops: dict[str, Dim], bounds: Bounds) -> bool:
        """Whether the value is provably 0 or more for all iterations and all symbols."""
        if value.bounds(bounds)[0] >= 0:
            return True
        low = least(value, loops)
        return low is not None and low.bounds(self.symbols)[0] >= 0

    def require(self, value: Dim, access: str, guards: tuple[Dim, ...], loops: dict[str, Dim]) -> None:
        low = least(value, loops)
        if low is None or guards:
            self.unproven.append(access)
            return
        # a loop that never runs accesses nothing
        empty = [-extent for extent in loops.values() if extent.bounds(self.symbols)[0] <= 0 and not extent.loads()]
        needed = maximum(low, *empty)
        if needed.names() <= self.symbols.keys():
            self.conditions.setdefault(needed, Condition(needed, access))
        else:
            self.unproven.append(access)


def accesses(node: Compute) -> Iterator[tuple[str, tuple[Dim, ...]]]:
    """Buffer and index of every element that a statement reads or writes, those that indices read included."""
    for target in node.targets:
        yield target.buffer, target.index
        yield from _loaded(target.index)
    yield from _loaded(node.guards)
    for value in node.values:
        for part in walk(value):
            if isinstance(part, Load):
                yield part.buffer, part.index
                yield from _loaded(part.index)


def _loaded(dims: Iterable[Dim]) -> Iterator[tuple[str, tuple[Dim, ...]]]:
    for entry in dims:
        for found in entry.loads():
            yield found.buffer, found.index


def least(value: Dim, loops: dict[str, Dim]) -> Dim | None:
    """The least value over the loops, an expression of symbols; None where the form does not say."""
    if not value.affine_in(loops) or value.loads():
        return None
    low = value
    for name in reversed(loops):  # inner loops first: their extents may depend on outer ones
        if name not in low.names():
            continue
        if not low.affine_in((name,)) or loops[name].loads():
            return None
        low = low.substitute({name: dim(0) if low.coefficient(name) > 0 else loops[name] - 1})
    return low if not low.names() & loops.keys() else None
