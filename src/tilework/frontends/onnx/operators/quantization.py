"""Quantisation: from numbers to narrow integers and back, and products of quantised matrices."""

from __future__ import annotations

from tilework import dtypes
from tilework.dtypes import DType
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.operators.elementwise import cast
from tilework.frontends.onnx.quantisation import (
    along,
    blocked,
    centred,
    dequantised,
    dynamic,
    factor,
    matrix_product,
    of_columns,
    of_rows,
    quantised,
    requantised,
    scalar,
)
from tilework.frontends.onnx.tensors import element_type
from tilework.graph.graph import Value


def _parameter(node: OnnxNode, position: int, value: Value, what: str) -> Value:
    """A scale or zero point as it broadcasts: per tensor, per element of an axis, or per block of an axis."""
    parameter = node.value(position)
    block = node.integer("block_size", 0)
    if parameter.tensor.rank == 0 or (parameter.tensor.rank == 1 and not block):
        per_axis = parameter.tensor.rank == 1 and parameter.tensor.size != 1
        axis = node.axis(node.integer("axis", 1), value.tensor.rank) if per_axis and value.tensor.rank > 1 else 0
        return along(node.emit, parameter, value, axis, what)
    if not block:
        raise NodeFault(1119, f"{what}, {parameter.type}, has more than one dimension, and attribute 'block_size' is 0")
    axis = node.axis(node.integer("axis", 1), value.tensor.rank)
    return blocked(node.emit, parameter, value, axis, block, what)


def _number_type(node: OnnxNode, name: str, scale: Value) -> DType:
    """The type that an attribute names, or that of the scale (float32 for scales that are no numbers of 16 bits)."""
    number, own = node.integer(name, 0), element(scale)
    found = element_type(number) if number else own if own.is_floating and own.bits >= 16 else dtypes.float32
    if not found.is_floating or found.bits < 16:
        raise NodeFault(1108, f"attribute {name!r} is {found}, it must be a floating-point type of 16 bits or more")
    return found


def _quantize(node: OnnxNode) -> Value:
    """saturate(round(x / scale) + zero point), divided in the type of the scale, or as `precision` says."""
    value, emit = node.value(0), node.emit
    chosen = node.integer("output_dtype", 0)
    wanted = element_type(chosen) if chosen else dtypes.uint8
    if node.has(2):
        if chosen and node.operand(2).dtype != wanted:
            raise NodeFault(1108, f"attribute 'output_dtype' is {wanted}, the zero point is {node.operand(2)}")
        wanted = node.operand(2).dtype
    scale = _parameter(node, 1, value, "the scale")
    kind = _number_type(node, "precision", scale)
    value, scale = emit.convert(value, kind), emit.convert(scale, kind)
    if not wanted.is_integer:
        return cast(node, emit.apply("divide", value, scale), wanted)
    zero = _parameter(node, 2, value, "the zero point") if node.has(2) else None
    return quantised(emit, value, scale, zero, wanted)


def _dequantize(node: OnnxNode) -> Value:
    """(q - zero point) * scale."""
    value, emit = node.value(0), node.emit
    scale = _parameter(node, 1, value, "the scale")
    wanted = _number_type(node, "output_dtype", scale)
    zero = _parameter(node, 2, value, "the zero point") if node.has(2) else None
    wide = scale if element(scale).bits > 16 else emit.convert(scale, dtypes.float32)
    return emit.convert(dequantised(emit, value, wide, zero), wanted)


def _dynamic_quantize(node: OnnxNode) -> tuple[Value, Value, Value]:
    return dynamic(node.emit, node.value(0))


# -- products ----------------------------------------------------------------------------------------------------------
def _product_of_integers(node: OnnxNode, left: tuple[int, int], right: tuple[int, int]) -> Value:
    """The product of the matrices at two positions, each less the zero point at another, as int32."""
    emit = node.emit
    values: list[Value] = []
    zeros: list[Value | None] = []
    for (matrix, offset), placed, side in ((left, of_rows, "left"), (right, of_columns, "right")):
        held, zero = centred(node.operand(matrix), node.operand(offset) if node.has(offset) else None)
        values.append(emit.emit(held))
        found = None
        if node.has(offset):  # its shape is checked also where it is 0
            found = placed(emit, node.value(offset), values[-1], f"the zero point of the {side} matrix")
        zeros.append(None if zero is None else found)
    return matrix_product(emit, values[0], zeros[0], values[1], zeros[1])


def _matmul_of_integers(node: OnnxNode) -> Value:
    return _product_of_integers(node, (0, 2), (1, 3))


def _quantised_matmul(node: OnnxNode) -> Value:
    """a, its scale and zero point; b, its scale and zero point; scale and zero point of the result."""
    emit = node.emit
    a, b = node.value(0), node.value(3)
    a_scale = of_rows(emit, node.value(1), a, "the scale of the left matrix")
    b_scale = of_columns(emit, node.value(4), b, "the scale of the right matrix")
    scale, wanted = scalar(node, 6, "the scale of the result"), node.operand(7).dtype
    zero = scalar(node, 7, "the zero point of the result")
    if all(kind.is_integer for kind in (element(a), element(b), wanted)):
        total = _product_of_integers(node, (0, 2), (3, 5))
        return requantised(emit, total, factor(emit, a_scale, b_scale, scale), zero, wanted)
    sides = [
        dequantised(emit, value, emit.convert(own, dtypes.float32), None) for value, own in ((a, a_scale), (b, b_scale))
    ]
    found = emit.apply("divide", emit.matmul(*sides), emit.convert(scale, dtypes.float32))
    return cast(node, found, wanted)


CONVERTERS: dict[str, Converter] = {
    "DequantizeLinear": _dequantize, "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_of_integers, "QLinearMatMul": _quantised_matmul, "QuantizeLinear": _quantize,
}  # fmt: skip
