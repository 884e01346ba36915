"""Reductions into memory keep their partial results in registers while the loops of the reduction run.

A statement that combines into elements which a serial loop does not move gets a register buffer around that loop:
loaded or started before it, combined into inside, written back after it. So does one in a loop that is written out,
where memory would round its partial results, and where lanes are combined. Its dimensions are the unrolled and
vectorised loops inside that do move the target. A reduction over lanes has one partial result a lane, combined after
the loop, where the order may change. Values are those of the program as it stands, up to that order.
"""

from __future__ import annotations

from dataclasses import replace

from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Index, Load, call, cast, index, substitute
from tilework.loops.expressions import walk as walk_expression
from tilework.loops.program import (
    Access,
    AsyncCopy,
    Buffer,
    Compute,
    Intrinsic,
    Loop,
    LoopProgram,
    Node,
    Storage,
    children,
    path,
    replace_node,
    sequence,
    walk,
    with_children,
)  # fmt: skip
from tilework.lowering.cells import unrolls
from tilework.lowering.prover import Prover
from tilework.lowering.state import MAX_LANES
from tilework.numerics import Numerics

MAX_ELEMENTS = 64
"""Vectors (or scalars) that one statement may keep in registers in this way."""


def promoted(program: LoopProgram, numerics: Numerics) -> LoopProgram:
    """The program with register accumulators around its reductions."""
    if not any(isinstance(n, Compute) and n.reducer is not None for n in walk(program.body)):
        return program
    body = _Promotion(program, numerics).node(program.body)
    return program if body is program.body else program.with_body(body)


@dataclass(frozen=True)
class _Plan:
    """How one statement is kept in registers around one loop."""

    statement: Compute
    moving: tuple[Loop, ...]
    """Loops inside that move the target: the dimensions of the register buffer."""
    lanes: Loop | None
    """The vectorised loop that is reduced over, if any: one more dimension."""
    guards: tuple[Dim, ...]
    """Guards that hold around the loop too (they may name the moving loops)."""


