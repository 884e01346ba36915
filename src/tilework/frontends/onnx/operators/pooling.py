"""Pooling: the largest, the mean or a norm of every window, or of everything."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim, dim, maximum
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.windows import Pads, Window, fitting, read_window
from tilework.graph.graph import Value


def _read(node: OnnxNode) -> tuple[Value, Window]:
    value = node.value(0)
    rank = value.tensor.rank - 2
    if rank < 1:
        raise NodeFault(1119, f"the input {value.type} has no spatial dimension")
    if not node.given("kernel_shape"):
        raise NodeFault(1108, "attribute 'kernel_shape' is missing")
    window = read_window(node, value.tensor.shape[2:], node.positives("kernel_shape", rank), overhanging=True)
    return fitting(node, value, window), window


def _slide(node: OnnxNode, value: Value, window: Window, reducer: str, padding: Pads) -> Value:
    lead = value.tensor.rank - len(window.size)
    none = ((dim(0), dim(0)),) * lead
    ones = (1,) * lead
    return node.emit.apply(
        "reduce_window", value, window_dimensions=(*ones, *window.size), window_strides=(*ones, *window.strides),
        padding=(*none, *padding), base_dilations=(1,) * value.tensor.rank,
        window_dilations=(*ones, *window.dilations), reducer=reducer,
    )  # fmt: skip


def _largest(node: OnnxNode) -> tuple[Value, ...]:
    """The largest element of each window; of a window that lies in the padding altogether it is the least value of the
    type (minus infinity), at place 0.

    The standard does not say; onnx.reference has NaN, or fails, and ONNX Runtime refuses padding as wide as a window.
    """
    value, window = _read(node)
    found = _slide(node, value, window, "maximum", window.padded)
    return (found, _where_largest(node, value, found, window)) if node.wants_output(1) else (found,)


MOST_PLACES = 1024
"""Elements of a window up to which the place of the largest is found."""


def _where_largest(node: OnnxNode, value: Value, found: Value, window: Window) -> Value:
    """The place of each window's first largest element in the whole input, its rows or (storage_order) columns first.

    Going from a window's last element to its first, the one that equals the largest and comes last in that order stays.
    """
    emit, rank = node.emit, len(window.size)
    offsets = list(itertools.product(*map(range, window.size)))
    if len(offsets) > MOST_PLACES:
        raise NodeFault(1123, f"indices of windows of {len(offsets)} elements are not supported, {MOST_PLACES} are")
    shape, out = value.tensor.shape, found.tensor.shape
    if 0 in out:
        return emit.fill(0, dtypes.int64, out)
    filler = -math.inf if element(value).is_floating else dtypes.integer_range(element(value))[0]
    none = [dim(0)] * (value.tensor.rank - rank)
    low, high = ([*none, *(pads[side] for pads in window.padded)] for side in (0, 1))
    padded = emit.pad(value, filler, low, high)
    best = emit.fill(0, dtypes.int64, out)
    for offset in reversed(offsets):
        starts = [0, 0, *(o * d for o, d in zip(offset, window.dilations, strict=True))]
        limits = [*out[:2], *(
            maximum(start + (extent - 1) * stride + 1, start)
            for start, extent, stride in zip(starts[2:], out[2:], window.strides, strict=True)
        )]  # fmt: skip
        element_there = emit.slice(padded, starts, limits, (1, 1, *window.strides))
        same = emit.compare("EQ", element_there, found)
        if element(value).is_floating:
            both = emit.apply("and", emit.apply("is_nan", element_there), emit.apply("is_nan", found))
            same = emit.apply("or", same, both)
        positions: list[Value] = []
        for axis in range(rank):
            place = emit.iota((out[axis + 2],), 0, dtypes.int64)
            place = emit.apply("multiply", place, window.strides[axis])
            before = emit.extent(dim(offset[axis] * window.dilations[axis]) - low[axis + 2], dtypes.int64)
            place = emit.apply("add", place, before)
            positions.append(emit.reshape(place, [out[a] if a == axis + 2 else 1 for a in range(2 + rank)]))
            end = emit.extent(shape[axis + 2], dtypes.int64)
            for inside in (emit.compare("GE", positions[-1], 0), emit.compare("LT", positions[-1], end)):
                same = emit.apply("and", same, inside)
        best = emit.apply("select", same, _flat(node, positions, shape), best)
    return best


def _flat(node: OnnxNode, positions: list[Value], shape: Sequence[Dim]) -> Value:
    """The place in the whole input of an element of each image and channel."""
    emit = node.emit
    order = list(range(len(positions)))
    if node.integer("storage_order", 0):
        order.reverse()
    total, step = (
        emit.reshape(emit.iota((shape[0] * shape[1],), 0, dtypes.int64), (*shape[:2], *[1] * len(order))),
        dim(1),
    )
    for axis in order:
        step = step * shape[axis + 2]
    total = emit.apply("multiply", total, emit.extent(step, dtypes.int64))
    step = dim(1)
    for axis in reversed(order):
        total = emit.apply("add", total, emit.apply("multiply", positions[axis], emit.extent(step, dtypes.int64)))
        step = step * shape[axis + 2]
    return total


def _average(node: OnnxNode) -> Value:
    """The sum over the elements that a window covers, divided by their number.

    That is NaN for a window that lies in the padding altogether, as in onnx.reference; 0 where the padding counts.
    """
    value, window = _read(node)
    emit = node.emit
    total = _slide(node, value, window, "sum", window.padded)
    counts_padding = node.flag("count_include_pad")
    if not window.is_padded or (counts_padding and all(more == 0 for more in window.extension)):
        count = 1
        for extent in window.size:
            count *= extent
        return emit.apply("divide", total, count)
    covered: tuple[Dim, ...] = value.tensor.shape[2:]
    padding = window.padded
    if counts_padding:  # the padding counts, what rounding up added does not
        covered = tuple(e + low + high for e, (low, high) in zip(covered, window.padding, strict=True))
        padding = tuple((dim(0), more) for more in window.extension)
    ones = emit.fill(1, element(value), covered)
    return emit.apply("divide", total, _slide(node, ones, window, "sum", padding))


def _norm(node: OnnxNode) -> Value:
    value, window = _read(node)
    order = node.integer("p", 2)
    return _root(node, _slide(node, _power(node, value, order), window, "sum", window.padded), order)


def _power(node: OnnxNode, value: Value, order: int) -> Value:
    """The magnitude to the power of the norm's order."""
    emit = node.emit
    if not 1 <= order < 2**20:
        raise NodeFault(1108, f"attribute 'p' is {order}, it must be positive")
    if order == 2:
        return emit.apply("multiply", value, value)
    magnitude = emit.apply("abs", value)
    return magnitude if order == 1 else emit.apply("power", magnitude, order)


def _root(node: OnnxNode, total: Value, order: int) -> Value:
    if order == 1:
        return total
    return node.emit.apply("sqrt", total) if order == 2 else node.emit.apply("power", total, 1 / order)


def _spatial(value: Value) -> tuple[int, ...]:
    if value.tensor.rank < 2:
        raise NodeFault(1119, f"the input {value.type} has no channel dimension")
    return tuple(range(2, value.tensor.rank))


def _global_average(node: OnnxNode) -> Value:
    value = node.value(0)
    return node.emit.mean(value, _spatial(value))


def _global_largest(node: OnnxNode) -> Value:
    value = node.value(0)
    return node.emit.reduce(value, _spatial(value), "maximum")


def _global_norm(node: OnnxNode) -> Value:
    value = node.value(0)
    order = node.integer("p", 2)
    return _root(node, node.emit.reduce(_power(node, value, order), _spatial(value), "sum"), order)


CONVERTERS: dict[str, Converter] = {
    "AveragePool": _average, "GlobalAveragePool": _global_average, "GlobalLpPool": _global_norm,
    "GlobalMaxPool": _global_largest, "LpPool": _norm, "MaxPool": _largest,
}  # fmt: skip
