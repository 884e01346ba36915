"""Normalisations, composed from means, variances and scales."""

from __future__ import annotations

from collections.abc import Sequence

from tilework.dims import dim
from tilework.dtypes import DType
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.tensors import element_type
from tilework.frontends.onnx.unify import require_divisible
from tilework.graph.graph import Value


def per_channel(emit: Emitter, parameter: Value, value: Value) -> Value:
    """One number per channel, shaped to broadcast along dimension 1."""
    if parameter.tensor.rank != 1:
        raise NodeFault(1119, f"{parameter.type} must have one dimension, an element per channel")
    shape = [dim(1)] * value.tensor.rank
    shape[1] = parameter.tensor.shape[0]
    return emit.reshape(parameter, shape)


def _at_least(value: Value, rank: int) -> None:
    if value.tensor.rank < rank:
        raise NodeFault(1119, f"the input {value.type} has too few dimensions, {rank} are needed")


def _centred(emit: Emitter, value: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """The mean, the deviation from it, and the variance over some axes (kept as 1)."""
    mean = emit.mean(value, axes)
    deviation = emit.apply("subtract", value, mean)
    return mean, deviation, emit.mean(emit.apply("multiply", deviation, deviation), axes)


def _inverse_deviation(emit: Emitter, variance: Value, epsilon: float) -> Value:
    return emit.apply("divide", 1.0, emit.apply("sqrt", emit.apply("add", variance, epsilon)))


def _stash_type(node: OnnxNode, value: Value) -> DType:
    """The type in which the statistics are computed."""
    wanted = element_type(node.integer("stash_type", 1))
    return wanted if wanted.bits > element(value).bits else element(value)


def _layer(node: OnnxNode) -> tuple[Value, Value, Value]:
    value, scale, emit = node.value(0), node.value(1), node.emit
    rank = value.tensor.rank
    axes = tuple(range(node.axis(node.integer("axis", -1), rank), rank))
    wide = emit.convert(value, _stash_type(node, value))
    mean, deviation, variance = _centred(emit, wide, axes)
    inverse = _inverse_deviation(emit, variance, node.number("epsilon", 1e-5))
    normal = emit.convert(emit.apply("multiply", deviation, inverse), element(value))
    found = emit.apply("multiply", normal, scale)
    if node.has(2):
        found = emit.apply("add", found, node.value(2))
    return found, mean, inverse


def _root_mean_square(node: OnnxNode) -> Value:
    value, scale, emit = node.value(0), node.value(1), node.emit
    rank = value.tensor.rank
    axes = tuple(range(node.axis(node.integer("axis", -1), rank), rank))
    wide = emit.convert(value, _stash_type(node, value))
    square = emit.mean(emit.apply("multiply", wide, wide), axes)
    inverse = _inverse_deviation(emit, square, node.number("epsilon", 1e-5))
    normal = emit.convert(emit.apply("multiply", wide, inverse), element(value))
    return emit.apply("multiply", normal, scale)


def _batch(node: OnnxNode) -> Value | tuple[Value, ...]:
    """Inference: fixed statistics, folded into one scale and one shift per channel."""
    value, emit = node.value(0), node.emit
    trains = node.flag("training_mode") if node.opset >= 14 else any(node.wants_output(p) for p in range(1, 5))
    if trains:
        return _batch_in_training(node)
    if not node.flag("spatial", True):
        raise NodeFault(1123, "attribute 'spatial' is 0; only 1 is supported")
    _at_least(value, 2)
    scale, bias, mean, variance = (emit.convert(node.value(p), element(value)) for p in range(1, 5))
    deviation = emit.apply("sqrt", emit.apply("add", variance, node.number("epsilon", 1e-5)))
    factor = emit.apply("divide", scale, deviation)
    shift = emit.apply("subtract", bias, emit.apply("multiply", mean, factor))
    scaled = emit.apply("multiply", value, per_channel(emit, factor, value))
    return emit.apply("add", scaled, per_channel(emit, shift, value))


def _batch_in_training(node: OnnxNode) -> tuple[Value, ...]:
    """Statistics of the batch; the running ones are moved towards them (and, before version 14, told as they are)."""
    value, emit = node.value(0), node.emit
    _at_least(value, 2)
    axes = [axis for axis in range(value.tensor.rank) if axis != 1]
    wide = emit.convert(value, element(node.value(3)))
    mean, deviation, variance = _centred(emit, wide, axes)
    inverse = _inverse_deviation(emit, variance, node.number("epsilon", 1e-5))
    scale, bias = (per_channel(emit, emit.convert(node.value(p), element(wide)), value) for p in (1, 2))
    normal = emit.apply("multiply", emit.apply("multiply", deviation, inverse), scale)
    found = emit.convert(emit.apply("add", normal, bias), element(value))
    momentum = node.number("momentum", 0.9)
    told: list[Value] = []
    batch = [emit.reshape(part, (value.tensor.shape[1],)) for part in (mean, variance)]
    for running, current in zip((node.value(3), node.value(4)), batch, strict=True):
        kept = emit.apply("multiply", running, momentum)
        told.append(emit.apply("add", kept, emit.apply("multiply", current, 1.0 - momentum)))
    return (found, *told, *batch)


def _instance(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    _at_least(value, 3)
    _, deviation, variance = _centred(emit, value, range(2, value.tensor.rank))
    inverse = _inverse_deviation(emit, variance, node.number("epsilon", 1e-5))
    factor = emit.apply("multiply", inverse, per_channel(emit, node.value(1), value))
    return emit.apply("add", emit.apply("multiply", deviation, factor), per_channel(emit, node.value(2), value))


def _group(node: OnnxNode) -> Value:
    """Statistics per group of channels; scale and shift per group before version 21, per channel since."""
    value, emit = node.value(0), node.emit
    _at_least(value, 3)
    groups = node.integer("num_groups")
    batch, channels, *spatial = value.tensor.shape
    if groups < 1:
        raise NodeFault(1108, f"attribute 'num_groups' is {groups}, it must be positive")
    if node.opset >= 21 and node.value(1).tensor.rank == 1:  # scales say how many channels there are
        told = node.value(1).tensor.shape[0]
        if told.is_constant and not channels.is_constant:
            value = emit.shaped(value, (batch, told, *spatial), "the input")
            channels = told
    inside = require_divisible(channels, groups, "the number of channels")
    wide = emit.convert(value, _stash_type(node, value) if node.opset >= 21 else element(value))
    split = emit.reshape(wide, (batch, groups, inside, *spatial))
    _, deviation, variance = _centred(emit, split, range(2, split.tensor.rank))
    inverse = _inverse_deviation(emit, variance, node.number("epsilon", 1e-5))
    normal = emit.convert(emit.apply("multiply", deviation, inverse), element(value))
    scale, bias = node.value(1), node.value(2)
    if node.opset < 21:
        found = emit.apply("multiply", normal, per_channel(emit, scale, split))
        return emit.reshape(emit.apply("add", found, per_channel(emit, bias, split)), value.tensor.shape)
    whole = emit.reshape(normal, value.tensor.shape)
    found = emit.apply("multiply", whole, per_channel(emit, scale, whole))
    return emit.apply("add", found, per_channel(emit, bias, whole))


def _by_norm(node: OnnxNode) -> Value:
    """x divided by its norm along an axis; 0 where the norm is."""
    value, emit = node.value(0), node.emit
    axis = node.axis(node.integer("axis", -1), value.tensor.rank)
    order = node.integer("p", 2)
    if order not in (1, 2):
        raise NodeFault(1123, f"attribute 'p' is {order}; supported: 1, 2")
    power = emit.apply("abs", value) if order == 1 else emit.apply("multiply", value, value)
    norm = emit.reduce(power, (axis,), "sum")
    if order == 2:
        norm = emit.apply("sqrt", norm)
    quotient = emit.apply("divide", value, norm)
    none = emit.broadcast(emit.compare("EQ", norm, 0.0), value.tensor.shape)
    return emit.apply("select", none, emit.zeros_like(value), quotient)


def _mean_variance(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    axes = node.axes(node.integers("axes", (0, 2, 3)), value.tensor.rank)
    _, deviation, variance = _centred(emit, value, axes)
    return emit.apply("divide", deviation, emit.apply("add", emit.apply("sqrt", variance), 1e-9))


def _local_response(node: OnnxNode) -> Value:
    """x / (bias + alpha / size * sum of squares over neighbouring channels) ** beta."""
    value, emit = node.value(0), node.emit
    _at_least(value, 2)
    size = node.integer("size")
    if not 0 < size < 2**20:
        raise NodeFault(1108, f"attribute 'size' is {size}, it must be positive")
    ones = (1,) * value.tensor.rank
    window = tuple(size if axis == 1 else 1 for axis in range(value.tensor.rank))
    padding = tuple(
        (dim((size - 1) // 2), dim(size - 1 - (size - 1) // 2)) if axis == 1 else (dim(0), dim(0))
        for axis in range(value.tensor.rank)
    )
    total = emit.apply(
        "reduce_window", emit.apply("multiply", value, value), window_dimensions=window, window_strides=ones,
        padding=padding, base_dilations=ones, window_dilations=ones, reducer="sum",
    )  # fmt: skip
    scaled = emit.apply("multiply", total, node.number("alpha", 1e-4) / size)
    base = emit.apply("add", scaled, node.number("bias", 1.0))
    return emit.apply("divide", value, emit.apply("power", base, node.number("beta", 0.75)))


CONVERTERS: dict[str, Converter] = {
    "BatchNormalization": _batch, "GroupNormalization": _group, "InstanceNormalization": _instance,
    "LRN": _local_response, "LayerNormalization": _layer, "LpNormalization": _by_norm,
    "MeanVarianceNormalization": _mean_variance, "RMSNormalization": _root_mean_square,
}  # fmt: skip
