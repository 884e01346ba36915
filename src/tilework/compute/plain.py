"""From index notation to a loop program: the plain nest of every stage, in order."""

from __future__ import annotations

from tilework.compute.notation import Axis, Computation, Stage
from tilework.compute.reads import reads_of
from tilework.dims import Bounds, dim, symbol_bounds
from tilework.errors import LoopProgramError
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Constant, Expression, Load, cast
from tilework.loops.program import (
    EMPTY,
    Access,
    Argument,
    Buffer,
    BufferAccess,
    Compute,
    Loop,
    LoopProgram,
    Node,
    Storage,
    sequence,
)  # fmt: skip


@dataclass(frozen=True)
class _Context:
    bounds: Bounds
    taken: set[str]


def plain_program(computation: Computation) -> LoopProgram:
    """The default loop program: one nest a stage, serial loops named by the stage's axes; temporaries are root storage.

    A reduction starts on its first iteration; where its extent may be zero, the start is a statement of its own
    (`<stage>.init`) before the reduction's loops. A scan keeps its partial result in a register (`<stage>.partial`).
    Outputs that a stage reads before any stage writes them, or that only a scatter writes, are `accumulate` arguments.
    Expects a computation that `compute.verify` accepts, and does not look: `compute.nest.loop_program` does.
    """
    context = _Context(symbol_bounds(computation.symbols), set())
    body = sequence(*(_nest(stage, context) for stage in computation.stages))
    for temporary in reversed(computation.temporaries):
        body = Storage(temporary, body)
    written = {target.name for stage in computation.stages for target in stage.targets}
    arguments = [Argument(b, _access(b, computation) if b.name in written else "read") for b in computation.inputs]
    known = {buffer.name for buffer in computation.inputs}
    arguments += [Argument(b, _access(b, computation)) for b in computation.outputs if b.name not in known]
    return LoopProgram(computation.name, tuple(arguments), body, computation.symbols)


def _access(buffer: Buffer, computation: Computation) -> BufferAccess:
    """Whether old contents of an output matter: something reads them before a stage has written."""
    for stage in computation.stages:
        own = any(buffer.name == target.name for target in stage.targets)
        reads = buffer.name in reads_of(stage)
        scan = any(axis.kind == "scan" for axis in stage.axes)
        if own and stage.reducer is None and (scan or not reads):
            return "write"  # a recurrence reads what earlier points of its own wrote
        if own and not reads and stage.init is not None:
            return "write"
        if reads or own:
            return "accumulate"
    return "write"


def _nest(stage: Stage, context: _Context) -> Node:
    for axis in stage.axes:
        if axis.name in context.taken:
            raise LoopProgramError(1350, f"axis {axis.name} is used twice", where=f"stage {stage.name}")
        context.taken.add(axis.name)
    if stage.reducer is not None and any(axis.kind == "scan" for axis in stage.axes):
        return _scan(stage)
    targets = tuple(Access(target.name, stage.where) for target in stage.targets)
    if stage.reducer is None:
        plain = Compute(stage.name, targets, stage.values, guards=stage.guards)
        return _loops(stage.axes, plain)
    reduction = stage.reduction_axes
    names = tuple(axis.name for axis in reduction)
    init = stage.init
    apart = init is not None and any(axis.extent.bounds(context.bounds)[0] <= 0 for axis in reduction)
    combine = Compute(
        stage.name, targets, stage.values, stage.reducer, None if apart else init, names, stage.guards, stage.accumulate
    )
    if not apart or init is None:
        # Reduction loops stay where the stage lists them: an order that a person chose for a scatter matters.
        return _loops(stage.axes, combine)
    outer = tuple(axis for axis in stage.axes if axis.kind != "reduction")
    start = _start(stage, targets, init, set(names))
    empty = any(axis.extent == 0 for axis in reduction)
    return _loops(outer, start if empty else sequence(start, _loops(reduction, combine)))


def _start(stage: Stage, targets: tuple[Access, ...], init: tuple[Constant, ...], without: set[str]) -> Compute:
    values: tuple[Expression, ...] = tuple(
        cast(value, target.dtype) for value, target in zip(init, stage.targets, strict=True)
    )
    guards = tuple(g for g in stage.guards if not g.names() & without)
    return Compute(f"{stage.name}.init", targets, values, guards=guards)


def _scan(stage: Stage) -> Node:
    if stage.reducer is None or stage.init is None:
        raise LoopProgramError(1351, "a scan with a reducer needs an init", where=f"stage {stage.name}")
    (axis,) = (axis for axis in stage.axes if axis.kind == "scan")
    others = tuple(other for other in stage.axes if other.kind != "scan")
    single = len(stage.targets) == 1
    partials = [
        Buffer(f"{stage.name}.partial" + ("" if single else str(n)), (dim(1),), stage.accumulate or t.dtype, "register")
        for n, t in enumerate(stage.targets)
    ]
    cells = tuple(Access(partial.name, (dim(0),)) for partial in partials)
    names = (axis.name,)
    start = Compute(
        f"{stage.name}.init", cells, stage.init, guards=tuple(g for g in stage.guards if axis.name not in g.names())
    )
    combine = Compute(f"{stage.name}.step", cells, stage.values, stage.reducer, None, names, stage.guards)
    loads = tuple(Load(partial.name, (dim(0),), partial.dtype) for partial in partials)
    results = tuple(cast(load, target.dtype) for load, target in zip(loads, stage.targets, strict=True))
    targets = tuple(Access(target.name, stage.where) for target in stage.targets)
    store = Compute(stage.name, targets, results, guards=stage.guards)
    inner = sequence(store, combine) if stage.exclusive else sequence(combine, store)
    body: Node = sequence(start, Loop(axis.name, axis.extent, "serial", inner))
    for partial in reversed(partials):
        body = Storage(partial, body)
    return _loops(others, body)


def _loops(axes: tuple[Axis, ...], body: Node) -> Node:
    if body is EMPTY:
        return body
    for axis in reversed(axes):
        body = Loop(axis.name, axis.extent, "serial", body)
    return body
