"""Every access of a program with what decides where it goes, symbols replaced by their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from tilework.cost.domain import Domain
from tilework.dims import Bound, Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Index, Load, walk
from tilework.loops.interpret import bind_symbols
from tilework.loops.program import AsyncCopy, Compute, Loop, LoopProgram, Node, Prefetch, children
from tilework.loops.substitute import substitute

Kind = Literal["read", "write", "update"]
"""An update reads and writes its element: the target of a reduction."""


@dataclass(frozen=True)
class Access:
    """One place of the text that touches a buffer. `loops` are those around it, outermost first."""

    statement: str
    buffer: str
    index: tuple[Dim, ...]
    kind: Kind
    loops: tuple[Loop, ...]
    guards: tuple[Dim, ...]


def bound(program: LoopProgram, symbols: Mapping[str, int]) -> LoopProgram:
    """The program with integers for its symbols. Raises `LoopProgramError` 1310 where one has no value."""
    values = {name: dim(value) for name, value in bind_symbols(program, {}, symbols).items()}
    if not values:
        return program
    arguments = tuple(
        replace(a, buffer=replace(a.buffer, shape=tuple(d.substitute(values) for d in a.buffer.shape)))
        for a in program.arguments
    )
    return replace(program, arguments=arguments, body=substitute(program.body, values), symbols=())


def statements_in(node: Node, loops: tuple[Loop, ...] = ()) -> Iterator[tuple[Compute, tuple[Loop, ...]]]:
    """Statements below a node, each with the loops around it."""
    if isinstance(node, Compute):
        yield node, loops
    inside = (*loops, node) if isinstance(node, Loop) else loops
    for child in children(node):
        yield from statements_in(child, inside)


def accesses_in(node: Node, loops: tuple[Loop, ...] = ()) -> Iterator[Access]:
    """Accesses below a node that bring data (prefetches do not), in order of execution; equal ones of a statement are
    one.
    """
    match node:
        case Compute():
            yield from _of_statement(node, loops)
        case AsyncCopy():
            yield Access(node.name, node.source.buffer, node.source.index, "read", loops, node.guards)
            yield Access(node.name, node.target.buffer, node.target.index, "write", loops, node.guards)
        case Prefetch():
            return
        case _:
            inside = (*loops, node) if isinstance(node, Loop) else loops
            for child in children(node):
                yield from accesses_in(child, inside)


def _of_statement(node: Compute, loops: tuple[Loop, ...]) -> Iterator[Access]:
    reads: dict[tuple[str, tuple[Dim, ...]], None] = {}

    def note(dims: Iterable[Dim]) -> None:
        for entry in dims:
            for load in sorted(entry.loads(), key=str):
                note(load.index)
                reads[load.buffer, load.index] = None

    note(node.guards)
    for value in node.values:
        for part in walk(value):
            if isinstance(part, Load):
                note(part.index)
                reads[part.buffer, part.index] = None
            elif isinstance(part, Index):
                note((part.value,))
    for target in node.targets:
        note(target.index)
    for buffer, index in reads:
        yield Access(node.name, buffer, index, "read", loops, node.guards)
    for target in node.targets:
        kind: Kind = "write" if node.reducer is None else "update"
        yield Access(node.name, target.buffer, target.index, kind, loops, node.guards)


def domain_of(loops: tuple[Loop, ...], guards: tuple[Dim, ...], fixed: Mapping[str, int] | None = None) -> Domain:
    """The iterations of a statement in these loops; variables in `fixed` have one value each.

    An extent that depends on other loops becomes its greatest value and a guard. Guards on data are left out, and the
    domain is then not exact.
    """
    values = {name: dim(value) for name, value in (fixed or {}).items()}
    extents: dict[str, int] = {}
    bounds: dict[str, tuple[Bound, Bound]] = {}
    found: list[Dim] = []
    exact = True
    for loop in loops:
        if loop.variable in values:
            continue
        extent = loop.extent.substitute(values)
        known = extent.value
        if known is None:
            high = extent.bounds(bounds)[1]
            if extent.loads() or high == float("inf"):
                exact = False
                high = 1 if high == float("inf") else high
            else:
                found.append(extent - 1 - loop.variable)
            known = int(high)
        extents[loop.variable] = max(0, known)
        bounds[loop.variable] = (0, max(0, known - 1))
    for guard in guards:
        here = guard.substitute(values)
        if here.loads():
            exact = False
        elif here.value is None or here.value < 0:
            found.append(here)
    return Domain(extents, tuple(found), exact)


def middle(loops: Iterable[Loop]) -> dict[str, int]:
    """A typical iteration: every loop at half of its extent."""
    values: dict[str, int] = {}
    for loop in loops:
        extent = loop.extent.substitute(values).value
        values[loop.variable] = (extent or 1) // 2
    return values
