"""Small parts that definitions in index notation share: axes, loads, partial results in a wider type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilework import dtypes
from tilework.compute.notation import Axis, AxisKind, Stage
from tilework.dims import Dim, IntLike, dim
from tilework.dtypes import DType
from tilework.loops.expressions import Expression, Load, cast
from tilework.loops.program import Buffer


def axes(owner: str, shape: Sequence[Dim], letter: str = "i", kind: AxisKind = "parallel") -> tuple[Axis, ...]:
    """One axis per dimension of a shape, called `<owner>.<letter><position>`."""
    return tuple(Axis(f"{owner}.{letter}{n}", extent, kind) for n, extent in enumerate(shape))


def at(*positions: Axis | IntLike) -> tuple[Dim, ...]:
    """An index from axes and integers."""
    return tuple(dim(p.name) if isinstance(p, Axis) else dim(p) for p in positions)


def load(buffer: Buffer, index: Sequence[Axis | IntLike], dtype: DType | None = None) -> Expression:
    """An element of a buffer, converted to `dtype` where one is given."""
    found = Load(buffer.name, at(*index), buffer.dtype)
    return found if dtype is None else cast(found, dtype)


def accumulator(dtype: DType) -> DType:
    """The type in which sums of this type are kept: float32 for narrower floating types, else the type itself."""
    return dtypes.float32 if dtype.is_floating and dtype.bits < 32 else dtype


def accumulate_for(dtype: DType) -> DType | None:
    """`Stage.accumulate` for a result of this type: None where partial results need no other type."""
    wide = accumulator(dtype)
    return None if wide == dtype else wide


def always_started(stage: Stage) -> list[Stage]:
    """A reduction whose result is written even where its guards hold nowhere.

    A guard that names no reduction axis holds back the start too. Where there is one, the start becomes a stage of its
    own, and partial results of a wider type than the target's are kept in a temporary that a third stage rounds.
    """
    reduction = {axis.name for axis in stage.reduction_axes}
    if stage.init is None or all(guard.names() & reduction for guard in stage.guards):
        return [stage]
    target = stage.target
    wide = target.dtype if stage.accumulate is None else stage.accumulate
    partial = target if wide == target.dtype else Buffer(f"{stage.name}.partial", target.shape, wide)
    over = axes(f"{stage.name}.start", target.shape)
    start = Stage(f"{stage.name}.start", (partial,), over, stage.init)
    combine = replace(stage, targets=(partial,), init=None, accumulate=None)
    if partial is target:
        return [start, combine]
    over = axes(f"{stage.name}.round", target.shape)
    return [start, combine, Stage(f"{stage.name}.round", (target,), over, (cast(load(partial, over), target.dtype),))]
