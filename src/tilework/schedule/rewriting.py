"""Rewrites that several primitives share: renaming and replacing loop variables, guards, nests, names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tilework.dims import Bound, Bounds, Dim, dim, symbol_bounds
from tilework.loops.expressions import Expression, Index, Load
from tilework.loops.expressions import rewrite as rewrite_expression
from tilework.loops.program import (
    Access,
    AsyncCopy,
    Compute,
    Intrinsic,
    Loop,
    LoopKind,
    LoopProgram,
    Node,
    Prefetch,
    Scope,
    Storage,
    path,
    rewrite,
    walk,
)  # fmt: skip

_NOTHING: Mapping[str, tuple[str, ...]] = {}
SCOPES: tuple[Scope, ...] = ("global", "shared", "register", "fragment")
"""Every memory scope."""
PRIVATE: tuple[Scope, ...] = ("register", "fragment")
"""Scopes that belong to one thread."""
MARKS = ("init", "back", "near", "copy")
"""What a derived loop or statement is for: a start, a write-back, a prefetch, a copy."""


# -- names -------------------------------------------------------------------------------------------------------------
def derived(name: str, mark: str, taken: set[str]) -> str:
    """The name of what is made from a loop or statement for a purpose: `row` gives `row.back`.

    A mark that the name already bears is replaced; a number follows only where the name is taken. `taken` grows.
    """
    parts = name.split(".")
    while len(parts) > 1 and (parts[-1] in MARKS or (parts[-1].isdigit() and parts[-2] in MARKS)):
        parts.pop()
    return unique(".".join((*parts, mark)), taken)


def unique(name: str, taken: set[str]) -> str:
    """The name itself, or with the smallest free number behind it. `taken` grows."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    taken.add(found)
    return found


def loop_names(program: LoopProgram) -> set[str]:
    """Names that no new loop may take: loops and symbols."""
    return {n.variable for n in walk(program.body) if isinstance(n, Loop)} | {s.name for s in program.symbols}


def statement_names(program: LoopProgram) -> set[str]:
    """Names that no new statement may take."""
    return {n.name for n in walk(program.body) if isinstance(n, (Compute, Prefetch, AsyncCopy))}


# -- variables and guards ----------------------------------------------------------------------------------------------
def replace_variables(
    node: Node,
    values: Mapping[str, Dim],
    over: Mapping[str, tuple[str, ...]] = _NOTHING,
    bounds: Bounds | None = None,
) -> Node:
    """Replace loop variables by dims everywhere below a node.

    `over`: the loops that a reduction over a variable is over afterwards; where it says nothing, those of the new dim.
    `bounds` of names decide quotients and remainders on the way.
    """
    return rewrite(node, _Replacement(dict(values), over, bounds).node)


class _Replacement:
    """Replaces names in what nodes hold; used once, on one tree."""

    def __init__(self, table: Mapping[str, Dim], over: Mapping[str, tuple[str, ...]], bounds: Bounds | None) -> None:
        self._table = table
        self._over = over
        self._bounds = bounds
        self._memo: dict[int, Expression] = {}

    def node(self, found: Node) -> Node:
        match found:
            case Compute():
                return replace(
                    found,
                    targets=tuple(map(self._access, found.targets)),
                    values=tuple(rewrite_expression(v, self._leaf, self._memo) for v in found.values),
                    reduction=tuple(dict.fromkeys(new for old in found.reduction for new in self._reduced(old))),
                    guards=self._dims(found.guards),
                )
            case Prefetch():
                return replace(found, target=self._access(found.target), guards=self._dims(found.guards))
            case AsyncCopy():
                target, source = self._access(found.target), self._access(found.source)
                return replace(found, target=target, source=source, guards=self._dims(found.guards))
            case Loop():
                return Loop(found.variable, self._dim(found.extent), found.kind, found.body)
            case Storage():
                shape = self._dims(found.buffer.shape)
                if shape == found.buffer.shape:
                    return found
                return replace(found, buffer=replace(found.buffer, shape=shape))
            case _:
                return found

    def _dim(self, found: Dim) -> Dim:
        moved = found.substitute(self._table)
        return moved if self._bounds is None or moved == found else moved.simplify(self._bounds)

    def _dims(self, found: Iterable[Dim]) -> tuple[Dim, ...]:
        return tuple(map(self._dim, found))

    def _access(self, target: Access) -> Access:
        return Access(target.buffer, self._dims(target.index))

    def _leaf(self, found: Expression) -> Expression:
        match found:
            case Load():
                index = self._dims(found.index)
                return found if index == found.index else Load(found.buffer, index, found.dtype)
            case Index():
                value = self._dim(found.value)
                return found if value == found.value else Index(value, found.dtype)
            case _:
                return found

    def _reduced(self, old: str) -> Iterable[str]:
        """The loops that a reduction over one is over afterwards."""
        if old in self._over:
            return self._over[old]
        return sorted(self._table[old].names()) if old in self._table else (old,)


