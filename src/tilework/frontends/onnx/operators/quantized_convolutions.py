"""Convolutions of quantised images, in 8-bit integers with sums of 32 bits."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import Operand, from_array
from tilework.frontends.onnx.operators.convolutions import convolved
from tilework.frontends.onnx.operators.normalizations import per_channel
from tilework.frontends.onnx.quantisation import along, centred, factor, is_zero, requantised, scalar, sums
from tilework.graph.graph import Value


def _sums(node: OnnxNode, image: int, image_zero: int, weight: int, weight_zero: int) -> Value:
    """The convolution of image and weights, each less its zero point, as int32; padding is the image's zero point."""
    emit = node.emit
    weights, zero = centred(node.operand(weight), _weight_zero(node, weight, weight_zero))
    value, kernel = node.value(image), emit.emit(weights)
    # an image keeps its zero point, constants or not: the padding is made of it
    offset = node.has(image_zero) and not is_zero(node.operand(image_zero))
    if zero is not None:  # a zero point of weights that are not known, or do not fit 8 bits without it
        kernel = emit.apply("subtract", emit.convert(kernel, dtypes.int32), emit.convert(emit.emit(zero), dtypes.int32))
        value = emit.convert(value, dtypes.int32)
        if offset:
            value = emit.apply("subtract", value, emit.convert(scalar(node, image_zero, "a zero point"), dtypes.int32))
        return convolved(node, value, kernel)
    if not offset:
        return convolved(node, value, kernel)
    fill = scalar(node, image_zero, "the zero point of the input")
    found = convolved(node, value, kernel, fill)
    every = sums(emit, kernel, range(1, kernel.tensor.rank))
    taken = emit.apply("multiply", emit.convert(fill, dtypes.int32), every)
    shape = [kernel.tensor.shape[0] if a == 1 else dim(1) for a in range(found.tensor.rank)]
    return emit.apply("subtract", found, emit.reshape(taken, shape))


def _weight_zero(node: OnnxNode, weight: int, position: int) -> Operand | None:
    """The zero point of the weights, one for all or one for each output channel, shaped to broadcast against them."""
    if not node.has(position):
        return None
    found = node.operand(position)
    rank = node.operand(weight).rank
    if found.rank > 1:
        raise NodeFault(1119, f"the zero point of the weights, {found}, has more than one dimension")
    if found.array is not None:
        count = node.operand(weight).shape[0]
        if found.array.size not in (1, count):
            raise NodeFault(1119, f"the zero point of the weights, {found}, must have {count} elements")
        return from_array(
            found.name,
            found.array.reshape(-1, *(1,) * (rank - 1)) if found.array.size != 1 else found.array.reshape(()),
        )
    value = along(node.emit, node.value(position), node.value(weight), 0, "the zero point of the weights")
    return Operand(found.name, found.dtype, value.tensor.shape, value=value)


def _convolution_of_integers(node: OnnxNode) -> Value:
    return _sums(node, 0, 2, 1, 3)


def _quantised_convolution(node: OnnxNode) -> Value:
    """x, its scale and zero point; weights, their scale and zero point; scale and zero point of the result; bias."""
    emit = node.emit
    total = _sums(node, 0, 2, 3, 5)
    if node.has(8):
        total = emit.apply("add", total, per_channel(emit, node.value(8), total))
    weights = along(emit, node.value(4), total, 1, "the scale of the weights")
    scale = factor(emit, scalar(node, 1, "the scale of the input"), weights, scalar(node, 6, "the scale of the result"))
    zero = scalar(node, 7, "the zero point of the result")
    return requantised(emit, total, scale, zero, node.operand(7).dtype)


CONVERTERS: dict[str, Converter] = {"ConvInteger": _convolution_of_integers, "QLinearConv": _quantised_convolution}
