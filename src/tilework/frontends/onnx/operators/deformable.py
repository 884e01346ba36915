"""DeformConv: a convolution whose taps lie where data say, between the elements of the image."""

from __future__ import annotations

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula
from tilework.frontends.onnx.node import OnnxNode, element, fixed_extent
from tilework.frontends.onnx.operators.normalizations import per_channel
from tilework.frontends.onnx.sampling import Neighbour, between, channels_first, counted, sampled
from tilework.frontends.onnx.unify import equal, require_divisible, require_equal
from tilework.frontends.onnx.windows import fitting, read_window
from tilework.graph.graph import Value


def _deform_conv(node: OnnxNode) -> Value:
    """Every tap is sampled linearly (0 outside the image), and the samples are multiplied by the weights."""
    value, weight, emit = node.value(0), node.value(1), node.emit
    rank = value.tensor.rank - 2
    if rank < 1 or weight.tensor.rank != rank + 2:
        raise NodeFault(1119, f"the input {value.type} and the weights {weight.type} must have one rank, 3 or more")
    size = tuple(fixed_extent(extent, "an extent of the weights") for extent in weight.tensor.shape[2:])
    if node.integers("kernel_shape", size) != size or 0 in size:
        raise NodeFault(1108, f"attribute 'kernel_shape' does not fit the weights {weight.type}")
    batch, channels = value.tensor.shape[:2]
    groups, parts = node.integer("group", 1), node.integer("offset_group", 1)
    for name, count in (("group", groups), ("offset_group", parts)):
        if not 0 < count < 2**31:
            raise NodeFault(1108, f"attribute {name!r} is {count}, it must be positive")
    outputs = require_divisible(weight.tensor.shape[0], groups, "the number of output channels")
    require_equal(node.symbols, channels, weight.tensor.shape[1] * groups, "channels of input and weights")
    each = require_divisible(channels, parts, "the number of channels")
    window = read_window(node, value.tensor.shape[2:], size)
    value = fitting(node, value, window)
    found = [
        node.symbols.simplify((extent + low + high - (k - 1) * d - 1) // s + 1)
        for extent, (low, high), k, d, s in zip(
            value.tensor.shape[2:], window.padding, size, window.dilations, window.strides, strict=True
        )
    ]
    kind = element(value)
    wide = kind if kind.bits == 64 else dtypes.float32
    taps = 1
    for extent in size:
        taps *= extent
    # one image for each group of offsets: [N x groups of offsets, channels of one, *spatial]
    images = emit.reshape(emit.convert(value, wide), (batch * parts, each, *value.tensor.shape[2:]))
    shape: list[Dim] = [*map(dim, size), *found]
    offsets = _split(node, node.value(2), (batch, dim(parts * taps * rank)), found, "the offsets")
    held = emit.reshape(offsets, (batch * parts, *size, rank, *found))
    near: list[list[Neighbour]] = []
    for axis in range(rank):
        part = emit.drop_dims(emit.slice_axis(held, 1 + rank, axis, axis + 1), [1 + rank])
        tap = counted(emit, size[axis], 1 + axis, 2 * rank + 1) * window.dilations[axis]
        start = counted(emit, found[axis], 1 + rank + axis, 2 * rank + 1) * window.strides[axis]
        at = Formula(emit, part).to(wide) + (tap + start - window.padding[axis][0].constant).to(wide)
        near.append(between(at, value.tensor.shape[2 + axis]))
    samples = sampled(emit, images, shape, near)
    if node.has(4):
        mask = _split(node, node.value(4), (batch, dim(parts * taps)), found, "the mask")
        samples = samples * Formula(emit, emit.reshape(mask, (batch * parts, *shape, 1))).to(wide)
    columns = channels_first(samples)
    inner = require_divisible(channels, groups, "the number of channels")
    columns = emit.reshape(columns, (batch, groups, inner * taps, *found))
    kernel = emit.reshape(emit.convert(weight, wide), (groups, outputs, inner * taps))
    product = emit.dot(kernel, columns, (0,), (1,), (2,), (2,))  # [group, outputs, N, *found]
    total = emit.transpose(product, (2, 0, 1, *range(3, 3 + rank)))
    total = emit.reshape(total, (batch, outputs * groups, *found))
    if node.has(3):
        total = emit.apply("add", total, per_channel(emit, emit.convert(node.value(3), wide), total))
    return emit.convert(total, kind)


def _split(node: OnnxNode, value: Value, lead: tuple[Dim, Dim], found: list[Dim], what: str) -> Value:
    """An operand that has a number for every tap at every place of the result, known or assumed."""
    wanted = (*lead, *found)
    if value.tensor.rank != len(wanted):
        raise NodeFault(1119, f"{what} are {value.type}, they must be [{', '.join(map(str, wanted))}]")
    for axis, (one, other) in enumerate(zip(value.tensor.shape, wanted, strict=True)):
        equal(node.symbols, one, other, f"dimension {axis} of {what} and of what they are for")
    return node.emit.assumed(value, wanted)


CONVERTERS: dict[str, Converter] = {"DeformConv": _deform_conv}
