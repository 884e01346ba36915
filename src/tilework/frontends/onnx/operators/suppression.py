"""NonMaxSuppression: boxes in the order of their scores, without those that overlap one chosen before."""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.marked import marked_positions
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operators.data_sizes import coordinates
from tilework.frontends.onnx.selection import first_positions
from tilework.frontends.onnx.sorting import order_keys, sorted_positions
from tilework.frontends.onnx.unify import require_one, require_shape
from tilework.graph.graph import Value

TILE = 32
"""Boxes of a row that one trip looks at."""
SHORT = 1024
"""Boxes of a row up to which all are gone through, rather than those that may be chosen."""
MOST_HELD = 1024
"""Boxes up to which a row's list of chosen ones is as long as it may get, where not all boxes of a row are fewer."""


@dataclass(frozen=True)
class _Rows:
    """The operands: boxes [batches, boxes, 4], of opposite corners or with `centers`, scores [batches, classes, boxes],
    scalars, and the room for what is chosen of a row (`_room`).
    """

    boxes: Value
    scores: Value
    centers: bool
    most: Value
    threshold: Value
    least: Value | None
    room: Dim

    def alive(self, emit: Emitter, scores: Value) -> Value:
        """Whether boxes with these scores may be chosen."""
        if self.least is None:
            return emit.fill(True, dtypes.boolean, scores.tensor.shape)
        return emit.compare("GT", scores, emit.broadcast(self.least, scores.tensor.shape))


@dataclass(frozen=True)
class _Boxes:
    """Corners of boxes, lower ones first, and areas: float32[batches, classes, boxes] each."""

    sides: tuple[Value, Value, Value, Value]
    area: Value

    @property
    def all(self) -> tuple[Value, ...]:
        """What `_boxes_of` takes."""
        return (*self.sides, self.area)


def _boxes_of(values: Sequence[Value]) -> _Boxes:
    low_y, low_x, high_y, high_x, area = values
    return _Boxes((low_y, low_x, high_y, high_x), area)


def _suppression(node: OnnxNode) -> Value:
    """int64[m, 3]: batch, class and box of what is kept, by batch, class and descending score."""
    emit, boxes, scores = node.emit, node.value(0), node.value(1)
    if boxes.tensor.rank != 3 or scores.tensor.rank != 3:
        text = f"boxes {boxes.type} and scores {scores.type} must be [batches, boxes, 4] and [batches, classes, boxes]"
        raise NodeFault(1119, text)
    batches, classes, count = scores.tensor.shape
    require_shape(node.symbols, boxes.tensor.shape[2:], (dim(4),), "the last dimension of the boxes")
    boxes = emit.assumed(boxes, (batches, count, dim(4)))
    center = node.integer("center_point_box", 0)
    if center not in (0, 1):
        raise NodeFault(1108, f"attribute 'center_point_box' is {center}, it must be 0 or 1")
    least = _scalar(node, 4, 0.0) if node.has(4) else None
    most = emit.convert(_scalar(node, 2, 0), dtypes.int64)
    rows = _Rows(boxes, scores, bool(center), most, _scalar(node, 3, 0.0), least, _room(node, count))
    numbers, chosen = _chosen(emit, rows)
    room = numbers.tensor.shape[2]
    places = emit.iota(numbers.tensor.shape, 2, dtypes.int64)
    kept = emit.compare("LT", places, emit.broadcast(chosen, numbers.tensor.shape))
    positions = marked_positions(emit, emit.reshape(kept, (kept.tensor.size,)), "boxes")
    batch, kind, _ = coordinates(emit, positions, (batches, classes, room))
    box = emit.apply("take", emit.reshape(numbers, (numbers.tensor.size,)), positions, dimension=0)
    return emit.concatenate([emit.expand_dims(column, [1]) for column in (batch, kind, box)], 1)


