"""Regions of images pooled to one size: RoiAlign samples between elements, MaxRoiPool takes the largest element."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula, extent
from tilework.frontends.onnx.node import OnnxNode, element, finite
from tilework.frontends.onnx.positions import counted_from_front
from tilework.frontends.onnx.sampling import Neighbour, counted, position_of, sampled
from tilework.frontends.onnx.unify import require_equal
from tilework.graph.graph import Value


@dataclass(frozen=True)
class _Regions:
    """Where regions lie along one dimension of an image: their starts and the extents of their bins, vectors [R]."""

    start: Formula
    bin: Formula
    extent: Formula
    size: Dim
    bins: int


# -- RoiAlign ----------------------------------------------------------------------------------------------------------
def _roi_align(node: OnnxNode) -> Value:
    value, rois, emit = node.value(0), node.value(1), node.emit
    height, width = _positive(node, "output_height"), _positive(node, "output_width")
    _check(node, value, rois, 4)
    batches = emit.shaped(node.value(2), rois.tensor.shape[:1], "batch_indices")
    ratio = node.integer("sampling_ratio", 0)
    if not 0 <= ratio < 2**20:
        raise NodeFault(1108, f"attribute 'sampling_ratio' is {ratio}, it must be 0 or more")
    largest = node.choice("mode", "avg", ("avg", "max")) == "max"
    kind = element(value)
    wide = kind if kind.bits == 64 else dtypes.float32
    image = _as_one(emit, emit.convert(value, wide))
    columns, rows = _regions(node, value, rois, wide, (width, height))
    batch = value.tensor.shape[0]
    index = Formula(emit, counted_from_front(emit, emit.convert(batches, dtypes.int64), batch))
    if ratio:
        total = _sampled_evenly(emit, image, index, rows, columns, ratio, largest)
    else:
        total = _sampled_as_needed(emit, image, index, rows, columns, largest)
    return emit.convert(emit.transpose(total, (0, 3, 1, 2)), kind)


def _positive(node: OnnxNode, name: str) -> int:
    found = node.integer(name, 1)
    if not 0 < found < 2**20:
        raise NodeFault(1108, f"attribute {name!r} is {found}, it must be positive")
    return found


def _check(node: OnnxNode, value: Value, rois: Value, columns: int) -> None:
    if value.tensor.rank != 4 or rois.tensor.rank != 2:
        raise NodeFault(1119, f"the input {value.type} must have 4 dimensions, the regions {rois.type} 2")
    require_equal(node.symbols, rois.tensor.shape[1], dim(columns), "the regions' columns")


def _as_one(emit: Emitter, value: Value) -> Value:
    """[N, C, H, W] as one image [1, C, N, H, W], so that a region's own image is a coordinate like the others."""
    batch, channels, height, width = value.tensor.shape
    return emit.reshape(emit.transpose(value, (1, 0, 2, 3)), (1, channels, batch, height, width))


def _regions(
    node: OnnxNode, value: Value, rois: Value, wide: DType, bins: tuple[int, int]
) -> tuple[_Regions, _Regions]:
    """Along the columns, and along the rows. Without the half pixel's shift, regions are at least 1 x 1."""
    emit = node.emit
    scale = finite(node.number("spatial_scale", 1.0), "attribute 'spatial_scale'")
    shifted = node.opset >= 16 and (
        node.choice("coordinate_transformation_mode", "half_pixel", ("half_pixel", "output_half_pixel")) == "half_pixel"
    )
    found: list[_Regions] = []
    for axis in range(2):
        start, end = (
            Formula(emit, emit.drop_dims(emit.slice_axis(rois, 1, c, c + 1), [1])).to(wide) * scale
            for c in (axis, axis + 2)
        )
        if shifted:
            start, end = start - 0.5, end - 0.5
        length = end - start if shifted else (end - start).maximum(1)
        found.append(_Regions(start, length / bins[axis], length, value.tensor.shape[3 - axis], bins[axis]))
    return found[0], found[1]


