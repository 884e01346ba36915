"""Moving the elements of integer tensors that are followed symbolically; see `shape_arithmetic`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tilework.dims import Dim, product
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import LARGEST_KNOWN, DimArray
from tilework.graph.limits import MOST_DIMENSIONS

Rule: TypeAlias = "Callable[[OnnxNode, Sequence[DimArray]], DimArray | list[DimArray] | None]"
"""Takes a node and its operands as arrays of `Dim`; returns the result, or None where it is not decided."""


def _gather(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data, indices = operands
    places = plain_integers(indices)
    if places is None or data.ndim + indices.ndim - 1 > MOST_DIMENSIONS:
        return None
    axis = node.axis(node.integer("axis", 0), data.ndim)
    extent = data.shape[axis]
    if any(not -extent <= place < extent for place in places):
        raise NodeFault(1119, f"an index of {places} is outside 0..{extent - 1}")
    # numpy hands out a bare element for an index without dimensions: taken as a list and reshaped instead
    found: DimArray = np.take(data, np.array(places, np.int64), axis)
    return found.reshape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))


def plain_integers(values: DimArray) -> list[int] | None:
    """The elements as integers, or None where one is symbolic."""
    entries: list[Dim] = list(values.reshape(-1))
    return [entry.constant for entry in entries] if all(entry.is_constant for entry in entries) else None


def listed_integers(node: OnnxNode, operands: Sequence[DimArray], position: int, attribute: str) -> list[int] | None:
    """Plain integers from an input where it is given, else from an attribute."""
    if len(operands) > position:
        return plain_integers(operands[position])
    return list(node.integers(attribute)) if node.given(attribute) else None


def _slice(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data = operands[0]
    starts, ends = listed_integers(node, operands, 1, "starts"), listed_integers(node, operands, 2, "ends")
    if starts is None or ends is None or len(starts) != len(ends):
        return None
    axes = listed_integers(node, operands, 3, "axes") or list(range(len(starts)))
    steps = listed_integers(node, operands, 4, "steps") or [1] * len(starts)
    if not len(starts) == len(axes) == len(steps) or 0 in steps:
        return None
    parts = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = node.axis(axis, data.ndim)
        extent = data.shape[place]
        # backwards, a start before the first element is the first one, and an end before it is None: -1 would wrap
        begin = max(start, -extent) if step < 0 and extent else start
        stop = None if step < 0 and end < -extent else end
        parts[place] = slice(begin, stop, step)
    return data[tuple(parts)]


def _concat(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    axis = node.axis(node.integer("axis"), operands[0].ndim)
    try:
        return np.concatenate(list(operands), axis)
    except ValueError:
        raise NodeFault(1119, f"shapes {[o.shape for o in operands]} do not concatenate") from None


def _unsqueeze(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    axes = listed_integers(node, operands, 1, "axes")
    if axes is None or operands[0].ndim + len(axes) > MOST_DIMENSIONS:
        return None
    return np.expand_dims(operands[0], node.axes(axes, operands[0].ndim + len(axes)))


def _squeeze(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data = operands[0]
    axes = listed_integers(node, operands, 1, "axes")
    chosen = [a for a, s in enumerate(data.shape) if s == 1] if axes is None else node.axes(axes, data.ndim)
    if any(data.shape[axis] != 1 for axis in chosen):
        raise NodeFault(1119, f"dimensions {list(chosen)} of shape {data.shape} are not all 1")
    return data.reshape([s for a, s in enumerate(data.shape) if a not in chosen])


def _reshape(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    shape = listed_integers(node, operands, 1, "shape")
    if shape is None or node.flag("allowzero") or len(shape) > MOST_DIMENSIONS:
        return None
    data = operands[0]
    if any(extent == 0 and place >= data.ndim for place, extent in enumerate(shape)):
        return None
    wanted = [data.shape[place] if extent == 0 else extent for place, extent in enumerate(shape)]
    try:
        return data.reshape(wanted)
    except ValueError:
        raise NodeFault(1119, f"shape {data.shape} does not reshape to {shape}") from None


def _transpose(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data = operands[0]
    permutation = node.integers("perm", tuple(reversed(range(data.ndim))))
    return data.transpose(permutation) if sorted(permutation) == list(range(data.ndim)) else None


def _expand(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    shape = plain_integers(operands[1])
    if shape is None or any(extent < 0 for extent in shape) or product(shape).constant > LARGEST_KNOWN:
        return None
    try:
        return np.broadcast_to(operands[0], np.broadcast_shapes(operands[0].shape, tuple(shape)))
    except ValueError:
        raise NodeFault(1119, f"shape {operands[0].shape} does not expand to {shape}") from None


def _tile(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    repeats = plain_integers(operands[1])
    data = operands[0]
    if repeats is None or len(repeats) != data.ndim or any(r < 0 or r > LARGEST_KNOWN for r in repeats):
        return None
    return np.tile(data, repeats) if data.size * product(repeats).constant <= LARGEST_KNOWN else None


def _split(node: OnnxNode, operands: Sequence[DimArray]) -> list[DimArray] | None:
    data = operands[0]
    axis = node.axis(node.integer("axis", 0), data.ndim)
    sizes = listed_integers(node, operands, 1, "split")
    count = len(node.outputs)
    if sizes is None:
        chunk = -(-data.shape[axis] // count)
        sizes = [min(chunk, data.shape[axis] - chunk * part) for part in range(count)]
    if sum(sizes) != data.shape[axis] or len(sizes) != count or min(sizes, default=0) < 0:
        return None
    return list(np.split(data, np.cumsum(sizes)[:-1].tolist(), axis))


MOVEMENT_RULES: dict[str, Rule] = {
    "Concat": _concat, "Expand": _expand, "Gather": _gather, "Reshape": _reshape, "Slice": _slice, "Split": _split,
    "Squeeze": _squeeze, "Tile": _tile, "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
