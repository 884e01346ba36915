"""Rows that move along one dimension by lengths or places given for each batch: ReverseSequence, TensorScatter."""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula
from tilework.frontends.onnx.formula import extent as extent_of
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.positions import counted_from_front
from tilework.frontends.onnx.unify import equal
from tilework.graph.graph import Value


def _to_front(emit: Emitter, value: Value, first: int, second: int) -> tuple[Value, list[int]]:
    """Two dimensions moved to the front, and the permutation that moves them back."""
    rank = value.tensor.rank
    order = [first, second, *(axis for axis in range(rank) if axis not in (first, second))]
    return emit.transpose(value, order), [order.index(axis) for axis in range(rank)]


def _picked(emit: Emitter, value: Value, places: Value) -> Value:
    """value[b, places[b, t], ...]"""
    return emit.apply("gather_nd", value, emit.expand_dims(places, [2]), batch_dimensions=1)


def _per_batch(node: OnnxNode, position: int, batch: Dim, what: str) -> Value:
    """One integer for each batch, [batch, 1] of int64."""
    found = node.emit.convert(node.value(position), dtypes.int64)
    if found.tensor.rank != 1:
        raise NodeFault(1119, f"{what} are {found.type}, they must have one dimension")
    equal(node.symbols, found.tensor.shape[0], batch, f"the number of {what} and of batches")
    return node.emit.expand_dims(node.emit.assumed(found, (batch,)), [1])


def _reverse(node: OnnxNode) -> Value:
    """The first rows of each batch backwards, as many as its length says (0 to all); the others stay."""
    value, emit = node.value(0), node.emit
    batch_axis, time_axis = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if {batch_axis, time_axis} != {0, 1}:
        text = f"attributes 'batch_axis' and 'time_axis' are {batch_axis} and {time_axis}, they must be 0 and 1"
        raise NodeFault(1108, text)
    if value.tensor.rank < 2:
        raise NodeFault(1119, f"the input {value.type} must have two dimensions or more")
    moved, back = _to_front(emit, value, batch_axis, time_axis)
    batch, rows = moved.tensor.shape[:2]
    # a length is a position among rows + 1: one that is not becomes rows + 1, and row `rows` would have to be first
    lengths = counted_from_front(emit, _per_batch(node, 1, batch, "lengths"), rows + 1)
    lengths = emit.broadcast(lengths, (batch, rows))
    own = emit.iota((batch, rows), 1, dtypes.int64)
    mirrored = emit.apply("subtract", emit.apply("subtract", lengths, 1), own)
    places = emit.apply("select", emit.compare("LT", own, lengths), mirrored, own)
    return emit.transpose(_picked(emit, moved, places), back)


def _tensor_scatter(node: OnnxNode) -> Value:
    """A cache with rows replaced from a place on, for each batch its own; circular ones go on at the front.

    Every row of the result asks which row of the update it is. In linear mode the update must lie inside the cache:
    where it does not, all rows ask for one behind the update's last.
    """
    cache, update, emit = node.value(0), node.value(1), node.emit
    rank = cache.tensor.rank
    circular = node.choice("mode", "linear", ("linear", "circular")) == "circular"
    if update.tensor.rank != rank or rank < 2:
        raise NodeFault(1119, f"operands {cache.type} and {update.type} must have one rank, 2 or more")
    axis = node.axis(node.integer("axis", -2), rank)
    if axis == 0:
        raise NodeFault(1108, "attribute 'axis' names the dimension of batches")
    update = _with_extents_of(node, update, cache.tensor.shape, axis)
    new = update.tensor.shape[axis]
    if new == 0:
        return cache
    room = cache.tensor.shape[axis] - new
    if node.symbols.decide_at_least(room, 0) is False:
        raise NodeFault(1119, f"an update {update.type} is larger than the cache {cache.type}")
    moved, back = _to_front(emit, cache, 0, axis)
    rows, _ = _to_front(emit, update, 0, axis)
    batch, extent = moved.tensor.shape[:2]
    shape = (batch, extent)
    places = emit.iota(shape, 1, dtypes.int64)
    start: Value | None = None
    if node.has(2):
        start = _per_batch(node, 2, batch, "places")
        places = emit.apply("subtract", places, emit.broadcast(start, shape))
    if circular:
        places = emit.apply("floor_remainder", places, emit.extent(extent, dtypes.int64))
    last = emit.extent(new - 1, dtypes.int64)
    inside = emit.apply("and", emit.compare("GE", places, 0), emit.compare("LE", places, last))
    asked = emit.apply("clamp", emit.scalar(0, dtypes.int64), places, last)
    if start is not None and not circular:
        fits = (Formula(emit, start) >= 0) & (Formula(emit, start) <= extent_of(emit, room, dtypes.int64))
        asked = fits.select(Formula(emit, asked), extent_of(emit, new, dtypes.int64)).value
    picked = _picked(emit, rows, asked)
    if rank > 2:
        inside = emit.expand_dims(inside, range(2, rank))
    return emit.transpose(emit.apply("select", inside, picked, moved), back)


def _with_extents_of(node: OnnxNode, value: Value, shape: Sequence[Dim], but: int) -> Value:
    """The value with the extents of a shape in all dimensions but one."""
    wanted = list(shape)
    wanted[but] = value.tensor.shape[but]
    for axis, (one, other) in enumerate(zip(wanted, value.tensor.shape, strict=True)):
        equal(node.symbols, one, other, f"dimension {axis} of the cache and of the update")
    return node.emit.assumed(value, wanted)


CONVERTERS: dict[str, Converter] = {"ReverseSequence": _reverse, "TensorScatter": _tensor_scatter}
