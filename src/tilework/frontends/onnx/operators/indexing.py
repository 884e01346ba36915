"""Elements picked or replaced by index tensors."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula
from tilework.frontends.onnx.formula import extent as extent_of
from tilework.frontends.onnx.node import OnnxNode, element, finite, fixed_extent
from tilework.frontends.onnx.positions import check_positions, check_tuples
from tilework.frontends.onnx.unify import equal
from tilework.graph.graph import Value

_REDUCERS = {"none": "replace", "add": "sum", "mul": "product", "max": "maximum", "min": "minimum"}


def _gather(node: OnnxNode) -> Value:
    """numpy's take; one index known now is a slice."""
    value, emit = node.value(0), node.emit
    axis = node.axis(node.integer("axis", 0), value.tensor.rank)
    check_positions(node, 1, value, axis)
    known = node.operand(1).known()
    if known is not None and known.ndim == 0:
        place: Dim = known.reshape(-1)[0]
        extent = value.tensor.shape[axis]
        is_constant = place.is_constant
        if is_constant and place.constant < 0:
            place = extent + place
        # whether a symbolic index is inside is a condition of the slice, as long as it is known not to wrap
        inside = node.symbols.require_at_least(extent - place, 1)
        if is_constant or (inside and node.symbols.decide_at_least(place, 0)):
            return emit.drop_dims(emit.slice_axis(value, axis, place, place + 1), [axis])
    return emit.apply("take", value, node.value(1), dimension=axis)


def _same_rank(value: Value, *others: Value) -> None:
    for other in others:
        if other.tensor.rank != value.tensor.rank or not value.tensor.rank:
            raise NodeFault(1119, f"operands {value.type} and {other.type} must have one rank, 1 or more")


def _gather_elements(node: OnnxNode) -> Value:
    value, indices, emit = node.value(0), node.value(1), node.emit
    _same_rank(value, indices)
    axis = node.axis(node.integer("axis", 0), value.tensor.rank)
    limits = list(indices.tensor.shape)
    limits[axis] = value.tensor.shape[axis]
    check_positions(node, 1, value, axis)
    value = emit.slice(value, [0] * len(limits), limits)
    return emit.apply("take_along_axis", value, indices, dimension=axis)


def _scatter_elements(node: OnnxNode) -> Value:
    value, indices, updates = node.value(0), node.value(1), node.value(2)
    _same_rank(value, indices, updates)
    axis = node.axis(node.integer("axis", 0), value.tensor.rank)
    check_positions(node, 1, value, axis)
    reducer = _REDUCERS[node.choice("reduction", "none", tuple(_REDUCERS))]
    for place, (one, other) in enumerate(zip(indices.tensor.shape, updates.tensor.shape, strict=True)):
        equal(node.symbols, one, other, f"dimension {place} of the indices and of the updates")
    updates = node.emit.assumed(updates, indices.tensor.shape)
    return node.emit.apply("scatter_along_axis", value, indices, updates, dimension=axis, reducer=reducer)


def _depth(indices: Value) -> int:
    """Positions in each tuple along the last dimension of the indices (0 where they have none)."""
    return fixed_extent(indices.tensor.shape[-1], "the last dimension of the indices") if indices.tensor.rank else 0


def _gather_nd(node: OnnxNode) -> Value:
    value, indices = node.value(0), node.value(1)
    batch, depth = node.integer("batch_dims", 0), _depth(indices)
    if not 0 <= batch < min(value.tensor.rank, indices.tensor.rank) or not 0 < depth <= value.tensor.rank - batch:
        raise NodeFault(1119, f"operands {value.type} and {indices.type} with {batch} batch dimensions")
    for axis in range(batch):
        one, other = value.tensor.shape[axis], indices.tensor.shape[axis]
        equal(node.symbols, one, other, f"dimension {axis} of {value.type} and of {indices.type}")
    indices = node.emit.assumed(indices, (*value.tensor.shape[:batch], *indices.tensor.shape[batch:]))
    check_tuples(node, 1, value, range(batch, batch + depth))
    return node.emit.apply("gather_nd", value, indices, batch_dimensions=batch)