def _chosen(emit: Emitter, rows: _Rows) -> tuple[Value, Value]:
    """As `_Search.run`. The best few boxes of each row are looked at first, and all only where these do not suffice."""
    keys = order_keys(emit, rows.scores, descending=True)
    count = keys.tensor.shape[2]
    few = max(2 * rows.room.constant, 2 * TILE) if rows.room.is_constant else None
    if few is None or not count.is_constant or 3 * few > count.constant:
        return _search(emit, rows, sorted_positions(emit, keys)).run(emit)
    search = _search(emit, rows, first_positions(emit, keys, dim(few)))
    numbers, chosen = search.run(emit)
    there, seen = (
        emit.reduce(emit.convert(alive, dtypes.int64), (2,), "sum")
        for alive in (rows.alive(emit, rows.scores), search.alive)
    )
    short = emit.compare("LT", chosen, emit.broadcast(rows.most, chosen.tensor.shape))
    short = emit.convert(emit.apply("and", short, emit.compare("LT", seen, there)), dtypes.int32)
    again = emit.compare("GT", emit.reduce(short, (0, 1, 2), "maximum", keep=False), 0)
    state = [again, numbers, chosen]

    def formals(inner: Emitter) -> list[Value]:
        return [inner.builder.input(inner.builder.fresh("all"), v.tensor.dtype, *v.tensor.shape) for v in state]

    asked, inner = emit.inside("condition"), emit.inside("body")
    condition = asked.build([formals(asked)[0]])
    formals(inner)
    whole = _search(inner, rows, sorted_positions(inner, keys)).run(inner)
    body = inner.build([inner.scalar(False, dtypes.boolean), *whole])
    _, *found = emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=[condition, body])
    return found[0], found[1]


def _search(emit: Emitter, rows: _Rows, order: Value) -> _Search:
    """The search among boxes in an order, int64[batches, classes, boxes that are looked at]."""
    batches, classes, count = rows.scores.tensor.shape
    sides = [emit.slice_axis(rows.boxes, 2, side, side + 1) for side in range(4)]
    spread = [emit.broadcast(emit.reshape(side, (batches, 1, count)), (batches, classes, count)) for side in sides]
    alive = rows.alive(emit, emit.apply("take_along_axis", rows.scores, order, dimension=2))
    looked_at = order.tensor.shape[2]
    if rows.least is not None and not (looked_at.is_constant and looked_at.constant <= SHORT):
        # scores fall, so few may be chosen that come late (those that are no numbers come first, and may not)
        places = emit.apply("add", emit.iota(order.tensor.shape, 2, dtypes.int64), 1)
        last = emit.apply("select", alive, places, emit.zeros_like(places))
        most = emit.reduce(last, (0, 1, 2), "maximum", keep=False)
        used = emit.measured(emit.apply("maximum", most, 0), "boxes", looked_at.value)
        alive, order = (emit.slice_axis(value, 2, 0, used) for value in (alive, order))
    ordered = [emit.apply("take_along_axis", side, order, dimension=2) for side in spread]
    return _Search(_corners(emit, ordered, rows.centers), alive, order, rows.most, rows.threshold, rows.room)


def _room(node: OnnxNode, count: Dim) -> Dim:
    """How many boxes a row's list of chosen ones has room for."""
    most = node.constant_number(2) if node.has(2) else 0
    if most is None:
        return count
    whole = max(int(most), 0)
    if count.is_constant:
        return dim(min(whole, count.constant))
    return dim(whole) if whole <= MOST_HELD else count


def _scalar(node: OnnxNode, position: int, default: float) -> Value:
    emit = node.emit
    if not node.has(position):
        return emit.scalar(default, dtypes.int64 if position == 2 else dtypes.float32)
    value = node.value(position)
    require_one(node.symbols, value.tensor.shape, f"input {position}")
    return emit.reshape(value, ())


def _corners(emit: Emitter, sides: Sequence[Value], centers: bool) -> _Boxes:
    """Sides are two opposite corners (y, x, y, x), or the middle with width and height (x, y, width, height)."""
    if centers:
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
    return _Boxes((low[0], low[1], high[0], high[1]), emit.apply("multiply", *lengths))


