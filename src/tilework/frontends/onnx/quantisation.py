"""Quantised numbers: an integer q stands for (q - zero point) * scale. What converters of quantised operators share.

Sums of products are exact: 32-bit integers, to which the zero points contribute what a sum over one operand gives, so
that the products themselves are of the narrow numbers as they are stored. Requantisation multiplies a sum by one factor
in float32, rounds to nearest even, and adds the zero point, as ONNX Runtime does it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilework import dtypes
from tilework.dims import dim
from tilework.dtypes import DType
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.operand import Operand, from_array
from tilework.frontends.onnx.unify import equal, require_one
from tilework.graph.graph import Array, Value


# -- scales and zero points --------------------------------------------------------------------------------------------
def is_zero(operand: Operand | None) -> bool:
    """Whether a zero point is left out or a constant of zeros."""
    return operand is None or (operand.array is not None and not np.any(operand.array))


def scalar(node: OnnxNode, position: int, what: str) -> Value:
    """A scale or zero point of a whole tensor, without dimensions."""
    found = node.value(position)
    require_one(node.symbols, found.tensor.shape, what)
    return node.emit.reshape(found, ())


def along(emit: Emitter, parameter: Value, value: Value, axis: int, what: str) -> Value:
    """A scale or zero point as it broadcasts against a tensor: one for all, or one for each element of an axis."""
    if parameter.tensor.rank == 0 or (parameter.tensor.rank == 1 and parameter.tensor.size == 1):
        return emit.reshape(parameter, ())
    if parameter.tensor.rank != 1:
        raise NodeFault(1119, f"{what}, {parameter.type}, must have at most one dimension")
    if axis >= value.tensor.rank:
        raise NodeFault(1119, f"{what} has one element for each of dimension {axis}, which {value.type} does not have")
    extent = value.tensor.shape[axis]
    equal(emit.symbols, parameter.tensor.shape[0], extent, f"the elements of {what} and dimension {axis} of the input")
    shape = [extent if a == axis else dim(1) for a in range(value.tensor.rank)]
    return emit.reshape(emit.assumed(parameter, (extent,)), shape)


def blocked(emit: Emitter, parameter: Value, value: Value, axis: int, block: int, what: str) -> Value:
    """A scale or zero point of which each serves `block` neighbours of a dimension, repeated for each of them."""
    shape, own = value.tensor.shape, parameter.tensor.shape
    if block < 0 or parameter.tensor.rank != value.tensor.rank:
        raise NodeFault(1119, f"{what}, {parameter.type}, and blocks of {block} do not fit {value.type}")
    for place, (extent, found) in enumerate(zip(shape, own, strict=True)):
        wanted = -(-extent // block) if place == axis else extent
        equal(emit.symbols, found, wanted, f"dimension {place} of {what} and of the input (in blocks of {block})")
    wide = emit.expand_dims(parameter, [axis + 1])
    repeated = emit.broadcast(wide, (*wide.tensor.shape[: axis + 1], block, *wide.tensor.shape[axis + 2 :]))
    flat = emit.reshape(repeated, (*own[:axis], own[axis] * block, *own[axis + 1 :]))
    return emit.slice_axis(flat, axis, 0, shape[axis])


# -- from and to numbers -----------------------------------------------------------------------------------------------
def dequantised(emit: Emitter, value: Value, scale: Value, zero: Value | None) -> Value:
    """(q - zero point) * scale, in the scale's type; scale and zero point broadcast against the integers."""
    wide = emit.convert(value, dtypes.int32 if element(value).is_integer else dtypes.float32)
    if zero is not None:
        wide = emit.apply("subtract", wide, emit.convert(zero, element(wide)))
    return emit.apply("multiply", emit.convert(wide, element(scale)), scale)


def saturated(emit: Emitter, scaled: Value, zero: Value | None, dtype: DType) -> Value:
    """A number in units of the scale, rounded to nearest even, moved by the zero point and saturated.

    A NaN (which a scale of 0 makes of 0) becomes 0.
    """
    found = emit.convert(emit.apply("round_nearest_even", scaled), dtypes.float32)
    if zero is not None:
        found = emit.apply("add", found, emit.convert(zero, dtypes.float32))
    low, high = dtypes.integer_range(dtype)
    return emit.convert(emit.apply("minimum", emit.apply("maximum", found, low), high), dtype)


def quantised(emit: Emitter, value: Value, scale: Value, zero: Value | None, dtype: DType) -> Value:
    """A tensor divided by the scale, in integers of `dtype`."""
    return saturated(emit, emit.apply("divide", value, scale), zero, dtype)


def requantised(emit: Emitter, total: Value, factor: Value, zero: Value | None, dtype: DType) -> Value:
    """Sums of 32 bits, times one factor in float32, in integers of `dtype`."""
    return saturated(emit, emit.apply("multiply", emit.convert(total, dtypes.float32), factor), zero, dtype)


def factor(emit: Emitter, left: Value, right: Value, result: Value) -> Value:
    """left scale * right scale / result scale, in float32, in that order."""
    narrow = [emit.convert(scale, dtypes.float32) for scale in (left, right, result)]
    return emit.apply("divide", emit.apply("multiply", narrow[0], narrow[1]), narrow[2])