def _near(at: Formula, size: Dim) -> list[Neighbour]:
    """Neighbours of a coordinate: up to one element outside the image is its edge, farther out is 0."""
    count = extent(at.emit, size, at.dtype)
    inside = (at >= -1) & (at <= count)
    at = at.clamp(0, count - 1)
    low = at.floor()
    behind = at - low
    return [
        Neighbour(position_of(low, size), 1 - behind, inside),
        Neighbour(position_of(low + 1, size), behind, inside),
    ]


def _combined(largest: bool) -> str:
    return "maximum" if largest else "sum"


def _sampled_evenly(
    emit: Emitter, image: Value, index: Formula, rows: _Regions, columns: _Regions, ratio: int, largest: bool
) -> Value:
    """`ratio` x `ratio` samples in every bin: [R, height, width, C]. The largest is that of the weighted elements."""
    count = index.shape[0]
    shape = [count, dim(rows.bins), dim(ratio), dim(columns.bins), dim(ratio)]

    def places(regions: _Regions, place: int) -> Formula:
        start, size = (part.reshape((1, count, 1, 1, 1, 1)) for part in (regions.start, regions.bin))
        step = counted(emit, regions.bins, place, 6).to(start.dtype)
        inner = (counted(emit, ratio, place + 1, 6).to(start.dtype) + 0.5) / ratio
        return start + step * size + inner * size

    own = Neighbour(index.reshape((1, count, 1, 1, 1, 1)))
    near = [[own], _near(places(rows, 2), rows.size), _near(places(columns, 4), columns.size)]
    found = sampled(emit, image, shape, near, Formula.maximum if largest else Formula.__add__)
    pooled = emit.drop_dims(emit.reduce(found.value, [3, 5], _combined(largest), keep=False), [0])
    return pooled if largest else emit.apply("divide", pooled, ratio * ratio)


def _sampled_as_needed(
    emit: Emitter, image: Value, index: Formula, rows: _Regions, columns: _Regions, largest: bool
) -> Value:
    """As many samples as a bin has elements, rounded up: another number for every region, so they are taken in turn."""
    count, channels = index.shape[0], image.tensor.shape[1]
    down, across = ((part.extent / part.bins).ceil().to(dtypes.int64).maximum(0) for part in (rows, columns))
    samples = down * across
    shape = [count, dim(rows.bins), dim(columns.bins), channels]
    kind = image.tensor.dtype
    most = emit.reduce(samples.maximum(0).value, [0], "maximum", keep=False)
    state = (emit.scalar(0, dtypes.int64), emit.fill(float("-inf") if largest else 0, kind, shape))

    asked = emit.inside("condition")
    formals = [asked.builder.input(asked.builder.fresh("state"), v.tensor.dtype, *v.tensor.shape) for v in state]
    condition = asked.build([asked.compare("LT", formals[0], most)])

    inner = emit.inside("body")
    formals = [inner.builder.input(inner.builder.fresh("state"), v.tensor.dtype, *v.tensor.shape) for v in state]
    trip = Formula(inner, formals[0])
    wide = Formula(inner, across.value).maximum(1)
    row = trip / wide
    column = trip - row * wide
    near = [
        [Neighbour(Formula(inner, index.value).reshape((1, count, 1, 1)))],
        _near(_turn(inner, rows, row, Formula(inner, down.value), 2), rows.size),
        _near(_turn(inner, columns, column, wide, 3), columns.size),
    ]
    join = Formula.maximum if largest else Formula.__add__
    found = sampled(inner, image, shape[:-1], near, join).reshape(shape)
    taken = (trip < Formula(inner, samples.value)).reshape((count, 1, 1, 1))
    total = Formula(inner, formals[1])
    body = inner.build([(trip + 1).value, taken.select(join(total, found), total).value])
    _, result = emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=(condition, body))
    total = Formula(emit, result)
    number = samples.reshape((count, 1, 1, 1))
    return (number.equals(0).select(0, total) if largest else total / number.maximum(1).to(kind)).value


