"""`reduce_window`: every window of a tensor combined into one element (pooling; StableHLO)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, Symbol, dim, product
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import integers_of, padding, padding_of, positive
from tilework.ops._stages import accumulate_for, accumulator, always_started, axes, load
from tilework.ops._window import WindowDimension, at_tap, spread
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.reduction._combine import REDUCERS, check_reducer, numpy_identity, numpy_reduce, wide_numpy
from tilework.ops.rules import Rule


class ReduceWindow(Operator):
    """`reduce_window(operand; window_dimensions, window_strides, padding, base_dilations, window_dilations, reducer)`.

    One entry per dimension of the operand (window 1 where it does not slide). Padding and the holes of a base dilation
    hold the reducer's identity; padding may be negative. Left out, strides and dilations are 1 and padding 0.
    16-bit floating sums are kept in float32.
    """

    name = "reduce_window"
    precision = PrecisionFacts(safe_low=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        rank = operand.rank
        if rank == 0:
            rule.stop(1223, "the operand is a scalar; a window needs a dimension to slide along")
        check_reducer(rule, operand, rule.choice("reducer", REDUCERS))
        sizes = positive(rule, "window_dimensions", rank)
        strides = positive(rule, "window_strides", rank)
        pads = padding(rule, attributes, "padding", rank)
        base, hole = positive(rule, "base_dilations", rank), positive(rule, "window_dilations", rank)
        rule.finish()
        shape = tuple(
            WindowDimension(operand.shape[d], dim(sizes[d]), strides[d], *pads[d], base[d], hole[d]).output
            for d in range(rank)
        )
        return (TensorType(shape, operand.dtype),)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand,), (result,) = operands, results
        dimensions = _dimensions(operand.shape, attributes)
        points = axes(result.name, result.shape)
        # Axes of extent 1 would only clutter the nest: dimensions in which each element is a window have none.
        still = [window.window == 1 and window == WindowDimension(window.operand, dim(1)) for window in dimensions]
        sliding = [d for d, alone in enumerate(still) if not alone] or [0]
        inner = axes(result.name, [dimensions[d].window for d in sliding], "k", "reduction")
        offsets = dict(zip(sliding, (dim(axis.name) for axis in inner), strict=True))
        index: list[Dim] = []
        guards: list[Dim] = []
        for d, window in enumerate(dimensions):
            place, needed = window.point(points[d].name, offsets.get(d, dim(0)))
            index.append(place)
            guards.extend(needed)
        wide = accumulator(result.dtype)
        total = reducer(str(attributes["reducer"]), wide)
        stage = Stage(
            f"{result.name}.{self.name}", (result,), (*points, *inner), (load(operand, index, wide),), reducer=total,
            init=total.identity, guards=tuple(guards), accumulate=accumulate_for(result.dtype),
        )  # fmt: skip
        return computation(self.name, operands, results, always_started(stage), symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (operand,), (result,) = operands, results
        name = attributes["reducer"]
        dimensions = _dimensions(tuple(map(dim, operand.shape)), attributes)
        identity = numpy_identity(name, result.dtype)
        wide = spread(operand.astype(wide_numpy(result.dtype)), dimensions, identity)
        taps = [at_tap(wide, dimensions, tap) for tap in np.ndindex(*(int(w.window) for w in dimensions))]
        return (numpy_reduce(np.stack(taps), (0,), name, result.dtype),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        (result,) = results
        assert isinstance(result, TensorType)
        work = result.size * product(integers_of(attributes, "window_dimensions"))
        return Counts(work, super().counts(operands, results, attributes).bytes)


def _dimensions(shape: tuple[Dim, ...], attributes: Mapping[str, Any]) -> tuple[WindowDimension, ...]:
    rank = len(shape)
    sizes, strides, base, hole = (
        integers_of(attributes, name, (1,) * rank)
        for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    )
    pads = padding_of(attributes, "padding", rank)
    return tuple(WindowDimension(shape[d], dim(sizes[d]), strides[d], *pads[d], base[d], hole[d]) for d in range(rank))


OPERATOR = ReduceWindow()