@dataclass(frozen=True)
class _Search:
    """The search of all rows at once: each trip takes the best boxes of every row that are left, chooses among them,
    and strikes out what overlaps the chosen ones. Where boxes lie in clusters, few trips strike out nearly all.

    `boxes`, `alive` (whether a box may be chosen) and `order` (its number) are in the order of scores; `room`: see
    `_room`.
    """

    boxes: _Boxes
    alive: Value
    order: Value
    most: Value
    threshold: Value
    room: Dim

    def run(self, emit: Emitter) -> tuple[Value, Value]:
        """The numbers of chosen boxes in each row, int64[batches, classes, room], and how many these are [.., 1]."""
        batches, classes, _ = self.alive.tensor.shape
        chosen = emit.fill(0, dtypes.int64, (batches, classes, 1))
        # the list has a spare place at its end, where everything goes that is not chosen
        numbers = emit.fill(0, dtypes.int64, (batches, classes, self.room + 1))
        state = [self._open(emit, self.alive, chosen), chosen, numbers]

        def formals(inner: Emitter) -> list[Value]:
            return [inner.builder.input(inner.builder.fresh("boxes"), v.tensor.dtype, *v.tensor.shape) for v in state]

        asked = emit.inside("condition")
        alive, *_ = formals(asked)
        left = asked.reduce(asked.convert(alive, dtypes.int32), (0, 1, 2), "maximum", keep=False)
        condition = asked.build([asked.compare("GT", left, 0)])
        inner = emit.inside("body")
        body = inner.build(self._trip(inner, *formals(inner)))
        found = emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=[condition, body])
        return emit.slice_axis(found[2], 2, 0, self.room), found[1]

    def _open(self, emit: Emitter, alive: Value, chosen: Value) -> Value:
        """What is left in rows that may have more boxes."""
        short = emit.compare("LT", chosen, emit.broadcast(self.most, chosen.tensor.shape))
        return emit.apply("and", alive, emit.broadcast(short, alive.tensor.shape))

    def _trip(self, emit: Emitter, alive: Value, chosen: Value, numbers: Value) -> list[Value]:
        row, batches, classes = alive.tensor.shape, *alive.tensor.shape[:2]
        tile = (batches, classes, dim(TILE))
        places, free = self._next(emit, alive)

        def here(value: Value) -> Value:
            return emit.apply("take_along_axis", value, places, dimension=2)

        boxes = _boxes_of([here(value) for value in self.boxes.all])
        kept = self._first_of_overlapping(emit, boxes, free)
        ones = emit.convert(kept, dtypes.int64)
        rank = emit.apply("cumulative", ones, dimension=2, reducer="sum", exclusive=True)
        target = emit.apply("add", rank, emit.broadcast(chosen, tile))
        kept = emit.apply("and", kept, emit.compare("LT", target, emit.broadcast(self.most, tile)))
        target = emit.apply("select", kept, target, emit.broadcast(emit.extent(self.room, dtypes.int64), tile))
        numbers = emit.apply(
            "scatter_along_axis", numbers, target, here(self.order), dimension=2, reducer="replace"
        )  # fmt: skip
        chosen = emit.apply("add", chosen, emit.reduce(emit.convert(kept, dtypes.int64), (2,), "sum"))
        # a box without an area overlaps nothing
        strikers = _boxes_of([emit.apply("select", kept, value, emit.zeros_like(value)) for value in boxes.all])
        struck = self._any_overlap(emit, self.boxes, strikers)
        looked_at = emit.reduce(emit.apply("select", free, places, emit.fill(-1, dtypes.int64, tile)), (2,), "maximum")
        later = emit.compare("GT", emit.iota(row, 2, dtypes.int64), emit.broadcast(looked_at, row))
        left = emit.apply("and", later, emit.apply("not", struck))
        return [self._open(emit, emit.apply("and", alive, left), chosen), chosen, numbers]

    def _next(self, emit: Emitter, alive: Value) -> tuple[Value, Value]:
        """The places of the first boxes in each row that are left, int64[batches, classes, TILE], and which of these
        there are.
        """
        row = alive.tensor.shape
        tile = (*row[:2], dim(TILE))
        rank = emit.convert(emit.apply(
            "cumulative", emit.convert(alive, dtypes.int32), dimension=2, reducer="sum", exclusive=True
        ), dtypes.int64)  # fmt: skip
        spare = emit.fill(TILE, dtypes.int64, row)
        target = emit.apply("select", alive, emit.apply("minimum", rank, spare), spare)
        count = emit.extent(row[2], dtypes.int64)
        empty = emit.broadcast(count, (*row[:2], dim(TILE + 1)))
        numbers = emit.iota(row, 2, dtypes.int64)
        found = emit.apply("scatter_along_axis", empty, target, numbers, dimension=2, reducer="replace")
        found = emit.slice_axis(found, 2, 0, TILE)
        there = emit.compare("LT", found, emit.broadcast(count, tile))
        return emit.apply("minimum", found, emit.broadcast(emit.apply("subtract", count, 1), tile)), there

    def _any_overlap(self, emit: Emitter, boxes: _Boxes, others: _Boxes) -> Value:
        """Whether each box overlaps one of its row's others."""
        found = self._overlapping(emit, boxes, others)
        most = emit.reduce(emit.convert(found, dtypes.int32), (3,), "maximum", keep=False)
        return emit.compare("GT", most, 0)

    def _first_of_overlapping(self, emit: Emitter, boxes: _Boxes, free: Value) -> Value:
        """Which of a tile's free boxes are chosen: those that overlap none chosen before them.

        Repeated until it stays: after n trips it is right for the first n boxes, and seldom takes more than a few.
        """
        shape = free.tensor.shape
        square = (*shape, dim(TILE))
        numbers = [emit.iota(square, axis, dtypes.int32) for axis in (2, 3)]
        earlier = emit.apply("and", self._overlapping(emit, boxes, boxes), emit.compare("GT", *numbers))
        state = [emit.fill(True, dtypes.boolean, ()), free]

        def formals(inner: Emitter) -> list[Value]:
            return [inner.builder.input(inner.builder.fresh("kept"), v.tensor.dtype, *v.tensor.shape) for v in state]

        asked = emit.inside("condition")
        condition = asked.build([formals(asked)[0]])
        inner = emit.inside("body")
        _, kept = formals(inner)
        rows = inner.broadcast(inner.expand_dims(kept, [2]), square)
        struck = inner.convert(inner.apply("and", earlier, rows), dtypes.int32)
        struck = inner.compare("GT", inner.reduce(struck, (3,), "maximum", keep=False), 0)
        found = inner.apply("and", free, inner.apply("not", struck))
        changed = inner.convert(inner.compare("NE", found, kept), dtypes.int32)
        changed = inner.compare("GT", inner.reduce(changed, (0, 1, 2), "maximum", keep=False), 0)
        body = inner.build([changed, found])
        return emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=[condition, body])[1]

    def _overlapping(self, emit: Emitter, boxes: _Boxes, others: _Boxes) -> Value:
        """Whether the intersection of each box with each other one of its row is more than a share of their union."""
        square = (*boxes.area.tensor.shape, others.area.tensor.shape[2])
        one = [emit.broadcast(emit.expand_dims(value, [3]), square) for value in boxes.all]
        other = [emit.broadcast(emit.expand_dims(value, [2]), square) for value in others.all]
        lengths = [
            emit.apply(
                "subtract", emit.apply("minimum", one[d + 2], other[d + 2]), emit.apply("maximum", one[d], other[d])
            )
            for d in range(2)
        ]
        common = emit.apply("multiply", *(emit.apply("maximum", length, 0.0) for length in lengths))
        union = emit.apply("subtract", emit.apply("add", one[4], other[4]), common)
        share = emit.apply("divide", common, union)
        positive = emit.compare("GT", common, 0.0)  # boxes without an area overlap nothing
        return emit.apply("and", positive, emit.compare("GT", share, emit.broadcast(self.threshold, square)))


CONVERTERS: dict[str, Converter] = {"NonMaxSuppression": _suppression}
