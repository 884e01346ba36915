"""Positions in dimensions: constants are checked at import, those of operators that do not count from the end where it
runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula, extent
from tilework.frontends.onnx.node import OnnxNode
from tilework.graph.graph import Value


def check_positions(node: OnnxNode, input_place: int, value: Value, axis: int) -> None:
    """Check the positions of a constant input along one dimension of `value`; see `check_tuples`."""
    _check(node, _constants(node, input_place), value, axis)


def check_tuples(node: OnnxNode, input_place: int, value: Value, axes: Sequence[int]) -> None:
    """Check tuples of positions along the last dimension of a constant input, each along its own dimension of `value`.

    A free dimension gets the lower bound that the positions need, where one bound of one symbol says so. What is not
    decided here, and what is no constant, is checked where it runs. Raises `NodeFault` 1119.
    """
    array = node.operand(input_place).array
    if array is None:
        return
    for place, axis in enumerate(axes):
        column = array[..., place]
        _check(node, [int(column.min()), int(column.max())] if column.size else [], value, axis)


def _constants(node: OnnxNode, input_place: int) -> list[int]:
    """The extremes of a constant, or the entries that are constant of a list of symbolic integers."""
    operand = node.operand(input_place)
    if operand.array is not None:
        return [int(operand.array.min()), int(operand.array.max())] if operand.array.size else []
    if operand.dims is None:
        return []
    return [entry.constant for entry in operand.dims.reshape(-1) if entry.is_constant]


def _check(node: OnnxNode, positions: Sequence[int], value: Value, axis: int) -> None:
    extent = value.tensor.shape[axis]
    for position in positions:
        least = position + 1 if position >= 0 else -position
        if not node.symbols.require_at_least(extent, least) and node.symbols.decide_at_least(extent, least) is False:
            text = f"index {position} is outside dimension {axis} of {value.type}"
            raise NodeFault(1119, f"{text}: from {-extent} to {extent - 1} is inside")


def counted_from_front(emit: Emitter, positions: Value, size: Dim) -> Value:
    """Positions of an operator for which negative ones have no meaning, as operators of the graph take them.

    Those would count from the end, or, where positions are made to offsets first, name an element of another row: they
    become `size`, which is outside, so the access ends the run with error 1801. So does what is larger than `size`.
    """
    found, end = Formula(emit, positions), extent(emit, size, positions.tensor.dtype)
    return ((found >= 0) & (found < end)).select(found, end).value


def required(emit: Emitter, value: Value, holds: Value, called: str) -> Value:
    """A number where a condition holds; elsewhere the run ends with error 1801, which names what is `called` so.

    The number is the only element of a vector, and read from there at position 0, or at 1, which is outside.
    """
    only = emit.builder.apply_one(
        "reshape", value, shape=(dim(1),), location=emit.location, names=emit.builder.fresh(called)
    )
    place = emit.apply("select", holds, emit.scalar(0, dtypes.int64), emit.scalar(1, dtypes.int64))
    return emit.apply("take", only, place, dimension=0)
