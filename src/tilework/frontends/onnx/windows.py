"""Windows that slide over spatial dimensions: strides, dilations, padding, symbolic extents included."""

from __future__ import annotations

from tilework.dims import Dim, dim, maximum, minimum
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.graph.graph import Value

Pads = tuple[tuple[Dim, Dim], ...]

_AUTOMATIC = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """A window over the spatial dimensions of an input."""

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: Pads
    """Low and high, as the model asks for it."""
    extension: tuple[Dim, ...]
    """What rounding the output up adds to the high side (0 unless `ceil_mode`)."""
    unsure: tuple[Dim, ...] = ()
    """What is to be checked (>= 0) so that the window fits where data decide the extents; see `fitting`."""

    @property
    def padded(self) -> Pads:
        """Low and high, with the extension."""
        return tuple((low, high + more) for (low, high), more in zip(self.padding, self.extension, strict=True))

    @property
    def is_padded(self) -> bool:
        return any(p != 0 for pair in self.padded for p in pair)


def spatial_pads(node: OnnxNode, rank: int) -> list[tuple[int, int]]:
    """The attribute `pads`: all low sides, then all high sides."""
    pads = node.integers("pads", (0,) * (2 * rank))
    if len(pads) != 2 * rank:
        raise NodeFault(1108, f"attribute 'pads' has {len(pads)} entries, {2 * rank} are needed")
    if any(not 0 <= p < 2**31 for p in pads):
        raise NodeFault(1108, f"attribute 'pads' is {list(pads)}, entries must be 0 or more and below 2**31")
    return [(pads[axis], pads[axis + rank]) for axis in range(rank)]


def read_window(
    node: OnnxNode, spatial: tuple[Dim, ...], size: tuple[int, ...], *, overhanging: bool = False
) -> Window:
    """The window of a convolution or pooling over an input with these spatial extents.

    A free extent gets the lower bound that the window needs, a measured one is `unsure`. `overhanging`: where an input
    is smaller than the window by less than a stride there is one window, of what there is, and by less than two there
    is none: ONNX Runtime rounds towards zero there.

    Raises `NodeFault` 1108, 1119, 1123.
    """
    rank = len(spatial)
    strides, dilations = node.positives("strides", rank), node.positives("dilations", rank)
    automatic = node.choice("auto_pad", "NOTSET", _AUTOMATIC)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    padding: list[tuple[Dim, Dim]] = []
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        for extent, stride, span in zip(spatial, strides, reach, strict=True):
            padding.append(_same(node, extent, stride, span, automatic == "SAME_UPPER", cuts=overhanging))
    elif automatic == "VALID":
        padding = [(dim(0), dim(0))] * rank
    else:
        padding = [(dim(low), dim(high)) for low, high in spatial_pads(node, rank)]
    extension: list[Dim] = []
    unsure: list[Dim] = []
    for axis, extent in enumerate(spatial):
        low, high = padding[axis]
        room = node.symbols.simplify(extent + low + high - reach[axis])
        rounded = node.flag("ceil_mode") and automatic == "NOTSET"
        if overhanging and room.is_constant and -strides[axis] < room.constant < 0:
            extension.append(_rounding(node, extent + low, room, strides[axis]) if rounded else -room)
            continue
        if overhanging and room.is_constant and -2 * strides[axis] < room.constant < 0 and extent != 0:
            extension.append(dim(0))
            continue
        fits = node.symbols.require_at_least(room, 0)
        if not fits and room.is_constant:
            text = f"a window that spans {reach[axis]} is larger than the padded input ({room + reach[axis]})"
            raise NodeFault(1119, text)
        if rounded:
            extension.append(_rounding(node, extent + low, room, strides[axis]))
        elif overhanging and not fits:  # no bound of a symbol says that it fits: a call's own sizes do
            extension.append(node.symbols.simplify(minimum(maximum(0, -room), strides[axis] - 1)))
        else:
            extension.append(dim(0))
        if not fits and any(map(node.symbols.is_measured, room.names())):
            unsure.append(room + extension[-1] + strides[axis] if overhanging else room)
    return Window(size, strides, dilations, tuple(padding), tuple(extension), tuple(unsure))


def fitting(node: OnnxNode, value: Value, window: Window) -> Value:
    """The input of a window, after a check that it fits into it where data decide that."""
    return node.emit.assumed(value, value.tensor.shape, window.unsure)


def _same(node: OnnxNode, extent: Dim, stride: int, span: int, upper: bool, *, cuts: bool) -> tuple[Dim, Dim]:
    """Padding with which the output has ceil(extent / stride) elements; the odd one goes to the upper or lower side.

    `cuts`: it is negative, halves rounded towards zero, where windows leave out two elements or more between them.
    """
    total = (extent.ceildiv(stride) - 1) * stride + span - extent
    if cuts and stride > span + 1:
        more = 0 if upper else 1
        low = node.symbols.simplify(maximum(0, total + more) // 2 - maximum(0, -total - more) // 2)
        return low, node.symbols.simplify(total - low)
    total = node.symbols.simplify(maximum(0, total))
    half = node.symbols.simplify(total // 2)
    return (half, total - half) if upper else (total - half, half)


def _rounding(node: OnnxNode, before_end: Dim, room: Dim, stride: int) -> Dim:
    """How far the last window of a rounded-up output reaches past the padded input; no window starts past the input."""
    count = minimum(room.ceildiv(stride) + 1, (before_end - 1) // stride + 1)
    return node.symbols.simplify(maximum(0, (count - 1) * stride - room))
