"""Tensors out of nothing: constants, fills, ranges, identity matrices."""

from __future__ import annotations

import math

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim, product
from tilework.frontends.onnx.computed_sizes import counted_range, range_data_decide, sizes
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, Result
from tilework.frontends.onnx.operand import LARGEST_KNOWN, Operand, dim_array, from_array, from_dims
from tilework.frontends.onnx.shape_arithmetic import symbolic_range_length
from tilework.frontends.onnx.tensors import MOST_ELEMENTS, element_type
from tilework.frontends.onnx.words import is_outside, places
from tilework.graph.graph import Value


def _constant(node: OnnxNode) -> Operand:
    name = node.outputs[0]
    if node.given("value"):
        return from_array(name, node.tensor("value"))
    if node.given("value_float"):
        return from_array(name, np.array(node.number("value_float"), np.float32))
    if node.given("value_floats"):
        return from_array(name, np.array(node.numbers("value_floats"), np.float32))
    if node.given("value_int"):
        return from_array(name, np.array(node.integer("value_int"), np.int64))
    if node.given("value_ints"):
        return from_array(name, np.array(node.integers("value_ints"), np.int64))
    raise NodeFault(1115, "only constants of numbers are supported (no text, nothing sparse)")


def _filled(node: OnnxNode) -> Result:
    """A tensor of one number; a small one of integers is followed like a shape."""
    shape = sizes(node, 0, "the shape")
    array = node.tensor("value") if node.given("value") else np.zeros(1, np.float32)
    if array.size != 1:
        raise NodeFault(1108, f"attribute 'value' has {array.size} elements, it must have 1")
    total = product(shape)
    if any(e.is_constant and e.constant < 0 for e in shape):
        raise NodeFault(1119, f"the shape [{', '.join(map(str, shape))}] has a negative extent")
    if total.is_constant and total.constant > MOST_ELEMENTS:
        raise NodeFault(1124, f"the shape [{', '.join(map(str, shape))}] has {total} elements")
    dtype = dtypes.dtype_of(array)
    number = array.reshape(-1)[0]
    if (dtype.is_integer or dtype.kind == "boolean") and total.is_constant and total.constant <= LARGEST_KNOWN:
        entries = dim_array([dim(int(number))] * total.constant, tuple(e.constant for e in shape))
        return from_dims(node.outputs[0], entries, dtype)
    return node.emit.broadcast(node.emit.constant(array.reshape(())), shape)


def _range(node: OnnxNode) -> Value:
    """start, start + delta, ... below limit; the length must be known or a function of dims."""
    emit = node.emit
    dtype = node.operand(0).dtype
    if range_data_decide(node):
        return counted_range(node)
    if dtype.is_integer:
        start, limit, step = (node.one(place, f"the {what}") for place, what in enumerate(("start", "limit", "delta")))
        count = symbolic_range_length(start, limit, step)
        if count is None:
            raise (
                NodeFault(1119, "its step is 0")
                if step == 0
                else NodeFault(1116, f"the step {step} must be a constant")
            )
        count = node.symbols.simplify(count)
        if count.is_constant and count.constant > MOST_ELEMENTS:
            raise NodeFault(1124, f"it has {count} elements")
        found = emit.iota((count,), 0, dtype)
        if step != 1:
            found = emit.apply("multiply", found, step.constant)
        return found if start == 0 else emit.apply("add", found, emit.extent(start, dtype))
    first, last, delta = (node.number_input(place, "start, limit and delta") for place in range(3))
    length = math.ceil((last - first) / delta) if delta and math.isfinite((last - first) / delta) else -1
    if (length < 0 and not delta) or length > MOST_ELEMENTS or not all(map(math.isfinite, (first, last, delta))):
        raise NodeFault(1119, f"start {first}, limit {last}, delta {delta} make no range")
    numbers = emit.iota((max(0, length),), 0, dtype)
    return emit.apply("add", emit.apply("multiply", numbers, delta), first)


def _eye(node: OnnxNode) -> Value:
    operand, emit = node.operand(0), node.emit
    if operand.rank != 2:
        raise NodeFault(1119, f"the input {operand} must be a matrix")
    dtype = element_type(node.integer("dtype", 0)) if node.given("dtype") else operand.dtype
    rows, columns = (emit.iota(operand.shape, axis, dtypes.int64) for axis in (0, 1))
    offset = node.integer("k", 0)
    if offset:
        rows = emit.apply("add", rows, offset)
    return emit.convert(emit.compare("EQ", rows, columns), dtype)


def _extents(node: OnnxNode) -> tuple[Dim, ...]:
    """The extents of the first operand; those of strings from outside are told by their places."""
    operand = node.operand(0)
    if operand.words is not None and is_outside(operand) and not all(extent.is_constant for extent in operand.shape):
        places(node.emit, operand)
    return operand.shape


def _shape(node: OnnxNode) -> Operand:
    """The extents, or (since version 15) those from `start` to `end`."""
    shape = _extents(node)
    rank = len(shape)
    ends = (node.integer("start", 0), node.integer("end", rank))
    start, end = (min(max(e + rank if e < 0 else e, 0), rank) for e in ends)
    chosen = list(shape[start:end])
    return from_dims(node.outputs[0], dim_array(chosen, (len(chosen),)), dtypes.int64)


def _size(node: OnnxNode) -> Operand:
    return from_dims(node.outputs[0], dim_array([product(_extents(node))], ()), dtypes.int64)


CONVERTERS: dict[str, Converter] = {
    "Constant": _constant, "ConstantOfShape": _filled, "EyeLike": _eye, "Range": _range,
    "Shape": _shape, "Size": _size,
}  # fmt: skip
