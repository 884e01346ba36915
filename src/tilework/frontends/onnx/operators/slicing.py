"""Slices and padding, with ONNX's clamping of positions on symbolic extents."""

from __future__ import annotations

from collections.abc import Sequence

from tilework.dims import Dim, dim, maximum, minimum
from tilework.frontends.onnx.computed_sizes import data_decide, sliced
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.graph.graph import Value

TO_THE_END = 10**9
"""Ends from here on mean the end: no extent is as large, and a symbol bounded by one keeps that as a rule."""
MORE_THAN_MEMORY = 2**48
"""Elements of which no memory holds as many, whatever a bound says."""


def _slice(node: OnnxNode) -> Value:
    value = node.value(0)
    rank = value.tensor.rank
    if node.opset >= 10 and (data_decide(node, 1) or data_decide(node, 2)):
        count = len(node.operand(1).shape) and int(node.operand(1).shape[0])
        axes = node.fixed(3, "the axes") if node.has(3) else tuple(range(count))
        steps = node.fixed(4, "the steps") if node.has(4) else (1,) * count
        if node.operand(1).shape != node.operand(2).shape or not count == len(axes) == len(steps) or 0 in steps:
            raise NodeFault(1119, f"{node.operand(1)} starts, {node.operand(2)} ends, axes {axes} and steps {steps}")
        node.axes(axes, rank)
        return sliced(node, value, [node.axis(axis, rank) for axis in axes], steps)
    if node.opset >= 10:
        starts, ends = node.dims(1, "the starts"), node.dims(2, "the ends")
        axes = node.fixed(3, "the axes") if node.has(3) else tuple(range(len(starts)))
        steps = node.fixed(4, "the steps") if node.has(4) else (1,) * len(starts)
    else:
        starts = tuple(map(dim, node.integers("starts")))
        ends = tuple(map(dim, node.integers("ends")))
        axes = node.integers("axes", tuple(range(len(starts))))
        steps = (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise NodeFault(1119, f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    node.axes(axes, rank)
    return slice_of(node, value, [node.axis(axis, rank) for axis in axes], starts, ends, steps)


def slice_of(
    node: OnnxNode, value: Value, axes: Sequence[int], starts: Sequence[Dim], ends: Sequence[Dim], steps: Sequence[int]
) -> Value:
    """The part of a tensor that ONNX's Slice names; backward steps are a slice turned round."""
    shape = value.tensor.shape
    first: list[Dim] = [dim(0)] * len(shape)
    last: list[Dim] = list(shape)
    strides = [1] * len(shape)
    backward: list[int] = []
    simplify = node.symbols.simplify
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        extent = shape[axis]
        if step == 0:
            raise NodeFault(1119, "a step is 0")
        if step > 0:
            first[axis] = _clamped(node, start, extent, is_start=True)
            last[axis] = simplify(maximum(first[axis], _clamped(node, end, extent, is_start=False)))
            strides[axis] = min(step, 2**31)
            continue
        begin = _clamped_backward(node, start, extent, is_start=True)
        stop = _clamped_backward(node, end, extent, is_start=False)
        stride = min(-step, 2**31)
        count = simplify(maximum(0, (begin - stop).ceildiv(stride)))
        strides[axis] = stride
        backward.append(axis)
        if count == 0:
            last[axis] = dim(0)
            continue
        # from the last element picked to the first one; of none, an empty range that lies inside
        span = simplify(maximum(0, (count - 1) * stride + 1))
        first[axis] = simplify(begin + 1 - span)
        last[axis] = simplify(begin + 1)
    return node.emit.reverse(node.emit.slice(value, first, last, strides), backward)


def _from_front(node: OnnxNode, position: Dim, extent: Dim) -> Dim:
    """A position counted from the front; `NodeFault` 1116 where its sign is not known."""
    sign = node.symbols.decide_at_least(position, 0)
    if sign is None:
        raise NodeFault(1116, f"whether the position {position} counts from the front or the end is not known")
    return position if sign else extent + position


def _clamped(node: OnnxNode, position: Dim, extent: Dim, is_start: bool) -> Dim:
    """A start or end of a forward slice, brought into 0..extent.

    A free extent is bounded so that the position needs no clamping, where it is near an end (all but the first;
    see `NearPositions`) or stands for the end: the expressions stay linear, so that shifted slices have equal shapes,
    and a call outside the bound is refused with a message. Of a measured extent k: and :-k have equal shapes too, both
    as long as what lies beyond the first k elements.
    """
    symbols = node.symbols
    found = _from_front(node, position, extent)
    if position.is_constant and not extent.is_constant:
        place = position.constant
        if place >= TO_THE_END and (symbols.require_at_least(position - extent, 0) or place >= MORE_THAN_MEMORY):
            return extent
        if is_start and 0 < place < TO_THE_END and any(map(symbols.is_measured, extent.names())):
            return symbols.simplify(extent - maximum(0, extent - place))
        if (place < 0 or (is_start and 0 < place < TO_THE_END)) and symbols.may_assume_near(extent, abs(place)):
            symbols.require_at_least(extent, abs(place))
    return symbols.simplify(maximum(0, minimum(found, extent)))


def _clamped_backward(node: OnnxNode, position: Dim, extent: Dim, is_start: bool) -> Dim:
    """A start or end of a backward slice: a start is brought into 0..extent - 1, an end into -1..extent - 1."""
    symbols = node.symbols
    found = _from_front(node, position, extent)
    if position.is_constant and not extent.is_constant and position.constant >= TO_THE_END:
        symbols.require_at_least(position - extent, 0)
    if is_start:  # of an empty dimension the start is -1
        return symbols.simplify(minimum(extent - 1, maximum(0, found)))
    return symbols.simplify(maximum(-1, minimum(found, extent - 1)))


def _pad(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    rank = value.tensor.rank
    mode = node.choice("mode", "constant", ("constant", "reflect", "edge", "wrap"))
    if node.opset >= 11:
        pads = node.dims(1, "the pads")
        given = node.fixed(3, "the axes") if node.has(3) else tuple(range(rank))
    else:
        pads = tuple(map(dim, node.integers("pads" if node.opset > 1 else "paddings")))
        given = tuple(range(rank))
    axes = [node.axis(axis, rank) for axis in given]
    if len(pads) != 2 * len(axes) or len(set(axes)) != len(axes):
        raise NodeFault(1119, f"{len(pads)} pads for axes {list(given)}")
    low, high = [dim(0)] * rank, [dim(0)] * rank
    for place, axis in enumerate(axes):
        low[axis], high[axis] = pads[place], pads[place + len(axes)]
    if mode == "constant":
        return emit.pad(value, _filler(node, value), low, high)
    # what is cut off is cut first; the rest is padded
    zero = dim(0)
    cut = emit.slice(
        value, [node.symbols.simplify(maximum(zero, -p)) for p in low],
        [node.symbols.simplify(e - maximum(zero, -p)) for e, p in zip(value.tensor.shape, high, strict=True)],
    )  # fmt: skip
    before = tuple(node.symbols.simplify(maximum(zero, p)) for p in low)
    after = tuple(node.symbols.simplify(maximum(zero, p)) for p in high)
    if all(p == 0 for p in (*before, *after)):
        return cut
    return emit.apply("pad_reflect", cut, low=before, high=after, mode=mode)


def _filler(node: OnnxNode, value: Value) -> Value | float:
    if node.opset < 11:
        return node.number("value", 0.0)
    if not node.has(2):
        return 0
    filler = node.value(2)
    return node.emit.convert(node.emit.reshape(filler, ()), value.tensor.dtype)


CONVERTERS: dict[str, Converter] = {"Pad": _pad, "Slice": _slice}
