"""Index notation: stages that define arrays element by element.

A `Stage` names axes (parallel, reduction or scan) and says what each point computes. A `Computation` is a list of
stages; its default loop program is the plain nest of each, in order (`compute.plain.plain_program`).

    rows, columns, k = parallel("i", M), parallel("j", N), reduction("k", K)
    c = Stage("c", (c_buffer,), (rows, columns, k), values=(a[i, k] * b[k, j],), reducer=sum)
"""

from __future__ import annotations

from typing import Literal

from tilework.dims import Dim, Symbol, dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass, field
from tilework.loops.expressions import Constant, Expression
from tilework.loops.program import Buffer, Reducer

AxisKind = Literal["parallel", "reduction", "scan"]


@dataclass(frozen=True)
class Axis:
    """A named iteration range 0 .. extent - 1. A `scan` axis is an order: each point may read the one before it."""

    name: str
    extent: Dim
    kind: AxisKind = "parallel"


@dataclass(frozen=True, eq=False)
class Stage:
    """One statement over a box of axes: `targets[index] = values`, reduced over the reduction axes.

    `index` says where each target is written (one tuple of dims for all targets); by default the parallel and scan axes
    in order. Writes are unique, or combined by the `reducer` (a scatter: `index` holds loaded elements and `init` is
    None, so that old contents matter). A scan stage has `reducer` and `init`: along its scan axis each point
    combines the value with the result of the point before (the first with `init`); `exclusive` keeps the result before
    combining.
    """

    name: str
    targets: tuple[Buffer, ...]
    axes: tuple[Axis, ...]
    values: tuple[Expression, ...]
    index: tuple[Dim, ...] | None = None
    reducer: Reducer | None = None
    init: tuple[Constant, ...] | None = None
    guards: tuple[Dim, ...] = ()
    accumulate: DType | None = None
    exclusive: bool = False

    @property
    def target(self) -> Buffer:
        """The only target of a stage that has one."""
        (only,) = self.targets
        return only

    @property
    def where(self) -> tuple[Dim, ...]:
        """The index it writes to."""
        if self.index is not None:
            return self.index
        return tuple(dim(axis.name) for axis in self.axes if axis.kind != "reduction")

    @property
    def reduction_axes(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.axes if axis.kind == "reduction")


@dataclass(frozen=True, eq=False)
class Computation:
    """Stages in order, between input and output buffers; other targets are temporaries. All names are unique."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    stages: tuple[Stage, ...]
    symbols: tuple[Symbol, ...] = field(default=())

    @property
    def temporaries(self) -> tuple[Buffer, ...]:
        outside = {b.name for b in (*self.inputs, *self.outputs)}
        found = {b.name: b for stage in self.stages for b in stage.targets if b.name not in outside}
        return tuple(found.values())
