"""Random numbers: functions of a key and of each element's place (Philox), so that nothing runs in order.

The key comes from the attribute `seed`; without one it is drawn at every call. Nodes have keys of their own unless
their seeds are equal, and so has every trip of a loop. ONNX promises no particular numbers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula
from tilework.frontends.onnx.node import OnnxNode, Result, element, finite
from tilework.frontends.onnx.positions import required
from tilework.frontends.onnx.random_keys import random_key
from tilework.frontends.onnx.tensors import MOST_ELEMENTS, element_type
from tilework.graph.graph import Value

_FRACTION = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits that a fraction below 1 has without being rounded."""


# -- fractions ---------------------------------------------------------------------------------------------------------
def _key(node: OnnxNode) -> Value:
    if not node.given("seed"):
        return random_key(node.emit, None)
    if node.operator == "Dropout":  # an integer, as of this operator alone
        return random_key(node.emit, node.integer("seed") % 2**64)
    (word,) = struct.unpack("<I", struct.pack("<f", node.number("seed")))
    return random_key(node.emit, int(word))


def _bits(node: OnnxNode, shape: Sequence[Dim], dtype: DType) -> Value:
    counter = node.emit.constant(np.zeros(1, np.uint64))
    return node.emit.apply("counter_bits", _key(node), counter, shape=tuple(shape), dtype=dtype)


def _fractions(node: OnnxNode, shape: Sequence[Dim], dtype: DType, kept: DType) -> Value:
    """Numbers of type `dtype` from 0 on and below 1, evenly spaced as finely as `kept` has them."""
    emit = node.emit
    count = _FRACTION[kept.name]
    wide = dtype == dtypes.float64
    bits = _bits(node, shape, dtypes.uint64 if wide else dtypes.uint32)
    high = emit.apply("shift_right_logical", bits, (64 if wide else 32) - count)
    signed = emit.convert(high, dtypes.int64 if wide else dtypes.int32)  # these convert in fewer instructions
    return emit.apply("multiply", emit.convert(signed, dtype), 2.0**-count)


def _computed(dtype: DType) -> DType:
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


def _floating(node: OnnxNode, default: DType) -> DType:
    dtype = element_type(node.integer("dtype")) if node.given("dtype") else default
    if dtype.name not in _FRACTION:
        raise NodeFault(1119, f"random numbers of type {dtype}; floating ones are possible")
    return dtype


def _shape(node: OnnxNode) -> tuple[Dim, ...]:
    shape = node.integers("shape")
    if any(extent < 0 for extent in shape):
        raise NodeFault(1108, f"attribute 'shape' is {list(shape)}, it holds a negative extent")
    if math.prod(shape) > MOST_ELEMENTS:
        raise NodeFault(1124, f"the shape {list(shape)} has {math.prod(shape)} elements")
    return tuple(map(dim, shape))


# -- the operators -----------------------------------------------------------------------------------------------------
def _uniform(node: OnnxNode, shape: Sequence[Dim], dtype: DType) -> Value:
    """low + (high - low) u, u from 0 on and below 1."""
    low, high = (finite(node.number(name, at), f"attribute {name!r}") for name, at in (("low", 0.0), ("high", 1.0)))
    emit = node.emit
    found = _fractions(node, shape, _computed(dtype), dtype)
    if high - low != 1:
        found = emit.apply("multiply", found, high - low)
    return emit.convert(emit.apply("add", found, low) if low else found, dtype)


def _normal(node: OnnxNode, shape: Sequence[Dim], dtype: DType) -> Value:
    """Box and Muller's method: sqrt(-2 log u) cos(2 pi v), u above 0."""
    mean, scale = (finite(node.number(name, at), f"attribute {name!r}") for name, at in (("mean", 0.0), ("scale", 1.0)))
    emit, wide = node.emit, _computed(dtype)
    both = _fractions(node, (dim(2), *shape), wide, wide)
    first, second = (emit.drop_dims(emit.slice_axis(both, 0, n, n + 1), [0]) for n in (0, 1))
    above = emit.apply("subtract", emit.scalar(1.0, wide), first)  # exact, and from 2**-24 to 1
    radius = emit.apply("sqrt", emit.apply("multiply", emit.apply("log", above), -2.0))
    found = emit.apply("multiply", radius, emit.apply("cosine", emit.apply("multiply", second, math.tau)))
    if scale != 1:
        found = emit.apply("multiply", found, scale)
    return emit.convert(emit.apply("add", found, mean) if mean else found, dtype)


