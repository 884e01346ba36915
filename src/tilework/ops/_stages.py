"""Small parts that definitions in index notation share: axes, loads, partial results in a wider type."""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.compute.notation import Axis, AxisKind
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
