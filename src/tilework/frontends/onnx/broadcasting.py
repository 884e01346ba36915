"""Broadcasting between sizes of which the call measures some: whether one is 1 is known only when it runs.

Sizes that are known before are joined as everywhere else (`Emitter.joined_shape`), and cost nothing more. A measured
size beside another is 1 or equal to it: its operand is taken at the positions min(i, size - 1), and a check ends the
run where it is neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.graph.graph import Value


def together(emit: Emitter, *values: Value) -> list[Value]:
    """Operands of one elementwise operator, those with measured sizes under the shape that all broadcast to."""
    if len(values) < 2 or not _any_measured(emit, *(value.tensor.shape for value in values)):
        return list(values)
    shape = joined(emit, *(value.tensor.shape for value in values))
    return [spread(emit, value, shape[len(shape) - value.tensor.rank :]) for value in values]


def joined(emit: Emitter, *shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """As `Emitter.joined_shape`, where what a measured extent is beside others turns out at run time.

    Beside an extent that is surely larger than 1, or a free one, of which every call checks it, the result has that
    one; beside other measured extents only the run can say.
    """
    rank = max(map(len, shapes), default=0)
    found: list[Dim] = []
    for place in range(-rank, 0):
        extents = list(dict.fromkeys(shape[place] for shape in shapes if len(shape) >= -place))
        fixed = [extent for extent in extents if not _is_measured(emit, extent)]
        (result,) = emit.joined_shape(*((extent,) for extent in fixed)) if fixed else (dim(1),)
        others = [extent for extent in extents if extent not in fixed]
        if result == 1 and others:
            sure = [extent for extent in others if emit.symbols.decide_at_least(extent, 2)]
            result = sure[0] if sure else others[0] if len(others) == 1 else _first_larger(emit, others)
        found.append(result)
    return tuple(found)


def spread(emit: Emitter, value: Value, shape: Sequence[Dim]) -> Value:
    """A value whose measured extents become those of `shape` (of its rank), if they are 1 or equal to them.

    What is literally 1 stays so, as elementwise operators take it.
    """
    for axis, (own, wanted) in enumerate(zip(value.tensor.shape, shape, strict=True)):
        if own in (1, wanted) or emit.symbols.decide_at_least(own, 2):
            continue
        if _is_measured(emit, own) or _is_measured(emit, wanted):
            numbers = emit.iota((wanted,), 0, dtypes.int64)
            places = emit.apply("minimum", numbers, emit.extent(own - 1, dtypes.int64))
            value = emit.apply("take", value, required(emit, places, own, wanted), dimension=axis)
    return value


def required(emit: Emitter, value: Value, own: Dim, wanted: Dim) -> Value:
    """The value, after a check that an extent is 1 or another one; a free one is taken not to be 1."""
    sure = wanted == 0 or _is_measured(emit, wanted) or emit.symbols.decide_at_least(wanted, 2)
    larger = () if sure else (wanted - 2,)
    beside = sorted(emit.joints().get(wanted, {wanted}) - {own}, key=str)
    pairs = tuple(extent for other in beside for extent in (own, other))
    return emit.apply("assume", value, shape=value.tensor.shape, at_least_zero=larger, one_or_equal=pairs)


def expanded(emit: Emitter, value: Value, wanted: Sequence[Dim]) -> Value:
    """ONNX's Expand: the value and a shape broadcast to each other."""
    shape = joined(emit, value.tensor.shape, wanted)
    for asked, got in zip(wanted, shape[len(shape) - len(wanted) :], strict=True):
        if asked not in (1, got):
            value = required(emit, value, asked, got)
    return emit.broadcast(spread(emit, value, shape[len(shape) - value.tensor.rank :]), shape)


def _first_larger(emit: Emitter, extents: Sequence[Dim]) -> Dim:
    """The first of some measured extents that is not 1. The same extents have one symbol in a graph and those in it."""
    known = emit.joints()
    members = frozenset(member for extent in extents for member in known.get(extent, (extent,)))
    for joint, own in known.items():
        if own == members:
            return joint
    one = emit.scalar(1, dtypes.int64)
    result = one
    for extent in extents:
        number = emit.extent(extent, dtypes.int64)
        result = emit.apply("select", emit.compare("EQ", result, one), number, result)
    upper = max(extent.bounds(emit.symbols.bounds)[1] for extent in extents)
    found = emit.measured(result, "joined", None if upper == math.inf else int(upper))
    emit.joined[found] = members
    return found


def _is_measured(emit: Emitter, extent: Dim) -> bool:
    return any(map(emit.symbols.is_measured, extent.names()))


def _any_measured(emit: Emitter, *shapes: Sequence[Dim]) -> bool:
    return any(_is_measured(emit, extent) for shape in shapes for extent in shape)