def _scatter_nd(node: OnnxNode) -> Value:
    value, indices, updates = node.value(0), node.value(1), node.value(2)
    reducer = _REDUCERS[node.choice("reduction", "none", tuple(_REDUCERS))]
    depth = _depth(indices)
    if not 0 < depth <= value.tensor.rank:
        raise NodeFault(1119, f"operands {value.type} and {indices.type}")
    wanted = (*indices.tensor.shape[:-1], *value.tensor.shape[depth:])
    if updates.tensor.rank != len(wanted):
        text = f"the updates {updates.type} must have shape [{', '.join(map(str, wanted))}]"
        raise NodeFault(1119, text)
    for axis, (one, other) in enumerate(zip(updates.tensor.shape, wanted, strict=True)):
        equal(node.symbols, one, other, f"dimension {axis} of the updates and of what the indices name")
    updates = node.emit.assumed(updates, wanted)
    check_tuples(node, 1, value, range(depth))
    return node.emit.apply("scatter_nd", value, indices, updates, reducer=reducer)


def _one_hot(node: OnnxNode) -> Value:
    """The on value where an index (negative ones wrap once) is the position, the off value elsewhere."""
    indices, emit = node.value(0), node.emit
    if node.operand(1).dtype.is_integer:
        extent = node.one(1, "the depth")
    else:
        extent = dim(int(finite(node.number_input(1, "the depth"), "the depth")))
    values = node.value(2)
    if values.tensor.rank != 1 or values.tensor.shape[0] != 2:
        raise NodeFault(1119, f"the off and on values are {values.type}, they must be two numbers in one dimension")
    rank = indices.tensor.rank
    axis = node.axis(node.integer("axis", -1), rank + 1)
    wraps = element(indices).kind != "unsigned"
    if element(indices).is_floating or element(indices).bits < 32:  # a depth may be larger than a narrow type holds
        indices = emit.convert(indices, dtypes.int64)
    if wraps:
        wrapped = emit.apply("add", indices, emit.extent(extent, element(indices)))
        indices = emit.apply("select", emit.compare("LT", indices, 0), wrapped, indices)
    spread = emit.expand_dims(indices, [axis])
    shape = [extent if a == axis else 1 for a in range(rank + 1)]
    hit = emit.compare("EQ", spread, emit.iota(shape, axis, element(indices)))
    off, on = (emit.slice_axis(values, 0, place, place + 1) for place in (0, 1))
    return emit.apply("select", hit, emit.reshape(on, ()), emit.reshape(off, ()))


def _triangle(node: OnnxNode) -> Value:
    """The upper or lower triangle of the last two dims, zero elsewhere; k moves the diagonal."""
    value, emit = node.value(0), node.emit
    rank = value.tensor.rank
    if rank < 2:
        raise NodeFault(1119, f"the input {value.type} has no matrix")
    shape = [dim(1)] * (rank - 2) + list(value.tensor.shape[-2:])
    rows, columns = (emit.iota(shape, axis, dtypes.int64) for axis in (rank - 2, rank - 1))
    if node.has(1):
        high, wide = (extent_of(emit, size, dtypes.int64) for size in value.tensor.shape[-2:])
        # diagonals farther out keep or drop all, too, and the sum would not fit
        k = Formula(emit, emit.convert(emit.reshape(node.value(1), ()), dtypes.int64)).clamp(0 - high, wide)
        rows = emit.apply("add", rows, k.value)
    kept = emit.compare("GE" if node.flag("upper", True) else "LE", columns, rows)
    return emit.apply("select", kept, value, emit.zeros_like(value))


CONVERTERS: dict[str, Converter] = {
    "Gather": _gather, "GatherElements": _gather_elements, "GatherND": _gather_nd, "OneHot": _one_hot,
    "Scatter": _scatter_elements, "ScatterElements": _scatter_elements, "ScatterND": _scatter_nd, "Trilu": _triangle,
}  # fmt: skip