class _Promotion:
    def __init__(self, program: LoopProgram, numerics: Numerics) -> None:
        self.numerics = numerics
        self.buffers = program.buffers
        self.prover = Prover(program)
        self.count = 0
        self.lane: Loop | None = None
        """The vectorised loop around the node at hand."""

    def node(self, node: Node) -> Node:
        if isinstance(node, Loop) and (node.kind == "serial" or unrolls(node)):
            for statement in [n for n in walk(node.body) if isinstance(n, Compute)]:
                plan = self.plan(node, statement)
                if plan is not None and _pays(node, plan):
                    return self.rewritten(node, plan)
        below = children(node)
        if not below or isinstance(node, Intrinsic):
            return node
        around = self.lane
        if isinstance(node, Loop) and node.kind == "vectorized":
            self.lane = node
        new = tuple(self.node(child) for child in below)
        self.lane = around
        return node if all(a is b for a, b in zip(below, new, strict=True)) else with_children(node, new)

    # -- may it be done ------------------------------------------------------------------------------------------------
    def plan(self, loop: Loop, statement: Compute) -> _Plan | None:
        """How to keep the statement's partial results around the loop, or None where it cannot be done."""
        names = {target.buffer for target in statement.targets}
        if statement.reducer is None or len(names) != len(statement.targets):
            return None
        if any(self.buffers[n].scope in ("register", "fragment") for n in names if n in self.buffers):
            return None
        if any(i.loads() for t in statement.targets for i in t.index if i.terms):
            return None
        used = {name for target in statement.targets for i in target.index for name in i.names()}
        if loop.variable in used or any(_touches(n, names, statement) for n in walk(loop)):
            return None
        if self.lane is not None and self.lane.variable not in used:
            return None  # lanes meet in the target: what each has must be combined where the statement stands
        inside = [n for n in path(loop, statement) if isinstance(n, Loop)]
        restarts = {n.variable for n in (loop, *inside)} - used - set(statement.reduction)
        if statement.init is not None and restarts:
            return None  # each iteration of such a loop starts anew
        if any(n.kind not in ("serial", "vectorized", "unrolled") for n in inside):
            return None
        vectorised = [n for n in inside if n.kind == "vectorized" and not unrolls(n)]
        moving = tuple(n for n in inside if n.variable in used)
        if len(vectorised) > 1 or any((n.extent.value or MAX_LANES + 1) > MAX_LANES for n in vectorised):
            return None
        elements = 1
        for n in moving:
            if not (unrolls(n) or n in vectorised):
                return None
            elements *= 1 if n in vectorised else int(n.extent)
        if elements > MAX_ELEMENTS or not all(_injective(t.index, moving) for t in statement.targets):
            return None
        lanes = next((n for n in vectorised if n not in moving), None)
        if lanes is not None and not (statement.reducer.relaxable and self.numerics.reassociate):
            return None
        bound = {n.variable for n in inside} - {n.variable for n in moving}
        # the start does not mind guards that name a reduction variable, those of loops further out included
        started = set(statement.reduction) if statement.init is not None else set[str]()
        guards = tuple(g for g in statement.guards if not g.names() & (bound | started))
        # Where a loop runs no time, nothing is started and nothing written.
        for n in inside:
            if n not in moving and not self.prover.nonnegative(n.extent - 1):
                if n.extent.names() & {m.variable for m in inside} or n.extent.loads():
                    return None
                guards = (*guards, n.extent - 1)
        if any(g.loads() for g in guards) or not all(self.exists(t, guards) for t in statement.targets):
            return None
        return _Plan(statement, moving, lanes, guards)

    def exists(self, target: Access, guards: tuple[Dim, ...]) -> bool:
        """Whether the element is known to exist wherever the guards hold, so that it may be read and written back."""
        pairs = zip(target.index, self.buffers[target.buffer].shape, strict=True)
        rooms = [side for i, extent in pairs for side in (i, extent - 1 - i)]
        return all(room in guards or self.prover.nonnegative(room) for room in rooms)

    # -- doing it ------------------------------------------------------------------------------------------------------
    def rewritten(self, loop: Loop, plan: _Plan) -> Node:
        """The loop with the statement's accumulator around it (and what else can be kept inside)."""
        statement = plan.statement
        reducer = statement.reducer
        assert reducer is not None
        self.count += 1
        dimensions = (*plan.moving, *((plan.lanes,) if plan.lanes is not None else ()))
        place = tuple(dim(n.variable) for n in dimensions)
        shape = tuple(n.extent for n in dimensions)
        cells = [
            Buffer(
                f"{t.buffer}.accumulator{self.count}", shape,
                statement.accumulate or self.buffers[t.buffer].dtype, "register",
            )
            for t in statement.targets
        ]  # fmt: skip
        for cell in cells:
            self.buffers[cell.name] = cell
        accesses = tuple(Access(cell.name, place) for cell in cells)
        inner = replace(statement, targets=accesses, init=None, reduction=())
        body = self.node(replace_node(loop, statement, inner))
        bound = {n.variable for n in walk(loop) if isinstance(n, Loop)}
        outside = tuple(name for name in statement.reduction if name not in bound)
        if plan.lanes is None:
            start = Compute(
                f"{statement.name}.start", accesses, self.starts(plan, cells, outside), guards=plan.guards
            )  # fmt: skip
            loads = tuple(Load(cell.name, place, cell.dtype) for cell in cells)
            end = Compute(f"{statement.name}.end", statement.targets, loads, guards=plan.guards)
        else:
            start = Compute(f"{statement.name}.start", accesses, reducer.identity)
            loads = tuple(Load(cell.name, place, cell.dtype) for cell in cells)
            end = Compute(
                f"{statement.name}.end", statement.targets, loads, reducer, statement.init,
                (*outside, plan.lanes.variable) if statement.init is not None else (), plan.guards,
                statement.accumulate,
            )  # fmt: skip
        node = sequence(self.nest(start, dimensions, "start"), body, self.nest(end, dimensions, "end"))
        for cell in reversed(cells):
            node = Storage(cell, node)
        return node

    def starts(self, plan: _Plan, cells: list[Buffer], outside: tuple[str, ...]) -> tuple[Expression, ...]:
        """What the accumulators hold before the loop: the start, or the target's element where there was a part
        before.
        """
        statement = plan.statement
        found: list[Expression] = []
        for position, (target, cell) in enumerate(zip(statement.targets, cells, strict=True)):
            start: Expression | None = None
            if statement.init is not None:
                constant = statement.init[position]
                start = cast(constant, cell.dtype)
            if start is None or outside:
                old: Expression = cast(Load(target.buffer, target.index, self.buffers[target.buffer].dtype), cell.dtype)
                if start is not None:
                    first: Expression | None = None
                    for name in outside:
                        zero = call("equal", index(name), 0)
                        first = zero if first is None else call("and", first, zero)
                    assert first is not None
                    old = call("select", first, start, old)
                start = old
            found.append(start)
        return tuple(found)

    def nest(self, statement: Compute, dimensions: tuple[Loop, ...], suffix: str) -> Node:
        """The statement in loops of its own over the accumulator's dimensions."""
        names = {n.variable: dim(f"{n.variable}.{suffix}{self.count}") for n in dimensions}
        node: Node = _renamed(statement, names)
        for n in reversed(dimensions):
            variable = f"{n.variable}.{suffix}{self.count}"
            self.prover.extents[variable] = n.extent
            self.prover.bounds[variable] = self.prover.bounds[n.variable]
            node = Loop(variable, n.extent, n.kind, node)
        return node


