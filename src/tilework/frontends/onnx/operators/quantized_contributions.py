"""Quantised operators of the domain com.microsoft, which ONNX Runtime's quantiser and optimiser write.

Those that are computed element by element go by way of numbers: (q - zero point) * scale, the operator, quantised anew.
ONNX Runtime does the same, for one operand by a table of 256 results.
"""

from __future__ import annotations

from collections.abc import Callable

from tilework import dtypes
from tilework.dims import product
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element, finite
from tilework.frontends.onnx.operand import Operand, from_array, from_value
from tilework.frontends.onnx.operators.pooling import CONVERTERS as POOLING
from tilework.frontends.onnx.operators.quantization import CONVERTERS as STANDARD
from tilework.frontends.onnx.quantisation import (
    centred,
    dequantised,
    dynamic,
    factor,
    matrix_product,
    of_columns,
    quantised,
    requantised,
    scalar,
)
from tilework.graph.graph import Value


def _eight_bits(node: OnnxNode, *positions: int) -> None:
    for position in positions:
        dtype = node.operand(position).dtype
        if not dtype.is_integer or dtype.bits != 8:
            raise NodeFault(1119, f"input {position}, {node.operand(position)}, must hold 8-bit integers")


def _number(node: OnnxNode, position: int) -> Value:
    """The tensor at a position as numbers; its scale and zero point follow it."""
    _eight_bits(node, position)
    return dequantised(
        node.emit, node.value(position), scalar(node, position + 1, "a scale"), _zero(node, position + 2)
    )


def _zero(node: OnnxNode, position: int) -> Value | None:
    return scalar(node, position, "a zero point") if node.has(position) else None


def _narrow(node: OnnxNode, value: Value, like: int, position: int) -> Value:
    """Numbers as integers of the type of an input, by the scale at a position and the zero point behind it."""
    dtype = node.operand(position + 1).dtype if node.has(position + 1) else node.operand(like).dtype
    scale = scalar(node, position, "the scale of the result")
    return quantised(node.emit, value, scale, _zero(node, position + 1), dtype)


# -- element by element, and means -------------------------------------------------------------------------------------
def _binary(operator: str) -> Converter:
    """A, its scale and zero point; B, its scale and zero point; scale and zero point of the result."""
    return lambda node: _narrow(node, node.emit.apply(operator, _number(node, 0), _number(node, 3)), 0, 6)


def _unary(make: Callable[[OnnxNode, Value], Value]) -> Converter:
    """X, its scale and zero point; scale and zero point of the result."""
    return lambda node: _narrow(node, make(node, _number(node, 0)), 0, 3)


def _leaky(node: OnnxNode, x: Value) -> Value:
    slope = finite(node.number("alpha", 0.01), "attribute 'alpha'")
    emit = node.emit
    return emit.apply("select", emit.compare("GE", x, 0.0), x, emit.apply("multiply", x, slope))


def _global_mean(node: OnnxNode) -> Value:
    """The mean over the spatial dimensions, of exact sums."""
    _eight_bits(node, 0)
    emit, value = node.emit, node.value(0)
    rank = value.tensor.rank
    if rank < 3:
        raise NodeFault(1119, f"the input {value.type} must have three dimensions or more")
    axes = tuple(range(1, rank - 1)) if node.flag("channels_last") else tuple(range(2, rank))
    wide = emit.convert(value, dtypes.int32)
    zero = _zero(node, 2)
    if zero is not None:
        wide = emit.apply("subtract", wide, emit.convert(zero, dtypes.int32))
    total = emit.reduce(wide, axes, "sum")
    count = emit.extent(emit.count(value, axes), dtypes.float32)
    scale = emit.apply("multiply", scalar(node, 3, "the scale of the result"), count)
    by = emit.apply("divide", scalar(node, 1, "a scale"), scale)
    return requantised(emit, total, by, _zero(node, 4), element(value))


def _mean_of_windows(node: OnnxNode) -> Value:
    """The means of windows of numbers, quantised anew."""
    emit, value = node.emit, _number(node, 0)
    rank = value.tensor.rank
    last = node.flag("channels_last") and rank > 2
    if last:
        value = emit.transpose(value, (0, rank - 1, *range(1, rank - 1)))
    found = POOLING["AveragePool"](node.on([from_value("", value)]))
    assert isinstance(found, Value)
    return _narrow(node, emit.transpose(found, (0, *range(2, rank), 1)) if last else found, 0, 3)


def _softmax(node: OnnxNode) -> Value:
    """Along one dimension; of operator sets before 13 over all from that one on."""
    emit, value = node.emit, _number(node, 0)
    shape = value.tensor.shape
    axis = node.axis(node.integer("axis", -1), len(shape))
    if node.integer("opset", 13) >= 13:
        return _narrow(node, emit.apply("softmax", value, dimension=axis), 0, 3)
    rows = emit.reshape(value, (product(shape[:axis]), product(shape[axis:])))
    return _narrow(node, emit.reshape(emit.apply("softmax", rows, dimension=1), shape), 0, 3)


