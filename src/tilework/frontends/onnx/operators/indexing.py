"""Elements picked or replaced by index tensors."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim, dim, product
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element, finite, fixed_extent
from tilework.graph.graph import Value

_REDUCERS = {"none": "replace", "add": "sum", "mul": "product", "max": "maximum", "min": "minimum"}


def _gather(node: OnnxNode) -> Value:
    """numpy's take; one index known now is a slice."""
    value, emit = node.value(0), node.emit
    axis = node.axis(node.integer("axis", 0), value.tensor.rank)
    known = node.operand(1).known()
    if known is not None and known.ndim == 0:
        place: Dim = known.reshape(-1)[0]
        extent = value.tensor.shape[axis]
        if place.is_constant and place.constant < 0:
            place = extent + place
        inside = node.symbols.require_at_least(extent - place, 1)
        if inside and node.symbols.decide_at_least(place, 0):
            return emit.drop_dims(emit.slice_axis(value, axis, place, place + 1), [axis])
        if extent.is_constant and place.is_constant:
            raise NodeFault(1119, f"index {place} is outside dimension {axis} of {value.type}")
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
    value = emit.slice(value, [0] * len(limits), limits)
    return emit.apply("take_along_axis", value, indices, dimension=axis)


def _scatter_elements(node: OnnxNode) -> Value:
    value, indices, updates = node.value(0), node.value(1), node.value(2)
    _same_rank(value, indices, updates)
    axis = node.axis(node.integer("axis", 0), value.tensor.rank)
    reducer = _REDUCERS[node.choice("reduction", "none", tuple(_REDUCERS))]
    return node.emit.apply("scatter_along_axis", value, indices, updates, dimension=axis, reducer=reducer)


def _flat_index(emit: Emitter, indices: Value, shape: tuple[Dim, ...]) -> Value:
    """Positions in the flattened leading dims, from index tuples along the last dimension; negative ones wrap."""
    rank = indices.tensor.rank
    total: Value | None = None
    for place, extent in enumerate(shape):
        entry = emit.drop_dims(emit.slice_axis(indices, rank - 1, place, place + 1), [rank - 1])
        size = emit.extent(extent, element(entry))
        entry = emit.apply("select", emit.compare("LT", entry, 0), emit.apply("add", entry, size), entry)
        total = entry if total is None else emit.apply("add", emit.apply("multiply", total, size), entry)
    assert total is not None
    return total


def _gather_nd(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    indices = emit.convert(node.value(1), dtypes.int64)
    batch = node.integer("batch_dims", 0)
    depth = fixed_extent(indices.tensor.shape[-1], "the last dimension of the indices") if indices.tensor.rank else 0
    shape = value.tensor.shape
    if not 0 <= batch < min(value.tensor.rank, indices.tensor.rank) or not 0 < depth <= len(shape) - batch:
        raise NodeFault(1119, f"operands {value.type} and {indices.type} with {batch} batch dimensions")
    lead, picked, rest = shape[:batch], shape[batch : batch + depth], shape[batch + depth :]
    places = _flat_index(emit, indices, picked)
    outer = indices.tensor.shape[batch:-1]
    flat = emit.reshape(value, (product(lead) * product(picked), *rest))
    if batch:  # each batch element begins where the one before it ends
        rows = emit.iota((product(lead), product(outer)), 0, dtypes.int64)
        rows = emit.apply("multiply", rows, emit.extent(product(picked), dtypes.int64))
        places = emit.apply("add", emit.reshape(places, (product(lead), product(outer))), rows)
    found = emit.apply("take", flat, emit.reshape(places, (product(lead) * product(outer),)), dimension=0)
    return emit.reshape(found, (*lead, *outer, *rest))


def _scatter_nd(node: OnnxNode) -> Value:
    value, updates, emit = node.value(0), node.value(2), node.emit
    indices = emit.convert(node.value(1), dtypes.int64)
    reducer = _REDUCERS[node.choice("reduction", "none", tuple(_REDUCERS))]
    depth = fixed_extent(indices.tensor.shape[-1], "the last dimension of the indices") if indices.tensor.rank else 0
    shape = value.tensor.shape
    if not 0 < depth <= len(shape):
        raise NodeFault(1119, f"operands {value.type} and {indices.type}")
    picked, rest = shape[:depth], product(shape[depth:])
    count = product(indices.tensor.shape[:-1])
    places = emit.reshape(_flat_index(emit, indices, picked), (count, 1))
    flat = emit.apply(
        "scatter_along_axis", emit.reshape(value, (product(picked), rest)), emit.broadcast(places, (count, rest)),
        emit.reshape(updates, (count, rest)), dimension=0, reducer=reducer,
    )  # fmt: skip
    return emit.reshape(flat, shape)


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
    if element(indices).is_floating:
        indices = emit.convert(indices, dtypes.int64)
    if element(indices).kind == "signed":
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
        rows = emit.apply("add", rows, emit.reshape(node.value(1), ()))
    kept = emit.compare("GE" if node.flag("upper", True) else "LE", columns, rows)
    return emit.apply("select", kept, value, emit.zeros_like(value))


CONVERTERS: dict[str, Converter] = {
    "Gather": _gather, "GatherElements": _gather_elements, "GatherND": _gather_nd, "OneHot": _one_hot,
    "Scatter": _scatter_elements, "ScatterElements": _scatter_elements, "ScatterND": _scatter_nd, "Trilu": _triangle,
}  # fmt: skip
