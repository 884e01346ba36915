"""Operators whose results are as large as data decide: NonZero, Compress."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim, minimum, product
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.marked import marked_positions
from tilework.frontends.onnx.node import OnnxNode
from tilework.graph.graph import Value


def _nonzero(node: OnnxNode) -> Value:
    """int64[rank, m]: the positions of what is not 0, in row-major order."""
    emit, value = node.emit, node.value(0)
    shape = value.tensor.shape
    flat = emit.reshape(value, (value.tensor.size,))
    marks = flat if flat.tensor.dtype == dtypes.boolean else emit.compare("NE", flat, 0)
    found = marked_positions(emit, marks, "nonzero")
    if not shape:  # a scalar counts as a vector of one element, and has no coordinates (as numpy and the reference)
        return emit.fill(0, dtypes.int64, (0, found.tensor.shape[0]))
    return emit.concatenate([emit.expand_dims(row, [0]) for row in coordinates(emit, found, shape)], 0)


def coordinates(emit: Emitter, positions: Value, shape: tuple[Dim, ...]) -> list[Value]:
    """The coordinates of row-major positions in a box, one value a dimension."""
    rows: list[Value] = []
    for axis, extent in enumerate(shape):
        below = product(shape[axis + 1 :])
        row = positions
        if below != 1:
            row = emit.apply("divide", row, emit.apply("maximum", emit.extent(below, dtypes.int64), 1))
        if axis:
            row = emit.apply("remainder", row, emit.apply("maximum", emit.extent(extent, dtypes.int64), 1))
        rows.append(row)
    return rows


def _compress(node: OnnxNode) -> Value:
    """The slices along an axis (of all elements, without one) whose condition is true.

    A short condition ends early, and what is left over of a long one is dropped.
    """
    emit, value, condition = node.emit, node.value(0), node.value(1)
    if condition.tensor.rank != 1 or condition.tensor.dtype != dtypes.boolean:
        raise NodeFault(1119, f"the condition is {condition.type}, it must be a vector of booleans")
    if node.given("axis"):
        axis = node.axis(node.integer("axis"), value.tensor.rank)
    else:
        value, axis = emit.reshape(value, (value.tensor.size,)), 0
    used = node.symbols.simplify(minimum(condition.tensor.shape[0], value.tensor.shape[axis]))
    positions = marked_positions(emit, emit.slice_axis(condition, 0, 0, used), "chosen")
    return emit.apply("take", value, positions, dimension=axis)


CONVERTERS: dict[str, Converter] = {"NonZero": _nonzero, "Compress": _compress}
