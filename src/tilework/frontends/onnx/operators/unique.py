"""Unique: distinct elements or slices, where each first stands, and how often."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import product
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.marked import marked_positions
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.sorting import order_keys, sorted_positions
from tilework.graph.graph import Value


def _unique(node: OnnxNode) -> tuple[Value, Value, Value, Value]:
    """Elements (without `axis`) or slices along it, in ascending order or that of their first occurrence.

    Zeros are equal, and so is NaN to NaN, as `numpy.unique` takes them; of equal ones the first is returned.
    """
    emit, value = node.emit, node.value(0)
    axis = node.axis(node.integer("axis"), value.tensor.rank) if node.given("axis") else None
    if axis is None:
        rows = emit.reshape(value, (value.tensor.size,))
        keys = order_keys(emit, rows)
        order = sorted_positions(emit, keys)
        fresh = _differs(emit, emit.apply("take", keys, order, dimension=0))
    else:
        rows = emit.transpose(value, [axis, *(d for d in range(value.tensor.rank) if d != axis)])
        shape = rows.tensor.shape
        keys = order_keys(emit, emit.reshape(rows, (shape[0], product(shape[1:]))))
        order = _row_order(emit, keys)
        fresh = _differs(emit, emit.apply("take", keys, order, dimension=0))
    starts = marked_positions(emit, fresh, "unique")
    groups = emit.apply(
        "subtract",
        emit.apply("cumulative", emit.convert(fresh, dtypes.int64), dimension=0, reducer="sum"),
        1,
    )
    first = emit.apply("take", order, starts, dimension=0)
    inverse = _placed(emit, emit.zeros_like(order), order, groups)
    ones = emit.fill(1, dtypes.int64, order.tensor.shape)
    counts = emit.apply("scatter_nd", emit.zeros_like(first), emit.expand_dims(groups, [1]), ones, reducer="sum")
    if not node.flag("sorted", True):
        marks = _placed(emit, emit.zeros_like(order), first, emit.fill(1, dtypes.int64, first.tensor.shape))
        ranks = emit.apply("cumulative", marks, dimension=0, reducer="sum", exclusive=True)
        number = emit.apply("take", ranks, first, dimension=0)
        inverse = emit.apply("take", number, inverse, dimension=0)
        counts = _placed(emit, emit.zeros_like(first), number, counts)
        first = _placed(emit, emit.zeros_like(first), number, first)
    found = emit.apply("take", rows, first, dimension=0)
    if axis is not None:
        found = emit.transpose(found, [*range(1, axis + 1), 0, *range(axis + 1, value.tensor.rank)])
    return found, first, inverse, counts


def _placed(emit: Emitter, empty: Value, places: Value, values: Value) -> Value:
    """A vector with `values[i]` at `places[i]`."""
    return emit.apply("scatter_nd", empty, emit.expand_dims(places, [1]), values, reducer="replace")


def _differs(emit: Emitter, keys: Value) -> Value:
    """Whether each of the sorted keys (a number, or a row of them) differs from the one before it; the first does."""
    length = keys.tensor.shape[0]
    here = emit.iota((length,), 0, dtypes.int64)
    before = emit.apply("take", keys, emit.apply("maximum", emit.apply("subtract", here, 1), 0), dimension=0)
    differs = emit.compare("NE", keys, before)
    if keys.tensor.rank == 2:
        any_of = emit.reduce(emit.convert(differs, dtypes.int32), (1,), "maximum", keep=False)
        differs = emit.compare("GT", any_of, 0)
    return emit.apply("or", differs, emit.compare("EQ", here, 0))


def _row_order(emit: Emitter, keys: Value) -> Value:
    """The positions of rows in lexicographic order: sorted by the last column first, each time keeping ties."""
    length, _ = keys.tensor.shape
    start = emit.iota((length,), 0, dtypes.int64)
    columns = emit.transpose(keys, (1, 0))
    inner = emit.inside("column")
    order = inner.builder.input(inner.builder.fresh("order"), dtypes.int64, length)
    column = inner.builder.input(inner.builder.fresh("column"), keys.tensor.dtype, length)
    places = sorted_positions(inner, inner.apply("take", column, order, dimension=0))
    body = inner.build([inner.apply("take", order, places, dimension=0)])
    how = {"state_count": 1, "reverse": True}
    (found,) = emit.builder.apply_all("scan", [start, columns], how, location=emit.location, subgraphs=[body])
    return found


CONVERTERS: dict[str, Converter] = {"Unique": _unique}