def _bernoulli(node: OnnxNode) -> Value:
    """1 with the probability that an element is: where u is below it."""
    value, emit = node.value(0), node.emit
    wanted = element_type(node.integer("dtype")) if node.given("dtype") else element(value)
    wide = _computed(element(value))
    drawn = _fractions(node, value.tensor.shape, wide, wide)
    return emit.convert(emit.compare("LT", drawn, emit.convert(value, wide)), wanted)


def _dropout(node: OnnxNode) -> tuple[Result | None, ...]:
    """Inference: the input itself, and a mask that keeps everything. Training (since version 12): a share of the
    elements becomes 0, the others grow by as much.
    """
    if node.has(2) and node.constant_number(2) is None:
        text = "whether it drops ('training_mode') is known only when the model runs"
        raise NodeFault(1116, text, [node.operand(2)])
    operand, emit = node.operand(0), node.emit
    if not (node.has(2) and node.constant_number(2)) or node.constant_number(1) == 0:
        mask = emit.fill(True, dtypes.boolean, operand.shape) if node.wants_output(1) else None
        if mask is not None and node.opset < 10:
            mask = emit.convert(mask, operand.dtype)
        return operand, mask
    value = node.value(0)
    wide = _computed(element(value))
    ratio = _ratio(node, wide)
    kept = emit.compare("GE", _fractions(node, value.tensor.shape, wide, wide), ratio)
    grown = emit.apply("divide", emit.convert(value, wide), emit.apply("subtract", 1.0, ratio))
    found = emit.apply("select", kept, grown, emit.scalar(0.0, wide))
    return emit.convert(found, element(value)), kept


def _ratio(node: OnnxNode, wide: DType) -> Value:
    """The share that is dropped: 0 to 1, anything else ends the run."""
    emit = node.emit
    if not node.has(1):
        return emit.scalar(0.5, wide)
    known = node.constant_number(1)
    if known is not None and not 0 <= known <= 1:
        raise NodeFault(1119, f"the ratio is {known}, it must be from 0 to 1")
    ratio = Formula(emit, emit.convert(emit.reshape(node.value(1), ()), wide))
    if known is not None:
        return ratio.value
    return required(emit, ratio.value, ((ratio >= 0) & (ratio <= 1)).value, "ratio from 0 to 1")


def _multinomial(node: OnnxNode) -> Value:
    """Classes [batch, samples] by unnormalised log-probabilities [batch, classes].

    A class is drawn where u times the total first falls below the running sum of probabilities.
    """
    value, emit = node.value(0), node.emit
    samples = node.integer("sample_size", 1)
    wanted = element_type(node.integer("dtype", 6))
    if value.tensor.rank != 2:
        raise NodeFault(1119, f"the input {value.type} must have two dimensions")
    if not 0 <= samples < 2**31:
        raise NodeFault(1108, f"attribute 'sample_size' is {samples}, it must not be negative")
    if wanted not in (dtypes.int32, dtypes.int64):
        raise NodeFault(1108, f"attribute 'dtype' is {wanted}, it must be int32 or int64")
    wide = _computed(element(value))
    batch, classes = value.tensor.shape
    logits = emit.convert(value, wide)
    weights = emit.apply("exponential", emit.apply("subtract", logits, emit.reduce(logits, [1], "maximum")))
    running = emit.apply("cumulative", weights, dimension=1, reducer="sum")
    total = emit.slice_axis(running, 1, classes - 1, classes)
    drawn = emit.apply("multiply", _fractions(node, (batch, dim(samples)), wide, wide), total)
    passed = emit.compare("LE", emit.expand_dims(running, [1]), emit.expand_dims(drawn, [2]))
    found = emit.reduce(emit.convert(passed, dtypes.int32), [2], "sum", keep=False)
    last = emit.extent(classes - 1, dtypes.int32)
    return emit.convert(emit.apply("minimum", found, last), wanted)


CONVERTERS: dict[str, Converter] = {
    "Dropout": _dropout,
    "Bernoulli": _bernoulli, "Multinomial": _multinomial,
    "RandomNormal": lambda node: _normal(node, _shape(node), _floating(node, dtypes.float32)),
    "RandomNormalLike": lambda node: _normal(node, node.operand(0).shape, _floating(node, node.operand(0).dtype)),
    "RandomUniform": lambda node: _uniform(node, _shape(node), _floating(node, dtypes.float32)),
    "RandomUniformLike": lambda node: _uniform(node, node.operand(0).shape, _floating(node, node.operand(0).dtype)),
}  # fmt: skip
