"""Windows put back into the images that they were taken from: Col2Im, and MaxUnpool for the largest of each."""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.dims import Dim, dim, product
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.positions import counted_from_front
from tilework.frontends.onnx.unify import equal, require_divisible
from tilework.frontends.onnx.windows import spatial_pads
from tilework.graph.graph import Value


def _col2im(node: OnnxNode) -> Value:
    """The sum of all windows where they overlap, one dimension after another."""
    value, emit = node.value(0), node.emit
    image, block = node.dims(1, "the image's shape"), node.fixed(2, "the block's shape")
    rank = len(block)
    if value.tensor.rank != 3 or len(image) != rank or not rank or any(not 0 < k < 2**31 for k in block):
        raise NodeFault(
            1119, f"columns {value.type} with a block of {list(block)} and an image of {len(image)} extents"
        )
    strides, dilations = node.positives("strides", rank), node.positives("dilations", rank)
    pads = spatial_pads(node, rank)
    batch, rows, columns = value.tensor.shape
    channels = require_divisible(rows, math.prod(block), "the rows of the columns")
    counts: list[Dim] = []
    unsure: list[Dim] = []
    for axis in range(rank):
        low, high = pads[axis]
        room = image[axis] + low + high - (block[axis] - 1) * dilations[axis] - 1
        fits = node.symbols.require_at_least(room, 0)
        if not fits and any(map(node.symbols.is_measured, room.names())):
            unsure.append(room)
        elif not fits and room.is_constant:
            raise NodeFault(1119, f"a block that spans {image[axis] + low + high - room} is larger than the image")
        counts.append(node.symbols.simplify(room // strides[axis] + 1))
    equal(node.symbols, columns, product(counts), "the number of columns and of the block's positions")
    # [N, C, *block, *positions]: what is not known to be equal is assumed
    held = emit.reshape(emit.assumed(value, (batch, rows, product(counts)), unsure), (batch, channels, *block, *counts))
    for axis in range(rank):
        shape = held.tensor.shape  # [N, C, block from this axis on, image so far, positions from this axis on]
        place = 2 + rank
        total: Value | None = None
        for offset in range(block[axis]):
            part = emit.drop_dims(emit.slice_axis(held, 2, offset, offset + 1), [2])
            low = dim(offset * dilations[axis] - pads[axis][0])
            high = image[axis] - 1 - low - (shape[place] - 1) * strides[axis]
            none = [0] * part.tensor.rank
            spread = emit.pad(
                part, 0, [*none[: place - 1], low, *none[place:]], [*none[: place - 1], high, *none[place:]],
                [*none[: place - 1], strides[axis] - 1, *none[place:]],
            )  # fmt: skip
            fitted = list(part.tensor.shape)
            fitted[place - 1] = image[axis]
            spread = emit.assumed(spread, fitted)
            total = spread if total is None else emit.apply("add", total, spread)
        assert total is not None
        held = total
    return held


def _max_unpool(node: OnnxNode) -> Value:
    """Zeros, and the elements at the places that they had in the flattened image.

    Where another shape is given, the image that the window implies lies in its first corner, as ONNX's own cases have
    it. (ONNX Runtime takes the places for those of the shape given.)
    """
    value, places, emit = node.value(0), node.value(1), node.emit
    rank = value.tensor.rank - 2
    if rank < 1 or places.tensor.rank != rank + 2:
        raise NodeFault(1119, f"the input {value.type} and the indices {places.type} do not fit")
    for axis, (one, other) in enumerate(zip(value.tensor.shape, places.tensor.shape, strict=True)):
        equal(node.symbols, one, other, f"dimension {axis} of input and indices")
    places = emit.assumed(places, value.tensor.shape)
    if not node.given("kernel_shape"):
        raise NodeFault(1108, "attribute 'kernel_shape' is missing")
    size, strides, pads = (
        node.positives("kernel_shape", rank),
        node.positives("strides", rank),
        spatial_pads(node, rank),
    )
    spatial = [
        node.symbols.simplify((extent - 1) * strides[axis] - sum(pads[axis]) + size[axis])
        for axis, extent in enumerate(value.tensor.shape[2:])
    ]
    shape = (*value.tensor.shape[:2], *spatial)
    if any(extent.is_constant and extent.constant < 0 for extent in spatial):
        raise NodeFault(1119, f"the result [{', '.join(map(str, shape))}] has a negative extent")
    zeros = emit.fill(0, element(value), (product(shape),))
    count = value.tensor.size
    index = emit.convert(emit.reshape(places, (count, 1)), dtypes.int64)
    index = counted_from_front(emit, index, product(shape))
    found = emit.apply("scatter_nd", zeros, index, emit.reshape(value, (count,)), reducer="replace")
    image = emit.reshape(found, shape)
    if not node.has(2):
        return image
    wanted = node.dims(2, "the output's shape")
    if len(wanted) != rank + 2:
        raise NodeFault(1119, f"the output's shape has {len(wanted)} entries, {rank + 2} are needed")
    return emit.pad(image, 0, [0] * (rank + 2), [new - old for new, old in zip(wanted, shape, strict=True)])


CONVERTERS: dict[str, Converter] = {"Col2Im": _col2im, "MaxUnpool": _max_unpool}
