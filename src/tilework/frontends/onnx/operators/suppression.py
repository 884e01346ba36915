"""NonMaxSuppression: boxes in the order of their scores, without those that overlap one chosen before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilework import dtypes
from tilework.dims import dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.marked import marked_positions
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operators.data_sizes import coordinates
from tilework.frontends.onnx.sorting import order_keys, sorted_positions
from tilework.frontends.onnx.unify import require_one, require_shape
from tilework.graph.graph import Value


@dataclass(frozen=True)
class _Box:
    """Corners of boxes in each row's order of scores, lower ones first, and the areas."""

    low: tuple[Value, Value]
    high: tuple[Value, Value]
    area: Value


def _suppression(node: OnnxNode) -> Value:
    """int64[m, 3]: batch, class and box of what is kept, by batch, class and descending score."""
    emit, boxes, scores = node.emit, node.value(0), node.value(1)
    if boxes.tensor.rank != 3 or scores.tensor.rank != 3:
        text = f"boxes {boxes.type} and scores {scores.type} must be [batches, boxes, 4] and [batches, classes, boxes]"
        raise NodeFault(1119, text)
    batches, classes, count = scores.tensor.shape
    require_shape(node.symbols, boxes.tensor.shape[2:], (dim(4),), "the last dimension of the boxes")
    boxes = emit.assumed(boxes, (batches, count, dim(4)))
    most = _scalar(node, 2, 0)
    threshold = _scalar(node, 3, 0.0)
    order = sorted_positions(emit, order_keys(emit, scores, descending=True))
    sides = [emit.slice_axis(boxes, 2, side, side + 1) for side in range(4)]
    spread = [emit.broadcast(emit.reshape(side, (batches, 1, count)), (batches, classes, count)) for side in sides]
    ordered = [emit.apply("take_along_axis", side, order, dimension=2) for side in spread]
    box = _box(emit, ordered, node.integer("center_point_box", 0))
    if node.has(4):
        sorted_scores = emit.apply("take_along_axis", scores, order, dimension=2)
        least = emit.broadcast(_scalar(node, 4, 0.0), scores.tensor.shape)
        alive = emit.compare("GT", sorted_scores, least)
    else:
        alive = emit.fill(True, dtypes.boolean, scores.tensor.shape)
    kept = _kept(emit, box, alive, emit.convert(most, dtypes.int64), threshold)
    flat = emit.reshape(kept, (kept.tensor.size,))
    positions = marked_positions(emit, flat, "boxes")
    batch, kind, _ = coordinates(emit, positions, (batches, classes, count))
    chosen = emit.apply("take", emit.reshape(order, (order.tensor.size,)), positions, dimension=0)
    return emit.concatenate([emit.expand_dims(column, [1]) for column in (batch, kind, chosen)], 1)


def _scalar(node: OnnxNode, position: int, default: float) -> Value:
    emit = node.emit
    if not node.has(position):
        return emit.scalar(default, dtypes.int64 if position == 2 else dtypes.float32)
    value = node.value(position)
    require_one(node.symbols, value.tensor.shape, f"input {position}")
    return emit.reshape(value, ())


def _box(emit: Emitter, sides: Sequence[Value], center: int) -> _Box:
    """Sides are two opposite corners (y, x, y, x), or the middle with width and height (x, y, width, height)."""
    if center not in (0, 1):
        raise NodeFault(1108, f"attribute 'center_point_box' is {center}, it must be 0 or 1")
    if center:
        x, y, width, height = sides
        halves = [emit.apply("divide", extent, 2.0) for extent in (height, width)]
        ends = [
            (emit.apply("subtract", middle, half), emit.apply("add", middle, half))
            for middle, half in zip((y, x), halves, strict=True)
        ]
    else:
        ends = [(sides[0], sides[2]), (sides[1], sides[3])]
    low = [emit.apply("minimum", one, other) for one, other in ends]
    high = [emit.apply("maximum", one, other) for one, other in ends]
    lengths = [emit.apply("subtract", b, a) for a, b in zip(low, high, strict=True)]
    return _Box((low[0], low[1]), (high[0], high[1]), emit.apply("multiply", *lengths))


def _kept(emit: Emitter, box: _Box, alive: Value, most: Value, threshold: Value) -> Value:
    """Which boxes are kept: one trip looks at one box of every row, and strikes out those that overlap it."""
    shape = alive.tensor.shape
    batches, classes, count = shape
    candidates = emit.reduce(emit.convert(alive, dtypes.int64), (2,), "sum", keep=False)
    trips = emit.reduce(candidates, (0, 1), "maximum", keep=False)
    state = [
        emit.scalar(0, dtypes.int64),
        alive,
        emit.fill(False, dtypes.boolean, shape),
        emit.fill(0, dtypes.int64, (batches, classes, 1)),
    ]

    def formals(inner: Emitter) -> list[Value]:
        return [inner.builder.input(inner.builder.fresh("boxes"), v.tensor.dtype, *v.tensor.shape) for v in state]

    asked = emit.inside("condition")
    number, _, _, chosen = formals(asked)
    room = asked.compare("LT", chosen, asked.broadcast(most, chosen.tensor.shape))
    wanted = asked.reduce(asked.convert(room, dtypes.int32), (0, 1, 2), "maximum", keep=False)
    condition = asked.build([asked.apply("and", asked.compare("LT", number, trips), asked.compare("GT", wanted, 0))])
    inner = emit.inside("body")
    number, left, kept, chosen = formals(inner)
    here = inner.reshape(number, (1,))

    def this(value: Value) -> Value:
        return inner.apply("take", value, here, dimension=2)

    room = inner.compare("LT", chosen, inner.broadcast(most, chosen.tensor.shape))
    selected = inner.apply("and", this(left), room)
    overlapping = _overlapping(inner, box, [this(v) for v in (*box.low, *box.high, box.area)], threshold)
    struck = inner.apply("and", overlapping, inner.broadcast(selected, shape))
    remaining = inner.apply("and", left, inner.apply("not", struck))
    places = inner.iota((count,), 0, dtypes.int64)
    it = inner.broadcast(inner.compare("EQ", places, inner.broadcast(here, (count,))), shape)
    added = inner.apply("or", kept, inner.apply("and", it, inner.broadcast(selected, shape)))
    body = inner.build([
        inner.apply("add", number, 1), remaining, added,
        inner.apply("add", chosen, inner.convert(selected, dtypes.int64)),
    ])  # fmt: skip
    found = emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=[condition, body])
    return found[2]


def _overlapping(emit: Emitter, box: _Box, one: Sequence[Value], threshold: Value) -> Value:
    """Whether the intersection of each box with one of its row is more than a share of their union."""
    shape = box.area.tensor.shape
    low_y, low_x, high_y, high_x, area = (emit.broadcast(value, shape) for value in one)
    lengths = [
        emit.apply("subtract", emit.apply("minimum", box.high[d], high), emit.apply("maximum", box.low[d], low))
        for d, (low, high) in enumerate(((low_y, high_y), (low_x, high_x)))
    ]
    common = emit.apply("multiply", *(emit.apply("maximum", length, 0.0) for length in lengths))
    union = emit.apply("subtract", emit.apply("add", box.area, area), common)
    share = emit.apply("divide", common, union)
    positive = emit.compare("GT", common, 0.0)  # boxes without an area overlap nothing
    return emit.apply("and", positive, emit.compare("GT", share, emit.broadcast(threshold, shape)))


CONVERTERS: dict[str, Converter] = {"NonMaxSuppression": _suppression}
