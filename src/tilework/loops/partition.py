"""Cutting serial loops where a guard changes truth, so that code generators see few guards.

Masked tails and skipped padding fall out of it: in each piece, a guard that always holds is dropped and a statement
that never runs is deleted. Where everything is an integer, a loop is cut at every point that matters; where extents are
symbolic, once: a main part in which the guards hold, and a tail that keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tilework.dims import Bound, Dim, dim, maximum, minimum, symbol_bounds
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Load, cast
from tilework.loops.expressions import walk as walk_expression
from tilework.loops.program import (
    EMPTY,
    AsyncCopy,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Prefetch,
    Storage,
    is_empty,
    path,
    replace_node,
    rewrite,
    sequence,
    walk,
    with_children,
)  # fmt: skip
from tilework.loops.program import Sequence as SequenceNode
from tilework.loops.ranges import extremes, quotient, that_run, weight, whole_range
from tilework.loops.substitute import fresh_copy, fresh_name, loop_names, substitute

_SINGLES = 16
"""Iterations that may become pieces of their own between 'holds nowhere' and 'holds everywhere'."""
_HEAVIEST = 9
"""Names and operations that a symbolic cut may have: it is computed again wherever the tail's variable is used."""
_GuardedLeaf = Compute | Prefetch | AsyncCopy


def partition(
    program: LoopProgram, limit: int = 20000, only: Node | None = None, *, alone: bool = False
) -> LoopProgram:
    """The program with its serial loops cut, never of more than about `limit` nodes: past it, guards stay.

    `only`: the subtree in which loops are cut (None: everywhere); `alone`: just its outermost loop. Values are the same
    to the bit: iterations keep their order, and every reduction still starts once.
    """
    cutting = _Partition(program, limit, only.variable if alone and isinstance(only, Loop) else "")
    if only is None:
        return program.with_body(cutting.node(program.body, ()))
    outer = tuple(n for n in path(program.body, only)[:-1] if isinstance(n, Loop))
    return program.with_body(replace_node(program.body, only, cutting.node(only, outer)))


@dataclass(frozen=True)
class _Place:
    """A guarded statement below a loop and the loops in between, outermost first."""

    leaf: _GuardedLeaf
    inner: tuple[Loop, ...]