def _concatenated(node: OnnxNode) -> Value:
    """Scale and zero point of the result, then each tensor with its own."""
    parts, rest = divmod(len(node.operands) - 2, 3)
    if rest or parts < 1:
        raise NodeFault(1117, f"it has {len(node.operands)} inputs; two, and three for each tensor, are wanted")
    found: list[Value] = []
    for position in range(2, len(node.operands), 3):
        found.append(_narrow(node, _number(node, position), position, 0))
    return node.emit.concatenate(found, node.axis(node.integer("axis"), found[0].tensor.rank))


# -- products ----------------------------------------------------------------------------------------------------------
def _right(node: OnnxNode, position: int, zero: int) -> tuple[Value, Value | None]:
    """A right matrix and what its zero point is, one for all or one a column."""
    _eight_bits(node, position)
    held, offset = centred(node.operand(position), node.operand(zero) if node.has(zero) else None)
    value = node.emit.emit(held)
    placed = of_columns(node.emit, node.value(zero), value, "the zero point of B") if node.has(zero) else None
    return value, None if offset is None else placed


def _scaled(node: OnnxNode, total: Value, left: Value, right: Value, bias: int) -> Value:
    """Sums times both scales, and a bias."""
    emit = node.emit
    found = emit.apply("multiply", emit.convert(total, dtypes.float32), emit.apply("multiply", left, right))
    return emit.apply("add", found, node.value(bias)) if node.has(bias) else found


def _integers_to_numbers(node: OnnxNode) -> Value:
    """A, B, their scales, their zero points, a bias."""
    emit = node.emit
    _eight_bits(node, 0)
    b, q = _right(node, 1, 5)
    a, p = centred(node.operand(0), node.operand(4) if node.has(4) else None)
    offset = None if p is None else scalar(node, 4, "the zero point of A")
    total = matrix_product(emit, emit.emit(a), offset, b, q)
    scale = of_columns(emit, node.value(3), b, "the scale of B")
    return _scaled(node, total, scalar(node, 2, "the scale of A"), scale, 6)


def _dynamic_product(node: OnnxNode) -> Value:
    """Numbers A, B, its scale and zero point, a bias: A is quantised by its own range."""
    b, q = _right(node, 1, 3)
    narrow, scale, zero = dynamic(node.emit, node.value(0))
    total = matrix_product(node.emit, narrow, zero, b, q)
    return _scaled(node, total, scale, of_columns(node.emit, node.value(2), b, "the scale of B"), 4)


def _turned(emit: Emitter, operand: Operand, turn: bool) -> Operand:
    """A matrix, transposed on demand; one that is a constant stays one."""
    if not turn:
        return operand
    if operand.array is not None:
        return from_array(operand.name, operand.array.T)
    found = emit.transpose(emit.emit(operand), (1, 0))
    return Operand(operand.name, operand.dtype, found.tensor.shape, value=found)


def _quantised_gemm(node: OnnxNode) -> Value:
    """A, B, each with scale and zero point, C in units of alpha times both scales; scale and zero point of the result,
    which is of numbers without them.
    """
    _eight_bits(node, 0, 3)
    emit = node.emit
    if node.operand(0).rank != 2 or node.operand(3).rank != 2:
        raise NodeFault(1119, f"operands {node.operand(0)} and {node.operand(3)} must be matrices")
    a = emit.emit(_turned(emit, node.operand(0), node.flag("transA")))
    right = _turned(emit, node.operand(3), node.flag("transB"))
    held, q = centred(right, node.operand(5) if node.has(5) else None)
    b = emit.emit(held)
    offset = None if q is None else of_columns(emit, emit.emit(q), b, "the zero point of B")
    total = matrix_product(emit, a, _zero(node, 2), b, offset)
    if node.has(6):
        total = emit.apply("add", total, emit.broadcast(node.value(6), total.tensor.shape))
    scale = emit.apply("multiply", scalar(node, 1, "the scale of A"), finite(node.number("alpha", 1.0), "alpha"))
    columns = of_columns(emit, node.value(4), b, "the scale of B")
    if not node.has(7):
        return _scaled(node, total, scale, columns, 9)
    by = factor(emit, scale, columns, scalar(node, 7, "the scale of the result"))
    dtype = node.operand(8).dtype if node.has(8) else element(a)
    return requantised(emit, total, by, _zero(node, 8), dtype)


_OPERATORS: dict[str, Converter] = {
    "DequantizeLinear": STANDARD["DequantizeLinear"], "DynamicQuantizeMatMul": _dynamic_product,
    "MatMulIntegerToFloat": _integers_to_numbers, "QGemm": _quantised_gemm, "QLinearAdd": _binary("add"),
    "QLinearAveragePool": _mean_of_windows,
    "QLinearConcat": _concatenated, "QLinearGlobalAveragePool": _global_mean, "QLinearLeakyRelu": _unary(_leaky),
    "QLinearMul": _binary("multiply"),
    "QLinearSigmoid": _unary(lambda node, x: node.emit.apply("logistic", x)), "QLinearSoftmax": _softmax,
    "QuantizeLinear": STANDARD["QuantizeLinear"],
}  # fmt: skip

CONVERTERS: dict[str, Converter] = {f"com.microsoft::{name}": make for name, make in _OPERATORS.items()}
