"""Positions that are marked, gathered densely: how many there are is known only when the model runs."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.graph.graph import Value


def marked_positions(emit: Emitter, marks: Value, stem: str) -> Value:
    """int64[m]: the positions at which a boolean vector is true, ascending; m is a measured symbol.

    Counted first, then written: each position's rank is the number of marks before it.
    """
    (length,) = marks.tensor.shape
    ones = emit.convert(marks, dtypes.int64)
    ranks = emit.apply("cumulative", ones, dimension=0, reducer="sum", exclusive=True)
    count = emit.measured(emit.reduce(ones, (0,), "sum", keep=False), stem, length.value)
    return scattered(emit, marks, ranks, emit.iota((length,), 0, dtypes.int64), count)


def scattered(emit: Emitter, marks: Value, places: Value, values: Value, count: Dim) -> Value:
    """A vector of `count` elements that holds, at `places[i]`, `values[i]` for each i that is marked; 0 elsewhere."""
    spare = emit.extent(count, dtypes.int64)  # where all others go
    targets = emit.apply("select", marks, places, emit.broadcast(spare, marks.tensor.shape))
    empty = emit.fill(0, values.tensor.dtype, (count + 1,))
    filled = emit.apply("scatter_nd", empty, emit.expand_dims(targets, [1]), values, reducer="replace")
    return emit.slice_axis(filled, 0, 0, count)
