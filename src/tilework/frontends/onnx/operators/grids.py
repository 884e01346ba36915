"""Images sampled along grids: GridSample, and the grids that AffineGrid makes."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula, counting, extent
from tilework.frontends.onnx.interpolation import Kernel, cubic_kernel, linear_kernel
from tilework.frontends.onnx.node import OnnxNode, element, fixed_extent
from tilework.frontends.onnx.sampling import Neighbour, channels_first, position_of, sampled
from tilework.frontends.onnx.unify import equal
from tilework.graph.graph import Value

_CUBIC = -0.75
_MODES = {"bilinear": "linear", "linear": "linear", "bicubic": "cubic", "cubic": "cubic", "nearest": "nearest"}


# -- GridSample --------------------------------------------------------------------------------------------------------
def _grid_sample(node: OnnxNode) -> Value:
    image, grid, emit = node.value(0), node.value(1), node.emit
    rank = image.tensor.rank - 2
    if rank < 1 or grid.tensor.rank != rank + 2 or fixed_extent(grid.tensor.shape[-1], "the last dimension") != rank:
        raise NodeFault(1119, f"the image {image.type} and the grid {grid.type} do not fit")
    equal(node.symbols, image.tensor.shape[0], grid.tensor.shape[0], "batches of image and grid")
    grid = emit.assumed(grid, (image.tensor.shape[0], *grid.tensor.shape[1:]))
    mode = _MODES[node.choice("mode", "linear" if node.opset >= 20 else "bilinear", tuple(_MODES))]
    padding = node.choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    aligned = node.flag("align_corners")
    kind = element(image)
    wide = _computed_in(kind, element(grid))
    if mode != "nearest" and not (kind.is_integer or kind.is_floating):
        raise NodeFault(1123, f"mode {mode!r} of {kind} is not supported")
    shape = grid.tensor.shape[1:-1]
    near: list[list[Neighbour]] = []
    for place, size in enumerate(image.tensor.shape[2:]):
        column = rank - 1 - place  # the grid names columns first
        part = emit.slice_axis(grid, rank + 1, column, column + 1)
        at = Formula(emit, emit.drop_dims(part, [rank + 1])).to(wide)
        near.append(_neighbours(at, size, mode, padding, aligned))
    if mode == "nearest":
        return channels_first(sampled(emit, image, shape, near))
    found = sampled(emit, emit.convert(image, wide), shape, near)
    return channels_first(found.to(kind))


def _computed_in(*kinds: DType) -> DType:
    return dtypes.float64 if any(k.bits > 32 or (k.is_integer and k.bits > 16) for k in kinds) else dtypes.float32


def _neighbours(at: Formula, size: Dim, mode: str, padding: str, aligned: bool) -> list[Neighbour]:
    """The neighbours of normalised coordinates (-1 to 1) along one dimension.

    Of cubics the neighbours alone are brought to the border, not the coordinate too, as onnx.reference does: so it is
    in ONNX Runtime and in PyTorch, whose operator it is.
    """
    count = extent(at.emit, size, at.dtype)
    at = (at + 1) / 2 * (count - 1) if aligned else ((at + 1) * count - 1) / 2
    if mode == "nearest":
        at = at.rounded()
    low, high = (0 * count, count - 1) if aligned else (0 * count - 0.5, count - 0.5)
    outside = (at < low) | (at > high)
    if padding == "border" and mode != "cubic":
        at = outside.select(at.clamp(0, count - 1), at)
    elif padding == "reflection":
        at = outside.select(_reflected(at, low, high), at)
    if mode == "nearest":
        return [_neighbour(at, None, size, padding, low, high)]
    kernel: Kernel = linear_kernel(False) if mode == "linear" else cubic_kernel(_CUBIC, False)
    first = at.floor()
    return [
        _neighbour(first + offset, kernel.weights(at - first, offset), size, padding, low, high)
        for offset in kernel.offsets
    ]


def _neighbour(
    place: Formula, weight: Formula | None, size: Dim, padding: str, low: Formula, high: Formula
) -> Neighbour:
    last = extent(place.emit, size - 1, place.dtype)
    if padding == "zeros":
        return Neighbour(position_of(place, size), weight, (place >= 0) & (place <= last))
    if padding == "reflection":
        place = ((place < low) | (place > high)).select(_reflected(place, low, high), place)
    return Neighbour(position_of(place, size), weight)


def _reflected(at: Formula, low: Formula, high: Formula) -> Formula:
    """Mirrored at both ends until it lies between them."""
    period = (high - low) * 2
    behind = (at - low) % period.maximum(1)  # one element alone has no period
    return (behind.minimum(period - behind) + low).clamp(low, high)


# -- AffineGrid --------------------------------------------------------------------------------------------------------
def _affine_grid(node: OnnxNode) -> Value:
    """For every element of an image its coordinates, from -1 to 1, mapped by a matrix."""
    theta, emit = node.value(0), node.emit
    size = node.dims(1, "the size")
    rank = len(size) - 2
    if rank not in (2, 3) or theta.tensor.rank != 3:
        raise NodeFault(1119, f"theta {theta.type} with a size of {len(size)} entries: 4 or 5 are needed")
    equal(node.symbols, theta.tensor.shape[0], size[0], "batches of theta and size")
    for place, wanted in ((1, rank), (2, rank + 1)):
        equal(node.symbols, theta.tensor.shape[place], dim(wanted), f"dimension {place} of theta")
    theta = emit.assumed(theta, (size[0], dim(rank), dim(rank + 1)))
    kind = element(theta)
    wide = kind if kind.bits == 64 else dtypes.float32
    matrix = Formula(emit, theta).to(wide)
    batch, spatial = theta.tensor.shape[0], size[2:]

    def column(number: int) -> Formula:
        """A column of the matrices as [N, 1, ..., rank]."""
        part = emit.drop_dims(emit.slice_axis(matrix.value, 2, number, number + 1), [2])
        return Formula(emit, part).reshape((batch, *(1,) * rank, rank))

    found = column(rank)
    for place, count in enumerate(spatial):
        steps = _normalised(emit, count, wide, node.flag("align_corners"))
        shape = [count if k == place + 1 else 1 for k in range(rank + 2)]
        found = found + column(rank - 1 - place) * steps.reshape(shape)
    return emit.broadcast(found.to(kind).value, (batch, *spatial, rank))


def _normalised(emit: Emitter, count: Dim, kind: DType, aligned: bool) -> Formula:
    """Coordinates from -1 to 1: of the elements' middles, or with the first and last at the ends."""
    index, whole = counting(emit, count).to(kind), extent(emit, count, kind)
    if aligned:
        return index * 2 / (whole - 1).maximum(1) - 1
    return (index * 2 + 1) / whole - 1


CONVERTERS: dict[str, Converter] = {"AffineGrid": _affine_grid, "GridSample": _grid_sample}
