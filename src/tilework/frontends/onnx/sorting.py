"""Sorting in generated code: every method is a composition of maps, reductions and loops, and gives the same order.

Elements are made integers that order as they do, with their positions behind them, so that no two are equal and every
sort is stable. Few elements are counted against each other; many are sorted by a bitonic network (Batcher, "Sorting
networks and their applications", 1968), in which all comparators point upwards, so that it serves any number of
elements. Where only the first of many are wanted, they are selected before (`selection`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.graph.graph import Value

COUNTED = 256
"""Elements of a row up to which each is counted against all others."""
_POSITIONS = 32
"""Bits for a position beside a key of 32 bits."""


def order_keys(emit: Emitter, value: Value, descending: bool = False) -> Value:
    """int32 or int64 keys that order as the elements do; zeros are equal, and NaN is larger than anything."""
    dtype = value.tensor.dtype
    if dtype.kind == "floating":
        if dtype.itemsize < 4:
            value, dtype = emit.convert(value, dtypes.float32), dtypes.float32
        whole = dtypes.int32 if dtype.itemsize == 4 else dtypes.int64
        bits = emit.apply("bitcast_convert", value, dtype=whole)
        largest = 2 ** (8 * whole.itemsize - 1) - 1
        sign = emit.apply("shift_right_arithmetic", bits, emit.scalar(8 * whole.itemsize - 1, whole))
        keys = emit.apply("xor", bits, emit.apply("and", sign, emit.scalar(largest, whole)))
        zero = emit.fill(0, whole, value.tensor.shape)
        keys = emit.apply("select", emit.compare("EQ", value, 0), zero, keys)
        nan = emit.fill(largest, whole, value.tensor.shape)
        keys = emit.apply("select", emit.apply("is_nan", value), nan, keys)
    elif dtype == dtypes.uint64:
        whole = dtypes.int64
        bits = emit.apply("bitcast_convert", value, dtype=whole)
        keys = emit.apply("xor", bits, emit.scalar(-(2**63), whole))
    else:
        whole = dtypes.int64 if dtype in (dtypes.int64, dtypes.uint32) else dtypes.int32
        keys = emit.convert(value, whole)
    return emit.apply("not", keys) if descending else keys


def sorted_positions(emit: Emitter, keys: Value) -> Value:
    """int64[..., n]: for each row, the positions of its elements in ascending order, equal ones as they stand."""
    length = keys.tensor.shape[-1]
    columns = _columns(emit, keys)
    if length.is_constant and length.constant <= COUNTED:
        return _counted(emit, columns)
    return _positions(emit, _network(emit, columns))


def _columns(emit: Emitter, keys: Value) -> list[Value]:
    """int64 values of which the first that differ decide: one where key and position fit in it."""
    shape = keys.tensor.shape
    place = emit.iota(shape, len(shape) - 1, dtypes.int64)
    if keys.tensor.dtype == dtypes.int64:
        return [keys, place]
    wide = emit.convert(keys, dtypes.int64)
    return [emit.apply("add", emit.apply("multiply", wide, 1 << _POSITIONS), place)]


def _positions(emit: Emitter, columns: Sequence[Value]) -> Value:
    if len(columns) == 2:
        return columns[1]
    return emit.apply("and", columns[0], (1 << _POSITIONS) - 1)


def _before(emit: Emitter, one: Sequence[Value], other: Sequence[Value]) -> Value:
    """Whether elements come before others."""
    found = emit.compare("LT", one[-1], other[-1])
    for a, b in zip(reversed(one[:-1]), reversed(other[:-1]), strict=True):
        same = emit.apply("and", emit.compare("EQ", a, b), found)
        found = emit.apply("or", emit.compare("LT", a, b), same)
    return found


def _counted(emit: Emitter, columns: Sequence[Value]) -> Value:
    """The place of each element is the number of those before it."""
    shape = columns[0].tensor.shape
    rank, length = len(shape), shape[-1]
    square = (*shape, length)
    kept = tuple(range(rank - 1))
    rows = [_spread(emit, column, square, (*kept, rank - 1)) for column in columns]
    others = [_spread(emit, column, square, (*kept, rank)) for column in columns]
    before = emit.convert(_before(emit, others, rows), dtypes.int64)
    places = emit.reduce(before, (rank,), "sum", keep=False)
    numbers = emit.iota(shape, rank - 1, dtypes.int64)
    empty = emit.fill(0, dtypes.int64, shape)
    return emit.apply("scatter_along_axis", empty, places, numbers, dimension=rank - 1, reducer="replace")


def _spread(emit: Emitter, value: Value, shape: Sequence[Dim], places: tuple[int, ...]) -> Value:
    return emit.apply("broadcast_in_dim", value, shape=tuple(shape), broadcast_dimensions=places)


def _network(emit: Emitter, columns: Sequence[Value]) -> list[Value]:
    """The columns of each row in order.

    State: the size of the blocks that are merged, the bits in which the positions that are compared differ, and the
    columns. A merge first compares the block's halves from both ends (all bits), then at half the distance each time.
    """
    length = columns[0].tensor.shape[-1]
    state = [emit.scalar(2, dtypes.int64), emit.scalar(1, dtypes.int64), *columns]

    def formals(inner: Emitter) -> list[Value]:
        return [
            inner.builder.input(inner.builder.fresh("sorted"), value.tensor.dtype, *value.tensor.shape)
            for value in state
        ]

    asked = emit.inside("condition")
    size, *_ = formals(asked)
    half = asked.apply("shift_right_arithmetic", size, 1)
    condition = asked.build([asked.compare("LT", half, asked.extent(length, dtypes.int64))])
    inner = emit.inside("body")
    size, bits, *held = formals(inner)
    here = inner.iota((length,), 0, dtypes.int64)
    there = inner.apply("xor", here, inner.broadcast(bits, (length,)))
    last = inner.extent(length - 1, dtypes.int64)
    inside = inner.compare("LE", there, inner.broadcast(last, (length,)))
    nearest = inner.apply("minimum", there, inner.broadcast(last, (length,)))
    axis = held[0].tensor.rank - 1
    others = [inner.apply("take", column, nearest, dimension=axis) for column in held]
    upper = inner.compare("LT", there, here)  # the upper one of a pair keeps the larger element
    shape = held[0].tensor.shape
    smaller = _before(inner, others, held)
    wrong = inner.compare("NE", smaller, inner.broadcast(upper, shape))
    wrong = inner.apply("and", wrong, inner.broadcast(inside, shape))
    swapped = [inner.apply("select", wrong, other, column) for other, column in zip(others, held, strict=True)]
    whole = inner.apply("subtract", size, 1)
    first = inner.compare("EQ", bits, whole)
    following = inner.apply(
        "select", first, inner.apply("shift_right_arithmetic", size, 2), inner.apply("shift_right_arithmetic", bits, 1)
    )
    merged = inner.compare("EQ", following, 0)
    double = inner.apply("add", size, size)
    next_size = inner.apply("select", merged, double, size)
    next_bits = inner.apply("select", merged, inner.apply("subtract", double, 1), following)
    body = inner.build([next_size, next_bits, *swapped])
    found = emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=[condition, body])
    return list(found[2:])


def inverse_order(emit: Emitter, order: Value) -> Value:
    """For each position, its place in an order along the last dimension."""
    shape = order.tensor.shape
    numbers = emit.iota(shape, len(shape) - 1, dtypes.int64)
    empty = emit.fill(0, dtypes.int64, shape)
    return emit.apply("scatter_along_axis", empty, order, numbers, dimension=len(shape) - 1, reducer="replace")


def last_axis(emit: Emitter, value: Value, axis: int) -> Value:
    """The value with a dimension moved behind all others."""
    return emit.transpose(value, [*(d for d in range(value.tensor.rank) if d != axis), axis])


def axis_back(emit: Emitter, value: Value, axis: int) -> Value:
    """The value with its last dimension moved to a place."""
    rank = value.tensor.rank
    return emit.transpose(value, [*range(axis), rank - 1, *range(axis, rank - 1)])