def dynamic(emit: Emitter, value: Value) -> tuple[Value, Value, Value]:
    """The tensor in 8 bits with scale and zero point from its own range, which always includes 0.

    The scale of nothing but zeros is 1, as in ONNX Runtime; the specification divides by 0 there.
    """
    axes = tuple(range(value.tensor.rank))
    high = emit.apply("maximum", emit.reduce(value, axes, "maximum", keep=False), 0.0)
    low = emit.apply("minimum", emit.reduce(value, axes, "minimum", keep=False), 0.0)
    scale = emit.apply("divide", emit.apply("subtract", high, low), 255.0)
    scale = emit.apply("select", emit.compare("EQ", scale, 0.0), emit.scalar(1.0, dtypes.float32), scale)
    offset = emit.apply("round_nearest_even", emit.apply("divide", emit.apply("negate", low), scale))
    zero = emit.apply("minimum", emit.apply("maximum", offset, 0.0), 255.0)
    narrow = emit.convert(zero, dtypes.uint8)
    return quantised(emit, value, scale, zero, dtypes.uint8), scale, narrow


# -- sums of products --------------------------------------------------------------------------------------------------
def centred(value: Operand, zero: Operand | None) -> tuple[Operand, Operand | None]:
    """Constant numbers less their constant zero point where that fits 8 bits with a sign: fewer sums are needed."""
    if zero is None or value.array is None or zero.array is None or is_zero(zero):
        return value, None if is_zero(zero) else zero
    try:
        found: Array = value.array.astype(np.int16) - zero.array.astype(np.int16)
    except ValueError:  # shapes that do not broadcast: whoever reads them says so
        return value, zero
    if found.shape != value.array.shape or found.size == 0 or found.min() < -128 or found.max() > 127:
        return value, zero
    return from_array(value.name, found.astype(np.int8)), None


def sums(emit: Emitter, value: Value, axes: Sequence[int]) -> Value:
    """Sums of an operand along some dimensions (which stay, with one element), as int32; known ones are constants."""
    array, around = None, emit
    while array is None and around is not None:
        array, around = around.builder.constant_value(value), around.around
    if array is not None:
        return emit.constant(array.sum(tuple(axes), dtype=np.int32, keepdims=True))
    return emit.reduce(emit.convert(value, dtypes.int32), axes, "sum")


def matrix_product(emit: Emitter, a: Value, p: Value | None, b: Value, q: Value | None) -> Value:
    """`numpy.matmul` of (a - p) and (b - q), 8 bits each, as int32: the product of a and b, less p times the sums of b,
    less q times the sums of a, and p q for each product. Zero points are scalars, or broadcast against rows of a
    ([..., M, 1]) and columns of b ([..., 1, N]).
    """
    if a.tensor.rank == 0 or b.tensor.rank == 0:
        raise NodeFault(1119, "an operand of a matrix product has no dimensions")
    one_a, one_b = a.tensor.rank == 1, b.tensor.rank == 1
    a = emit.expand_dims(a, [0]) if one_a else a
    b = emit.expand_dims(b, [1]) if one_b else b
    found = emit.matmul(a, b)
    wide = [None if zero is None else emit.convert(zero, dtypes.int32) for zero in (p, q)]
    for value, zero, axis in ((b, wide[0], b.tensor.rank - 2), (a, wide[1], a.tensor.rank - 1)):
        if zero is not None:
            found = emit.apply("subtract", found, emit.apply("multiply", zero, sums(emit, value, (axis,))))
    if wide[0] is not None and wide[1] is not None:
        both = emit.apply("multiply", wide[0], wide[1])
        depth = emit.extent(a.tensor.shape[-1], dtypes.int32)
        found = emit.apply("add", found, emit.apply("multiply", both, depth))
    rank = found.tensor.rank
    return emit.drop_dims(found, [*([rank - 2] if one_a else []), *([rank - 1] if one_b else [])])


def of_rows(emit: Emitter, parameter: Value, value: Value, what: str) -> Value:
    """A scale or zero point of a left matrix: one for all, one a row ([M]), or of the matrix's rank ([..., M, 1])."""
    return _of_matrix(emit, parameter, value, value.tensor.rank - 2, what)


def of_columns(emit: Emitter, parameter: Value, value: Value, what: str) -> Value:
    """A scale or zero point of a right matrix: one for all, one a column ([N]), or of its rank ([..., 1, N])."""
    return _of_matrix(emit, parameter, value, value.tensor.rank - 1, what)


def _of_matrix(emit: Emitter, parameter: Value, value: Value, axis: int, what: str) -> Value:
    if parameter.tensor.size == 1:
        return emit.reshape(parameter, ())
    if value.tensor.rank < 2:
        raise NodeFault(1119, f"{what}, {parameter.type}, must be one number beside {value.type}")
    if parameter.tensor.rank == 1:
        extent = value.tensor.shape[axis]
        equal(emit.symbols, parameter.tensor.shape[0], extent, f"the elements of {what} and dimension {axis}")
        parameter = emit.assumed(parameter, (extent,))
        return emit.expand_dims(parameter, [1]) if axis == value.tensor.rank - 2 else parameter
    if parameter.tensor.rank != value.tensor.rank:
        raise NodeFault(1119, f"{what}, {parameter.type}, does not fit {value.type}")
    return parameter