class _Partition:
    def __init__(self, program: LoopProgram, limit: int, alone: str) -> None:
        self._alone = alone
        """The only loop that is cut, where there is such."""
        self._symbols = symbol_bounds(program.symbols)
        self._taken = set(loop_names(program.body)) | set(self._symbols)
        self._targets = {buffer.name: buffer for buffer in program.buffers.values()}
        self._left = limit - sum(1 for _ in walk(program.body))
        self._tails: set[str] = set()

    # -- tree ----------------------------------------------------------------------------------------------------------
    def node(self, node: Node, outer: tuple[Loop, ...]) -> Node:
        match node:
            case SequenceNode(children=nodes):
                found = tuple(self.node(child, outer) for child in nodes)
                return node if all(a is b for a, b in zip(found, nodes, strict=True)) else sequence(*found)
            case Storage():
                body = self.node(node.body, outer)
                return node if body is node.body else with_children(node, (body,))
            case Loop():
                return self._loop(node, outer)
            case Compute():
                return self._compute(node, outer)
            case Prefetch() | AsyncCopy():
                kept = self._guards(node.guards, outer)
                return EMPTY if kept is None else node if kept == node.guards else replace(node, guards=kept)
            case _:
                return node  # an intrinsic's body states what the instruction does: it stays whole

    def _loop(self, loop: Loop, outer: tuple[Loop, ...]) -> Node:
        if loop.extent.value is not None and loop.extent.value <= 0:
            return EMPTY
        shaped = any(
            isinstance(n, Storage) and any(loop.variable in extent.names() for extent in n.buffer.shape)
            for n in walk(loop.body)
        )  # its pieces would be different buffers of one name
        cut = self._alone in ("", loop.variable) and loop.kind == "serial" and loop.variable not in self._tails
        if cut and not shaped:
            pieces = self._integer_pieces(loop, outer) or self._symbolic_pieces(loop, outer)
            if pieces is not None:
                return sequence(*(self.node(piece, outer) for piece in pieces))
        body = self.node(loop.body, (*outer, loop))
        if is_empty(body):
            return EMPTY
        if body is loop.body:
            return loop
        again = replace(loop, body=body)
        only_first = -dim(loop.variable)
        if loop.extent.value is not None and loop.extent.value > 1 and loop.kind == "serial":
            added = [n for n in walk(body) if isinstance(n, Compute) and only_first in n.guards]
            if added and not any(isinstance(n, Compute) and only_first in n.guards for n in walk(loop.body)):
                return self._loop(again, outer)
        return again

    # -- statements ----------------------------------------------------------------------------------------------------
    def _compute(self, node: Compute, outer: tuple[Loop, ...]) -> Node:
        starts = node.reducer is not None and node.init is not None
        reduced = set(node.reduction)
        applied = tuple(g for g in node.guards if not (starts and g.names() & reduced))
        kept = self._guards(applied, outer, node)
        if kept is None:
            return EMPTY
        inner = tuple(g for g in node.guards if starts and g.names() & reduced)
        kept_inner = self._guards(inner, outer, node)
        if kept_inner is None:
            first = tuple(-dim(v) for v in node.reduction)
            return self.node(self._start(node, (*kept, *first)), outer)
        guards = tuple(g for g in node.guards if g in kept or g in kept_inner)
        return node if guards == node.guards else replace(node, guards=guards)

    def _start(self, node: Compute, guards: tuple[Dim, ...]) -> Compute:
        """What remains of a reduction that never adds anything: its start."""
        values: list[Expression] = []
        for target, start in zip(node.targets, node.init or (), strict=True):
            buffer = self._targets.get(target.buffer)
            values.append(start if buffer is None else cast(start, buffer.dtype))
        return Compute(f"{node.name}.init", node.targets, tuple(values), guards=guards)

    def _guards(
        self, guards: tuple[Dim, ...], outer: tuple[Loop, ...], leaf: Compute | None = None
    ) -> tuple[Dim, ...] | None:
        """The guards that may fail where the others of `leaf` hold; None where one always does."""
        kept: list[Dim] = []
        for guard in guards:
            low, high = self._range(guard, outer if leaf is None else that_run(outer, guard, leaf))
            if high < 0:
                return None
            if low < 0:
                kept.append(guard)
        return tuple(kept)

    def _range(self, value: Dim, loops: Sequence[Loop]) -> tuple[Bound, Bound]:
        bounds = self._bounds(loops)
        low, high = value.bounds(bounds)
        least, greatest = extremes(value, loops)
        if least is not None and greatest is not None:
            low, high = max(low, least.bounds(bounds)[0]), min(high, greatest.bounds(bounds)[1])
        return low, high

    def _bounds(self, loops: Sequence[Loop]) -> dict[str, tuple[Bound, Bound]]:
        found: dict[str, tuple[Bound, Bound]] = dict(self._symbols)
        for loop in loops:
            found[loop.variable] = (0, max(0, loop.extent.bounds(found)[1] - 1))
        return found

    # -- cutting at integers -------------------------------------------------------------------------------------------
    def _integer_pieces(self, loop: Loop, outer: tuple[Loop, ...]) -> list[Node] | None:
        extent = loop.extent.value
        if extent is None:
            return None
        cuts: set[int] = set()
        seen = False
        for place, guard, slope in self._open_guards(loop, outer):
            seen = True
            rest = guard - dim(loop.variable) * slope
            low, high = whole_range(rest, place.inner)
            if low is None or high is None:
                continue
            # the points where it starts (stops) to hold somewhere, and everywhere
            turns = sorted(-(r // slope) if slope > 0 else r // -slope + 1 for r in (low, high))
            between = range(turns[0], turns[1] + 1)
            cuts.update(between if len(between) <= _SINGLES else turns)
        ends = [0, *sorted(p for p in cuts if 0 < p < extent), extent]
        if (len(ends) == 2 and not (seen and extent == 1)) or not self._afford(loop, len(ends) - 1):
            return None
        return [self._piece(loop, a, b) for a, b in pairwise(ends)]

    def _piece(self, loop: Loop, start: int, stop: int) -> Node:
        body = loop.body if start == 0 else _without_start(loop.body, loop.variable)
        if stop - start == 1:
            if start == 0:
                started = rewrite(body, lambda n: self._started_apart(n, loop.variable))
                return substitute(started, {loop.variable: dim(0)})
            return fresh_copy(body, {loop.variable: dim(start)}, self._taken)
        if start == 0:
            return Loop(loop.variable, dim(stop), loop.kind, body)
        name = fresh_name(loop.variable, self._taken)
        moved = fresh_copy(body, {loop.variable: dim(name) + start}, self._taken)
        return Loop(name, dim(stop - start), loop.kind, moved)

    def _started_apart(self, node: Node, variable: str) -> Node:
        """For the first iteration alone: guards that name this reduction variable do not hold back the start, and are
        about to name no reduction variable; where there are such, the start becomes a statement of its own.
        """
        if not isinstance(node, Compute) or node.init is None or variable not in node.reduction:
            return node
        reduced = set(node.reduction)
        left = tuple(v for v in node.reduction if v != variable)
        freed = [g for g in node.guards if set(g.names() & reduced) == {variable}]
        if all((g.substitute({variable: 0}).value or 0) >= 0 and not g.names() - {variable} for g in freed):
            return node
        applied = tuple(g for g in node.guards if not g.names() & reduced)
        start = self._start(node, (*applied, *(-dim(v) for v in left)))
        return sequence(start, replace(node, init=None))

    # -- cutting at expressions ----------------------------------------------------------------------------------------
    def _symbolic_pieces(self, loop: Loop, outer: tuple[Loop, ...]) -> list[Node] | None:
        """A main part in which the guards that end somewhere hold everywhere, and a tail with those guards."""
        lanes = {other.variable for other in outer if other.kind not in ("serial", "parallel", "unrolled")}
        bounds = self._bounds(outer)
        ends: list[Dim] = []
        holding: set[tuple[int, Dim]] = set()
        exact: set[tuple[int, Dim]] = set()
        for place, guard, slope in self._open_guards(loop, outer):
            if slope > 0:
                continue
            low, high = extremes(guard - dim(loop.variable) * slope, place.inner)
            if low is None or low.names() & lanes:
                continue
            end = (low // -slope + 1).simplify(bounds)
            ends.append(end)
            holding.add((id(place.leaf), guard))
            if low == high:
                exact.add((id(place.leaf), guard))
        if not ends:
            return None
        least: list[Dim] = []
        for end in (*ends, loop.extent):
            if not any(self._at_most(other, end, outer) for other in least):
                least = [other for other in least if not self._at_most(end, other, outer)]
                least.append(end)
        cut = maximum(minimum(*least), 0).simplify(bounds)
        # A guard that came to name a reduction variable would no longer hold back the start.
        reduced = {v for n in walk(loop.body) if isinstance(n, Compute) and n.init is not None for v in n.reduction}
        if weight(cut) > _HEAVIEST or cut.names() & (reduced | {loop.variable}):
            return None
        if cut in (dim(0), loop.extent) or not self._afford(loop, 3):
            return None
        apart = self._starts(loop, bounds) if cut.bounds(bounds)[0] < 1 else ()
        if apart is None:
            return None
        variable = loop.variable
        # a guard that ends for all inner iterations at once, at the cut, holds nowhere in the tail
        gone = exact if len(set(ends)) == 1 else set[tuple[int, Dim]]()
        origin: dict[int, int] = {}
        later = _without_start(loop.body, variable, origin)
        body = rewrite(later, lambda n: self._gone(n, gone, origin))
        main = rewrite(loop.body, lambda n: _dropping(n, holding))
        if apart:
            main = _without_start(main, variable)
        name = fresh_name(variable, self._taken)
        self._tails.add(name)
        values = {variable: dim(name) + cut}
        whole = Loop(variable, cut, loop.kind, main)
        if is_empty(body):
            return [*apart, whole]
        moved = fresh_copy(body, values, self._taken, {variable: (name,)})
        return [*apart, whole, Loop(name, loop.extent - cut, loop.kind, moved)]

    def _gone(self, node: Node, gone: set[tuple[int, Dim]], origin: Mapping[int, int]) -> Node:
        """What is left of a statement in a tail where some of its guards hold nowhere."""
        if not isinstance(node, (Compute, Prefetch, AsyncCopy)):
            return node
        key = origin.get(id(node), id(node))
        dead = [g for g in node.guards if (key, g) in gone]
        if not dead:
            return node
        if not isinstance(node, Compute) or node.init is None:
            return EMPTY
        reduced = set(node.reduction)
        if any(not g.names() & reduced for g in dead):
            return EMPTY
        applied = tuple(g for g in node.guards if not g.names() & reduced)
        return self._start(node, (*applied, *(-dim(v) for v in node.reduction)))

    def _starts(self, loop: Loop, bounds: Mapping[str, tuple[Bound, Bound]]) -> tuple[Node, ...] | None:
        """The starts of reductions over this loop as nests before it; None where they cannot be moved there."""
        nests: list[Node] = []
        inside = {n.buffer.name for n in walk(loop.body) if isinstance(n, Storage)}
        written = {name for n in walk(loop.body) for name in _written(n)}
        for place in _places(loop.body, ()):
            leaf = place.leaf
            if not isinstance(leaf, Compute) or leaf.init is None or loop.variable not in leaf.reduction:
                continue
            targets = {target.buffer for target in leaf.targets}
            if targets & inside or any(targets & _touched(n) for n in walk(loop.body) if n is not leaf):
                return None
            if written & {found.buffer for g in leaf.guards for found in g.loads()}:
                return None
            reduced = set(leaf.reduction)
            within = {other.variable for other in place.inner}
            guards = tuple(g for g in leaf.guards if not g.names() & reduced)
            # reductions further out have to be on their first iteration too
            guards += tuple(-dim(v) for v in leaf.reduction if v not in within and v != loop.variable)
            # and where one of the loops moved over runs not at all, nothing starts
            moved_over = [loop, *(other for other in place.inner if other.variable in reduced)]
            guards += tuple(other.extent - 1 for other in moved_over if other.extent.bounds(bounds)[0] < 1)
            kept = [other for other in place.inner if other.variable not in reduced]
            nest: Node = self._start(leaf, guards)
            for other in reversed(kept):
                nest = Loop(other.variable, other.extent, other.kind, nest)
            zero = {v: dim(0) for v in leaf.reduction if v in within or v == loop.variable}
            nests.append(fresh_copy(nest, zero, self._taken))
        return tuple(nests)

    def _at_most(self, a: Dim, b: Dim, outer: tuple[Loop, ...]) -> bool:
        """Whether a <= b whatever the names are."""
        if self._range(b - a, outer)[0] >= 0:
            return True
        left, right = quotient(a), quotient(b)
        if left is None or right is None or left.denominator != right.denominator:
            return False
        return self._range(right.numerator - left.numerator, outer)[0] >= 0

    def _afford(self, loop: Loop, pieces: int) -> bool:
        size = sum(1 for _ in walk(loop.body)) * (pieces - 1)
        if size > self._left:
            return False
        self._left -= size
        return True

    def _open_guards(self, loop: Loop, outer: tuple[Loop, ...]) -> Iterator[tuple[_Place, Dim, int]]:
        """Guards below a loop that may fail, and are an integer times its variable plus what the variable is not in."""
        for place in _places(loop.body, ()):
            for guard in place.leaf.guards:
                slope = guard.coefficient(loop.variable)
                if not slope or not guard.affine_in((loop.variable,)) or guard.loads():
                    continue
                inner = that_run(place.inner, guard, place.leaf)
                if self._range(guard, (*that_run(outer, guard, place.leaf), loop, *inner))[0] < 0:
                    yield _Place(place.leaf, inner), guard, slope


def _places(node: Node, inner: tuple[Loop, ...]) -> Iterator[_Place]:
    match node:
        case SequenceNode(children=nodes):
            for child in nodes:
                yield from _places(child, inner)
        case Loop():
            yield from _places(node.body, (*inner, node))
        case Storage(body=body):
            yield from _places(body, inner)
        case Compute() | Prefetch() | AsyncCopy():
            yield _Place(node, inner)
        case _:
            pass


def _without_start(node: Node, variable: str, origin: dict[int, int] | None = None) -> Node:
    """The tree for iterations after the first: reductions over the variable have started.

    `origin` receives, by the identity of each statement that changed, that of the one it comes from.
    """

    def change(found: Node) -> Node:
        if not isinstance(found, Compute) or found.init is None or variable not in found.reduction:
            return found
        later = replace(found, init=None)
        if origin is not None:
            origin[id(later)] = id(found)
        return later

    return rewrite(node, change)


def _dropping(node: Node, holding: set[tuple[int, Dim]]) -> Node:
    if not isinstance(node, (Compute, Prefetch, AsyncCopy)):
        return node
    kept = tuple(g for g in node.guards if (id(node), g) not in holding)
    return node if kept == node.guards else replace(node, guards=kept)


def _written(node: Node) -> set[str]:
    if isinstance(node, Compute):
        return {target.buffer for target in node.targets}
    return {node.target.buffer} if isinstance(node, AsyncCopy) else set()


def _touched(node: Node) -> set[str]:
    """Buffers that a statement names."""
    match node:
        case Compute():
            found = {target.buffer for target in node.targets}
            loads = {n.buffer for v in node.values for n in walk_expression(v) if isinstance(n, Load)}
            return found | loads | {x.buffer for g in node.guards for x in g.loads()}
        case AsyncCopy():
            return {node.target.buffer, node.source.buffer}
        case _:
            return set()
