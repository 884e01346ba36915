"""Pooling: the largest, the mean or a norm of every window, or of everything."""

from __future__ import annotations

from tilework.dims import Dim, dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.windows import Pads, Window, read_window
from tilework.graph.graph import Value


def _read(node: OnnxNode) -> tuple[Value, Window]:
    value = node.value(0)
    rank = value.tensor.rank - 2
    if rank < 1:
        raise NodeFault(1119, f"the input {value.type} has no spatial dimension")
    if not node.given("kernel_shape"):
        raise NodeFault(1108, "attribute 'kernel_shape' is missing")
    return value, read_window(node, value.tensor.shape[2:], node.positives("kernel_shape", rank))


def _slide(node: OnnxNode, value: Value, window: Window, reducer: str, padding: Pads) -> Value:
    lead = value.tensor.rank - len(window.size)
    none = ((dim(0), dim(0)),) * lead
    ones = (1,) * lead
    return node.emit.apply(
        "reduce_window", value, window_dimensions=(*ones, *window.size), window_strides=(*ones, *window.strides),
        padding=(*none, *padding), base_dilations=(1,) * value.tensor.rank,
        window_dilations=(*ones, *window.dilations), reducer=reducer,
    )  # fmt: skip


def _largest(node: OnnxNode) -> Value:
    if node.wants_output(1):
        raise NodeFault(1123, "the second output (indices) is not supported")
    value, window = _read(node)
    return _slide(node, value, window, "maximum", window.padded)


def _average(node: OnnxNode) -> Value:
    """The sum over the elements that a window covers, divided by their number."""
    value, window = _read(node)
    emit = node.emit
    total = _slide(node, value, window, "sum", window.padded)
    counts_padding = node.flag("count_include_pad")
    if not window.is_padded or (counts_padding and all(more == 0 for more in window.extension)):
        count = 1
        for extent in window.size:
            count *= extent
        return emit.apply("divide", total, count)
    covered: tuple[Dim, ...] = value.tensor.shape[2:]
    padding = window.padded
    if counts_padding:  # the padding counts, what rounding up added does not
        covered = tuple(e + low + high for e, (low, high) in zip(covered, window.padding, strict=True))
        padding = tuple((dim(0), more) for more in window.extension)
    ones = emit.fill(1, element(value), covered)
    return emit.apply("divide", total, _slide(node, ones, window, "sum", padding))


def _norm(node: OnnxNode) -> Value:
    value, window = _read(node)
    order = node.integer("p", 2)
    return _root(node, _slide(node, _power(node, value, order), window, "sum", window.padded), order)


def _power(node: OnnxNode, value: Value, order: int) -> Value:
    """The magnitude to the power of the norm's order."""
    emit = node.emit
    if not 1 <= order < 2**20:
        raise NodeFault(1108, f"attribute 'p' is {order}, it must be positive")
    if order == 2:
        return emit.apply("multiply", value, value)
    magnitude = emit.apply("abs", value)
    return magnitude if order == 1 else emit.apply("power", magnitude, order)


def _root(node: OnnxNode, total: Value, order: int) -> Value:
    if order == 1:
        return total
    return node.emit.apply("sqrt", total) if order == 2 else node.emit.apply("power", total, 1 / order)


def _spatial(value: Value) -> tuple[int, ...]:
    if value.tensor.rank < 2:
        raise NodeFault(1119, f"the input {value.type} has no channel dimension")
    return tuple(range(2, value.tensor.rank))


def _global_average(node: OnnxNode) -> Value:
    value = node.value(0)
    return node.emit.mean(value, _spatial(value))


def _global_largest(node: OnnxNode) -> Value:
    value = node.value(0)
    return node.emit.reduce(value, _spatial(value), "maximum")


def _global_norm(node: OnnxNode) -> Value:
    value = node.value(0)
    order = node.integer("p", 2)
    return _root(node, node.emit.reduce(_power(node, value, order), _spatial(value), "sum"), order)


CONVERTERS: dict[str, Converter] = {
    "AveragePool": _average, "GlobalAveragePool": _global_average, "GlobalLpPool": _global_norm,
    "GlobalMaxPool": _global_largest, "LpPool": _norm, "MaxPool": _largest,
}  # fmt: skip