def _turn(inner: Emitter, regions: _Regions, number: Formula, of: Formula, place: int) -> Formula:
    """The coordinates of one sample of every bin: number `number` of `of`."""
    start, size = Formula(inner, regions.start.value), Formula(inner, regions.bin.value)
    shape = (1, start.shape[0], 1, 1)
    within = (number.to(start.dtype) + 0.5) * size / of.to(start.dtype)
    step = counted(inner, regions.bins, place, 4).to(start.dtype)
    return start.reshape(shape) + step * size.reshape(shape) + within.reshape(shape)


# -- MaxRoiPool --------------------------------------------------------------------------------------------------------
def _max_roi_pool(node: OnnxNode) -> Value:
    """The largest element of every bin, columns first and then rows; 0 where a bin is empty."""
    value, rois, emit = node.value(0), node.value(1), node.emit
    _check(node, value, rois, 5)
    bins = node.integers("pooled_shape")
    if len(bins) != 2 or any(not 0 < entry < 2**20 for entry in bins):
        raise NodeFault(1108, f"attribute 'pooled_shape' is {list(bins)}, it must be two positive numbers")
    kind = element(value)
    regions = Formula(emit, rois).to(kind if kind.bits == 64 else dtypes.float32)
    number = emit.drop_dims(emit.slice_axis(regions.value, 1, 0, 1), [1])
    index = counted_from_front(emit, number, value.tensor.shape[0])  # before it is an integer: NaN is none
    own = emit.apply("take", value, emit.convert(index, dtypes.int64), dimension=0)
    scale = finite(node.number("spatial_scale", 1.0), "attribute 'spatial_scale'")
    held = Formula(emit, own)  # [R, C, H, W]
    lowest = float("-inf")
    filled: list[Formula] = []
    for axis in (1, 0):
        inside = _bins(regions, axis, bins[axis], value.tensor.shape[2 + axis], scale)  # [R, bins, extent]
        count, number, size = inside.shape
        rank = len(held.shape)
        # [R, C, (H,) (bins of rows: not yet) ...]: a new dimension of bins before the one that is pooled
        shape = [count, *(1,) * (rank - 2), number, size]
        moved = held if axis == 1 else Formula(emit, emit.transpose(held.value, (0, 1, 3, 2)))
        spread = moved.reshape((*moved.shape[:-1], 1, moved.shape[-1]))
        largest = inside.reshape(shape).select(spread, lowest)
        held = Formula(emit, emit.reduce(largest.value, [rank], "maximum", keep=False))
        some = Formula(emit, emit.reduce(inside.value, [2], "or", keep=False))
        filled.insert(0, some)
    rows, columns = filled
    found = Formula(emit, emit.transpose(held.value, (0, 1, 3, 2)))
    count = rois.tensor.shape[0]
    covered = rows.reshape((count, 1, bins[0], 1)) & columns.reshape((count, 1, 1, bins[1]))
    return covered.select(found, 0).value


def _bins(regions: Formula, axis: int, bins: int, size: Dim, scale: float) -> Formula:
    """Which elements along one dimension belong to which bin of which region: [R, bins, extent]."""
    emit, wide = regions.emit, regions.dtype
    ends = (Formula(emit, emit.slice_axis(regions.value, 1, c, c + 1)) * scale for c in (2 - axis, 4 - axis))
    start, end = ((abs(at) + 0.5).floor() * (at < 0).select(Formula(emit, emit.scalar(-1, wide)), 1) for at in ends)
    each = ((end - start + 1).maximum(1) / bins).reshape((start.shape[0], 1, 1))
    start = start.reshape((start.shape[0], 1, 1))
    number = counted(emit, bins, 1, 3).to(wide)
    first, last = (number * each).floor() + start, ((number + 1) * each).ceil() + start
    place = counted(emit, size, 2, 3).to(wide)
    return (place >= first) & (place < last)


CONVERTERS: dict[str, Converter] = {"MaxRoiPool": _max_roi_pool, "RoiAlign": _roi_align}