def add_guard(node: Node, *guards: Dim) -> Node:
    """Add guards to every statement, copy and prefetch below a node."""

    def change(found: Node) -> Node:
        if isinstance(found, (Compute, Prefetch, AsyncCopy)):
            return replace(found, guards=tuple(dict.fromkeys((*found.guards, *guards))))
        return found

    return rewrite(node, change)


def needed_guards(index: Dim, extent: Dim, bounds: Mapping[str, tuple[Bound, Bound]]) -> tuple[Dim, ...]:
    """The guards that keep an index inside an extent, without those that the bounds prove."""
    return tuple(guard for guard in (index, extent - 1 - index) if guard.bounds(bounds)[0] < 0)


def within(index: Dim, extent: Dim, guards: Iterable[Dim], bounds: Mapping[str, tuple[Bound, Bound]]) -> bool:
    """Whether an index surely lies inside an extent wherever the guards hold."""
    return all(
        side.bounds(bounds)[0] >= 0 or any((side - guard).bounds(bounds)[0] >= 0 for guard in guards)
        for side in (index, extent - 1 - index)
    )


# -- trees -------------------------------------------------------------------------------------------------------------
def nest(loops: Iterable[tuple[str, Dim, LoopKind]], body: Node) -> Node:
    """Loops around a body, the first outermost."""
    for variable, extent, kind in reversed(tuple(loops)):
        body = Loop(variable, extent, kind, body)
    return body


def band(outermost: Loop) -> tuple[Loop, ...]:
    """The loops of the perfect nest that starts here: each but the last has one loop as its whole body."""
    loops = [outermost]
    while isinstance(loops[-1].body, Loop):
        loops.append(loops[-1].body)
    return tuple(loops)


def own_nest(program: LoopProgram, found: Sequence[Compute], loops_only: bool = False) -> Node:
    """The largest subtree that runs for these statements only: what they share, and all loops around it, and storage
    that only they use unless `loops_only`.
    """
    around = (Loop,) if loops_only else (Loop, Storage)
    targets = {t.buffer for statement in found for t in statement.targets}
    chains = [path(program.body, statement) for statement in found]
    depth = 0
    while all(len(chain) > depth + 1 for chain in chains) and len({id(chain[depth + 1]) for chain in chains}) == 1:
        depth += 1
    chain = chains[0]
    while depth > 0 and isinstance(above := chain[depth - 1], around):
        if isinstance(above, Storage) and above.buffer.name in targets:
            break
        depth -= 1
    return chain[depth]


def storages(program: LoopProgram, buffer: str) -> list[Storage]:
    """The nodes at which a buffer's life opens: none for an argument, several where a loop was cut."""
    return [n for n in walk(program.body) if isinstance(n, Storage) and n.buffer.name == buffer]


def parent(program: LoopProgram, node: Node) -> Node | None:
    """The node directly above; None for the root."""
    chain = path(program.body, node)
    return chain[-2] if len(chain) > 1 else None


def instructions(node: Node) -> list[Intrinsic]:
    """The instructions below a node: what they mean may not be changed."""
    return [found for found in walk(node) if isinstance(found, Intrinsic)]


def loop_bounds(program: LoopProgram) -> dict[str, tuple[Bound, Bound]]:
    """Inclusive bounds of every symbol and loop variable (of a loop that runs)."""
    bounds: dict[str, tuple[Bound, Bound]] = dict(symbol_bounds(program.symbols))
    for node in walk(program.body):
        if isinstance(node, Loop):
            bounds[node.variable] = (0, max(0, node.extent.bounds(bounds)[1] - 1))
    return bounds


def runs(loop: Loop, bounds: Mapping[str, tuple[Bound, Bound]]) -> bool:
    """Whether the loop surely has an iteration."""
    return loop.extent.bounds(bounds)[0] >= 1


def renamed(loops: Iterable[Loop], mark: str, taken: set[str]) -> dict[str, str]:
    """New names for copies of loops."""
    return {loop.variable: derived(loop.variable, mark, taken) for loop in loops}


def copied(loops: Iterable[Loop], names: Mapping[str, str], body: Node) -> Node:
    """Copies of loops, kinds included, under new names around a body written with the old ones."""
    table = {old: dim(new) for old, new in names.items()}
    kept: list[tuple[str, Dim, LoopKind]] = [
        (names[loop.variable], loop.extent.substitute(table), loop.kind) for loop in loops
    ]
    return nest(kept, replace_variables(body, table))
