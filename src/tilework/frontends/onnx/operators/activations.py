"""Activation functions, each composed from elementary operators."""

from __future__ import annotations

import math

import numpy as np

from tilework.frontends.onnx.broadcasting import spread
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, finite
from tilework.frontends.onnx.operators.normalizations import per_channel
from tilework.graph.graph import Value


def _relu(node: OnnxNode) -> Value:
    return node.emit.apply("maximum", node.value(0), 0)


def _leaky(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    scaled = emit.apply("multiply", value, node.number("alpha", 0.01))
    return emit.apply("select", emit.compare("LT", value, 0.0), scaled, value)


def _parametric(node: OnnxNode) -> Value:
    value, slope, emit = node.value(0), node.value(1), node.emit
    if node.opset < 7 and slope.tensor.rank == 1 and slope.tensor.size != 1:
        slope = per_channel(emit, slope, value)
    if slope.tensor.rank > value.tensor.rank:
        raise NodeFault(1119, f"the slope {slope.type} has more dimensions than the input {value.type}")
    slope = spread(emit, slope, value.tensor.shape[value.tensor.rank - slope.tensor.rank :])
    return emit.apply("select", emit.compare("LT", value, 0), emit.apply("multiply", value, slope), value)


def _thresholded(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    return emit.apply("select", emit.compare("GT", value, node.number("alpha", 1.0)), value, emit.zeros_like(value))


def _elu(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    curve = emit.apply("multiply", emit.apply("exponential_minus_one", value), node.number("alpha", 1.0))
    return emit.apply("select", emit.compare("LT", value, 0.0), curve, value)


def _selu(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    alpha = node.number("alpha", 1.67326319217681884765625)
    curve = emit.apply("multiply", emit.apply("exponential_minus_one", value), alpha)
    chosen = emit.apply("select", emit.compare("GT", value, 0.0), value, curve)
    return emit.apply("multiply", chosen, node.number("gamma", 1.05070102214813232421875))


def _celu(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    alpha = finite(node.number("alpha", 1.0), "attribute 'alpha'")
    if alpha == 0:
        raise NodeFault(1108, "attribute 'alpha' is 0")
    curve = emit.apply("exponential_minus_one", emit.apply("divide", value, alpha))
    below = emit.apply("minimum", emit.apply("multiply", curve, alpha), 0.0)
    return emit.apply("add", emit.apply("maximum", value, 0.0), below)


def gelu(emit: Emitter, value: Value, tanh: bool) -> Value:
    """x times the normal distribution's mass below x, exactly or by its approximation with tanh.

    The constants of the approximation are rounded to float32, in float64 too: so has the operator's body in ONNX, and
    so compute onnx.reference and ONNX Runtime.
    """
    if tanh:
        cube = emit.apply("multiply", emit.apply("multiply", value, value), value)
        inner = emit.apply("add", value, emit.apply("multiply", cube, float(np.float32(0.044715))))
        factor = math.sqrt(float(np.float32(2 / math.pi)))
        mass = emit.apply("tanh", emit.apply("multiply", inner, factor))
    else:
        mass = emit.apply("erf", emit.apply("multiply", value, math.sqrt(0.5)))
    return emit.apply("multiply", emit.apply("multiply", value, 0.5), emit.apply("add", mass, 1.0))


def _gelu(node: OnnxNode) -> Value:
    return gelu(node.emit, node.value(0), node.choice("approximate", "none", ("none", "tanh")) == "tanh")


def _hard_sigmoid(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    line = emit.apply("multiply", value, node.number("alpha", 0.2))
    line = emit.apply("add", line, node.number("beta", 0.5))
    return emit.apply("minimum", emit.apply("maximum", line, 0.0), 1.0)


def _hard_swish(node: OnnxNode) -> Value:
    """x times a hard sigmoid whose slope is 1/6 rounded to float32, in float64 too: so is it in the operator's body."""
    value, emit = node.value(0), node.emit
    line = emit.apply("add", emit.apply("multiply", value, float(np.float32(1 / 6))), 0.5)
    return emit.apply("multiply", value, emit.apply("minimum", emit.apply("maximum", line, 0.0), 1.0))


def softplus(emit: Emitter, value: Value) -> Value:
    """log(1 + exp(x)), finite wherever the result is."""
    small = emit.apply("log_plus_one", emit.apply("exponential", emit.apply("negate", emit.apply("abs", value))))
    return emit.apply("add", emit.apply("maximum", value, 0.0), small)


def _softplus(node: OnnxNode) -> Value:
    return softplus(node.emit, node.value(0))


def _softsign(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    return emit.apply("divide", value, emit.apply("add", emit.apply("abs", value), 1.0))


def _mish(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    return emit.apply("multiply", value, emit.apply("tanh", softplus(emit, value)))


def _swish(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    alpha = node.number("alpha", 1.0)
    inner = value if alpha == 1 else emit.apply("multiply", value, alpha)
    return emit.apply("multiply", value, emit.apply("logistic", inner))


def _shrink(node: OnnxNode) -> Value:
    """x + bias below -lambda, x - bias above lambda, 0 between."""
    value, emit = node.value(0), node.emit
    bias, limit = node.number("bias", 0.0), node.number("lambd", 0.5)
    middle = emit.zeros_like(value)
    low = emit.apply("select", emit.compare("LT", value, -limit), emit.apply("add", value, bias), middle)
    return emit.apply("select", emit.compare("GT", value, limit), emit.apply("subtract", value, bias), low)


CONVERTERS: dict[str, Converter] = {
    "Celu": _celu, "Elu": _elu, "Gelu": _gelu, "HardSigmoid": _hard_sigmoid, "HardSwish": _hard_swish,
    "LeakyRelu": _leaky, "Mish": _mish, "PRelu": _parametric, "Relu": _relu, "Selu": _selu, "Shrink": _shrink,
    "Softplus": _softplus, "Softsign": _softsign, "Swish": _swish, "ThresholdedRelu": _thresholded,
}  # fmt: skip
