"""Operators that sort: TopK."""

from __future__ import annotations

from tilework.dims import Dim, dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.selection import first_positions
from tilework.frontends.onnx.sorting import axis_back, last_axis, order_keys
from tilework.frontends.onnx.unify import require_one
from tilework.graph.graph import Value


def _top_k(node: OnnxNode) -> tuple[Value, Value]:
    """The k largest (smallest) along an axis and their positions, in order; of equal ones the first come first.

    NaN is the largest, as in numpy and PyTorch (the standard says nothing; ONNX Runtime's answer depends on where it
    stands). Where the order does not matter (`sorted=0`), they are in order too.
    """
    emit, value = node.emit, node.value(0)
    if not value.tensor.rank:
        raise NodeFault(1119, "the input has no dimensions")
    axis = node.axis(node.integer("axis", -1), value.tensor.rank)
    length = value.tensor.shape[axis]
    largest = node.flag("largest", True)
    count = _count(node, length)
    rows = last_axis(emit, value, axis)
    order = first_positions(emit, order_keys(emit, rows, descending=largest), count)
    found = emit.apply("take_along_axis", rows, order, dimension=rows.tensor.rank - 1)
    return axis_back(emit, found, axis), axis_back(emit, order, axis)


def _count(node: OnnxNode, length: Dim) -> Dim:
    """k, which the run may decide."""
    if node.opset < 10:
        count = dim(node.integer("k"))
    else:
        operand = node.operand(1)
        if operand.rank > 1 or not operand.dtype.is_integer:
            raise NodeFault(1119, f"k must be one integer, it is {operand}")
        require_one(node.symbols, operand.shape, "k")
        known = operand.known()
        if known is None:
            return node.emit.measured(node.value(1), "k", length.value)
        count = known.reshape(-1)[0]
    if count.is_constant and (count.constant < 0 or (length.is_constant and count.constant > length.constant)):
        raise NodeFault(1119, f"k is {count}, of a dimension of {length}")
    return count


CONVERTERS: dict[str, Converter] = {"TopK": _top_k}
