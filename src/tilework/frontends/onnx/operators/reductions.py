"""Reductions, arg-reductions, softmax and running sums."""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.dims import product
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.node import OnnxNode, element, fixed_extent
from tilework.graph.graph import Value


def reduced_axes(node: OnnxNode, rank: int, input_since: int) -> tuple[int, ...]:
    """The axes of a reduction: an input since a version, an attribute before; all of them where none are named."""
    if node.opset >= input_since:
        axes = node.axes(node.fixed(1, "axes"), rank) if node.has(1) else ()
    else:
        axes = node.axes(node.integers("axes", ()), rank)
    if axes or (node.opset >= input_since and node.flag("noop_with_empty_axes")):
        return axes
    return tuple(range(rank))


def _reduce(reducer: str, input_since: int = 18) -> Converter:
    def convert(node: OnnxNode) -> Value:
        value = node.value(0)
        chosen = reducer
        if element(value).kind == "boolean":
            chosen = {"maximum": "or", "minimum": "and"}.get(reducer, reducer)
        axes = reduced_axes(node, value.tensor.rank, input_since)
        return node.emit.reduce(value, axes, chosen, node.flag("keepdims", True))

    return convert


def _mean(node: OnnxNode) -> Value:
    value = node.value(0)
    return node.emit.mean(value, reduced_axes(node, value.tensor.rank, 18), node.flag("keepdims", True))


def _sum_of(before: str, after: str) -> Converter:
    """A sum of squares, magnitudes or the like, with an operator on the elements and one on the sum."""

    def convert(node: OnnxNode) -> Value:
        value, emit = node.value(0), node.emit
        kind = element(value)
        if after:
            value = _floating(emit, value)
        axes = reduced_axes(node, value.tensor.rank, 18)
        if before == "square":
            value = emit.apply("multiply", value, value)
        elif before:
            value = emit.apply(before, value)
        total = emit.reduce(value, axes, "sum", node.flag("keepdims", True))
        return emit.convert(emit.apply(after, total), kind) if after else total

    return convert


def _floating(emit: Emitter, value: Value) -> Value:
    """What a logarithm is taken of: integers, which the specification allows, as float64; the fraction of the result is
    cut off, as ONNX Runtime does.
    """
    return value if element(value).is_floating else emit.convert(value, dtypes.float64)


def _euclidean(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    axes = reduced_axes(node, value.tensor.rank, 18)
    total = emit.reduce(emit.apply("multiply", value, value), axes, "sum", node.flag("keepdims", True))
    if element(total).is_floating:
        return emit.apply("sqrt", total)
    return emit.convert(emit.apply("sqrt", emit.convert(total, dtypes.float64)), element(total))


def _log_sum_exp(node: OnnxNode) -> Value:
    """The largest element is taken out first, so that nothing overflows; an infinite one is left in."""
    value, emit = node.value(0), node.emit
    kind = element(value)
    value = _floating(emit, value)
    axes = reduced_axes(node, value.tensor.rank, 18)
    top = emit.reduce(value, axes, "maximum")
    finite = emit.apply("select", emit.apply("is_inf", top), emit.zeros_like(top), top)
    total = emit.reduce(emit.apply("exponential", emit.apply("subtract", value, finite)), axes, "sum")
    found = emit.convert(emit.apply("add", emit.apply("log", total), finite), kind)
    return found if node.flag("keepdims", True) else emit.drop_dims(found, axes)


def _arg(direction: str) -> Converter:
    def convert(node: OnnxNode) -> Value:
        value = node.value(0)
        axis = node.axis(node.integer("axis", 0), value.tensor.rank)
        return node.emit.apply(
            "arg_reduce", value, dimension=axis, direction=direction, keep_dimensions=node.flag("keepdims", True),
            last=node.flag("select_last_index"),
        )  # fmt: skip

    return convert


def _over_axis(node: OnnxNode, value: Value) -> tuple[Value, int]:
    """The operand of a softmax and its dimension: before version 13 everything from the axis on is one dimension."""
    rank = value.tensor.rank
    if node.opset >= 13:
        return value, node.axis(node.integer("axis", -1), rank)
    given = node.integer("axis", 1)
    axis = rank if given == rank else node.axis(given, rank)
    if axis == rank - 1:
        return value, axis
    shape = value.tensor.shape
    return node.emit.reshape(value, (product(shape[:axis]), product(shape[axis:]))), 1


def _softmax(operator: str) -> Converter:
    def convert(node: OnnxNode) -> Value:
        value = node.value(0)
        flat, axis = _over_axis(node, value)
        return node.emit.reshape(node.emit.apply(operator, flat, dimension=axis), value.tensor.shape)

    return convert


def one_hot_of(emit: Emitter, places: Value, depth: Value, axis: int) -> Value:
    """Whether each position along an axis of `depth`'s shape is the one in `places` (which has extent 1 there)."""
    positions = emit.iota(depth.tensor.shape, axis, element(places))
    return emit.compare("EQ", places, positions)


def _hardmax(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    flat, axis = _over_axis(node, value)
    if flat.tensor.shape[axis] == 0:
        return value
    whole = flat
    if any(map(node.symbols.is_measured, flat.tensor.shape[axis].names())):
        # a size that data decide may be 0, where there is no largest: one more element that is never the first of them
        beyond = [int(place == axis) for place in range(flat.tensor.rank)]
        whole = emit.pad(flat, -math.inf, [0] * flat.tensor.rank, beyond)
    place = emit.apply("arg_reduce", whole, dimension=axis, direction="maximum", keep_dimensions=True, last=False)
    return emit.reshape(emit.convert(one_hot_of(emit, place, flat, axis), element(value)), value.tensor.shape)


def _cumulative(reducer: str) -> Converter:
    def convert(node: OnnxNode) -> Value:
        value = node.value(0)
        axis = node.axis(fixed_extent(node.one(1, "the axis"), "the axis"), value.tensor.rank)
        return node.emit.apply(
            "cumulative", value, dimension=axis, reducer=reducer, exclusive=node.flag("exclusive"),
            reverse=node.flag("reverse"),
        )  # fmt: skip

    return convert


CONVERTERS: dict[str, Converter] = {
    "ArgMax": _arg("maximum"), "ArgMin": _arg("minimum"), "CumProd": _cumulative("product"),
    "CumSum": _cumulative("sum"), "Hardmax": _hardmax, "LogSoftmax": _softmax("log_softmax"),
    "ReduceL1": _sum_of("abs", ""), "ReduceL2": _euclidean, "ReduceLogSum": _sum_of("", "log"),
    "ReduceLogSumExp": _log_sum_exp, "ReduceMax": _reduce("maximum"), "ReduceMean": _mean,
    "ReduceMin": _reduce("minimum"), "ReduceProd": _reduce("product"), "ReduceSum": _reduce("sum", 13),
    "ReduceSumSquare": _sum_of("square", ""), "Softmax": _softmax("softmax"),
}  # fmt: skip