def _pays(loop: Loop, plan: _Plan) -> bool:
    """Whether registers around a loop are of use: where it is written out, for partial results that memory would round,
    and for lanes that are combined once for all iterations.
    """
    if not unrolls(loop):
        return True
    return loop.extent != 1 and (plan.statement.accumulate is not None or plan.lanes is not None)


def _renamed(statement: Compute, names: dict[str, Dim]) -> Compute:
    return replace(
        statement,
        targets=tuple(Access(t.buffer, tuple(i.substitute(names) for i in t.index)) for t in statement.targets),
        values=tuple(substitute(value, names) for value in statement.values),
        guards=tuple(g.substitute(names) for g in statement.guards),
        reduction=tuple(next(iter(names[r].names())) if r in names else r for r in statement.reduction),
    )


def _touches(node: Node, names: set[str], but: Compute) -> bool:
    """Whether a node reads or writes one of the buffers (other than through the statement's own targets)."""
    dims: list[Dim] = []
    if isinstance(node, Compute):
        if node is not but and any(t.buffer in names for t in node.targets):
            return True
        dims += [*node.guards, *(i for t in node.targets for i in t.index)]
        for value in node.values:
            for part in walk_expression(value):
                if isinstance(part, Load):
                    if part.buffer in names:
                        return True
                    dims += part.index
                elif isinstance(part, Index):
                    dims.append(part.value)
    elif isinstance(node, AsyncCopy):
        if node.target.buffer in names or node.source.buffer in names:
            return True
    elif isinstance(node, Loop):
        dims.append(node.extent)
    elif isinstance(node, Storage):
        return node.buffer.name in names
    return any(element.buffer in names for d in dims if d.terms for element in d.loads())


def _injective(place: tuple[Dim, ...], loops: tuple[Loop, ...]) -> bool:
    """Whether different iterations of the loops give different elements: each in one dimension, as digits of a
    number.
    """
    seen: set[str] = set()
    variables = {n.variable: int(n.extent) for n in loops}
    for i in place:
        inside = i.names() & variables.keys()
        if not inside:
            continue
        if inside & seen or not i.affine_in(inside):
            return False
        seen |= inside
        reach = 1
        for coefficient, extent in sorted((abs(i.coefficient(name)), variables[name]) for name in inside):
            if coefficient < reach:
                return False
            reach = coefficient * extent
    return seen == set(variables)
