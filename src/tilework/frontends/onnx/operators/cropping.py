"""CenterCropPad: dimensions cut or padded with zeros at both ends alike."""

from __future__ import annotations

from tilework.dims import dim, maximum
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.graph.graph import Value


def _center_crop_pad(node: OnnxNode) -> Value:
    """What does not divide evenly is cut from, or added to, the end."""
    value, emit = node.value(0), node.emit
    rank, shape = value.tensor.rank, value.tensor.shape
    places = [node.axis(axis, rank) for axis in node.integers("axes", tuple(range(rank)))]
    wanted = node.dims(1, "the shape")
    if len(wanted) != len(places) or len(set(places)) != len(places):
        raise NodeFault(1119, f"{len(wanted)} extents for axes {places}")
    if any(size.is_constant and size.constant < 0 for size in wanted):
        raise NodeFault(1119, f"the shape [{', '.join(map(str, wanted))}] has a negative extent")
    starts, limits, result = [dim(0)] * rank, list(shape), list(shape)
    low, high = [dim(0)] * rank, [dim(0)] * rank
    simplify = node.symbols.simplify
    for place, size in zip(places, wanted, strict=True):
        more, less = simplify(maximum(0, size - shape[place])), simplify(maximum(0, shape[place] - size))
        starts[place] = less // 2
        limits[place] = simplify(shape[place] - less + starts[place])
        low[place], high[place] = more // 2, simplify(more - more // 2)
        result[place] = size
    return emit.assumed(emit.pad(emit.slice(value, starts, limits), 0, low, high), result)


CONVERTERS: dict[str, Converter] = {"CenterCropPad": _center_crop_pad}
