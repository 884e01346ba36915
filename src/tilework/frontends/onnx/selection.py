"""The first few of many elements: selected, then sorted.

Halving an interval of keys finds one up to which there are as many keys as are wanted; each step counts, which is a
reduction. What lies below is then gathered densely. Long rows are looked at once: the wanted elements lie in those
blocks whose smallest elements are the smallest of all, and there are no more such blocks than elements wanted.
"""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.dims import Dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.sorting import COUNTED, sorted_positions
from tilework.graph.graph import Value

IN_BLOCKS = 512
"""Elements of a row from which blocks are selected first, where they are at least `LEAST_BLOCK` elements long."""
LEAST_BLOCK = 2


def first_positions(emit: Emitter, keys: Value, count: Dim) -> Value:
    """int64[..., count]: the positions of the smallest keys of each row in ascending order, equal ones as they stand.

    That there are so many is checked when it runs, where it is not known.
    """
    length = keys.tensor.shape[-1]
    known = count.constant if count.is_constant else 0
    if length.is_constant and length.constant <= max(COUNTED, 2 * known):
        order = sorted_positions(emit, keys)
        return emit.slice_axis(order, order.tensor.rank - 1, 0, count)
    if not (length - count).is_constant:
        keys = emit.assumed(keys, keys.tensor.shape, (length - count,))
    positions = _selected_in_blocks(emit, keys, count)
    order = sorted_positions(emit, _taken(emit, keys, positions))
    return _taken(emit, positions, order)


def _taken(emit: Emitter, values: Value, positions: Value) -> Value:
    return emit.apply("take_along_axis", values, positions, dimension=values.tensor.rank - 1)


def _selected_in_blocks(emit: Emitter, keys: Value, count: Dim) -> Value:
    """As `_selected`: blocks are selected by their smallest keys, then elements of these blocks and of what is left."""
    *rows, length = keys.tensor.shape
    if not (length.is_constant and count.is_constant) or length.constant < IN_BLOCKS or not count.constant:
        return _selected(emit, keys, count)
    total, wanted, axis = length.constant, count.constant, len(rows)
    block = math.isqrt(total // wanted)  # as many blocks as elements in those that are selected
    if block < LEAST_BLOCK:
        return _selected(emit, keys, count)
    whole = total // block
    inside = emit.reshape(emit.slice_axis(keys, axis, 0, whole * block), (*rows, whole, block))
    blocks = _selected(emit, emit.reduce(inside, (axis + 1,), "minimum", keep=False), count)
    starts = emit.expand_dims(emit.apply("multiply", blocks, block), [axis + 1])
    wide = (*rows, wanted, block)
    places = emit.apply("add", emit.broadcast(starts, wide), emit.iota(wide, axis + 1, dtypes.int64))
    near = emit.reshape(places, (*rows, wanted * block))
    if whole * block < total:
        rest = (*rows, total - whole * block)
        near = emit.concatenate([near, emit.apply("add", emit.iota(rest, axis, dtypes.int64), whole * block)], axis)
    return _taken(emit, near, _selected(emit, _taken(emit, keys, near), count))


def _selected(emit: Emitter, keys: Value, count: Dim) -> Value:
    """int64[..., count]: the positions of the smallest keys of each row, ascending; of equal keys the first ones."""
    *rows, _ = shape = keys.tensor.shape
    axis, wanted = len(rows), emit.extent(count, dtypes.int64)
    limit = emit.broadcast(_limit(emit, keys, wanted), shape)
    below, equal = (emit.convert(emit.compare(how, keys, limit), dtypes.int64) for how in ("LT", "EQ"))
    room = emit.apply("subtract", emit.broadcast(wanted, (*rows, 1)), emit.reduce(below, (axis,), "sum"))
    both = emit.apply("add", below, emit.apply("multiply", equal, 1 << 32))  # counted in one walk over the row
    before = emit.apply("cumulative", both, dimension=axis, reducer="sum", exclusive=True)
    below_before = emit.apply("and", before, (1 << 32) - 1)
    equal_before = emit.apply("shift_right_arithmetic", before, 32)
    fits = emit.apply("minimum", equal_before, emit.broadcast(room, shape))
    taken = emit.apply("or", emit.compare("LT", keys, limit), emit.apply(
        "and", emit.compare("EQ", keys, limit), emit.compare("LT", equal_before, emit.broadcast(room, shape))
    ))  # fmt: skip
    spare = emit.broadcast(wanted, shape)  # where all others go
    places = emit.apply("select", taken, emit.apply("add", below_before, fits), spare)
    empty = emit.fill(0, dtypes.int64, (*rows, count + 1))
    numbers = emit.iota(shape, axis, dtypes.int64)
    filled = emit.apply("scatter_along_axis", empty, places, numbers, dimension=axis, reducer="replace")
    return emit.slice_axis(filled, axis, 0, count)


def _limit(emit: Emitter, keys: Value, wanted: Value) -> Value:
    """The smallest key of each row [..., 1] up to which there are `wanted` keys or more, or one up to which there are
    exactly so many.

    State: an interval (low, high], with fewer keys up to its lower end and enough up to its upper one, and how many
    keys there are up to what was looked at last.
    """
    *rows, _ = keys.tensor.shape
    axis, ends = len(rows), (*rows, 1)

    def number_up_to(emitter: Emitter, key: Value) -> Value:
        inside = emitter.compare("LE", keys, emitter.broadcast(key, keys.tensor.shape))
        return emitter.reduce(emitter.convert(inside, dtypes.int64), (axis,), "sum")

    low, high = (emit.reduce(keys, (axis,), which) for which in ("minimum", "maximum"))
    found = number_up_to(emit, low)
    high = emit.apply("select", emit.compare("GE", found, emit.broadcast(wanted, ends)), low, high)
    state = [low, high, found]

    def formals(inner: Emitter) -> tuple[list[Value], Value]:
        low, high, found = held = [
            inner.builder.input(inner.builder.fresh("limit"), v.tensor.dtype, *v.tensor.shape) for v in state
        ]
        more = inner.compare("LT", low, high)
        for reason in (
            inner.compare("LT", inner.apply("add", low, 1), high),
            inner.compare("NE", found, inner.broadcast(wanted, ends)),
        ):
            more = inner.apply("and", more, reason)
        return held, more

    asked, inner = emit.inside("condition"), emit.inside("body")
    _, more = formals(asked)
    any_more = asked.reduce(asked.convert(more, dtypes.int32), range(axis + 1), "maximum", keep=False)
    condition = asked.build([asked.compare("GT", any_more, 0)])
    (low, high, found), more = formals(inner)
    apart = inner.apply("shift_right_arithmetic", inner.apply("xor", low, high), 1)
    middle = inner.apply("add", inner.apply("and", low, high), apart)  # their mean without an overflow
    number = number_up_to(inner, middle)
    few = inner.compare("LT", number, inner.broadcast(wanted, ends))
    new = [
        inner.apply("select", few, middle, low), inner.apply("select", few, high, middle), number,
    ]  # fmt: skip
    body = inner.build(
        [inner.apply("select", more, one, old) for one, old in zip(new, (low, high, found), strict=True)]
    )
    results = emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=[condition, body])
    return results[1]
