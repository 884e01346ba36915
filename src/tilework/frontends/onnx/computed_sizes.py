"""Shapes, ranges and slices whose numbers the model computes from data: the sizes are measured when it runs.

Numbers that only integer inputs decide are left alone: a model is compiled for what these hold (`compiled.py`), and
keeps constant sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilework import dtypes
from tilework.dims import Dim
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import Operand
from tilework.frontends.onnx.positions import required
from tilework.graph.graph import Value

MOST = 16
"""Numbers of one list that are measured."""


def data_decide(node: OnnxNode, position: int) -> bool:
    """Whether an input is a short list of integers that only the run knows, and that not just integer inputs decide."""
    if not node.has(position):
        return False
    operand = node.operand(position)
    if operand.value is None or not operand.dtype.is_integer or operand.rank > 1 or operand.known() is not None:
        return False
    if any(not extent.is_constant or extent.constant > MOST for extent in operand.shape):
        return False
    return not _integer_inputs_decide(node.emit, operand.value)


def range_data_decide(node: OnnxNode) -> bool:
    """Whether data decide how long an ONNX Range is."""
    operands = [node.operand(position) for position in range(3)]
    unknown = [operand for operand in operands if operand.array is None and operand.known() is None]
    return any(o.value is not None and not _integer_inputs_decide(node.emit, o.value) for o in unknown)


def _integer_inputs_decide(emit: Emitter, value: Value) -> bool:
    whole = emit
    while whole.around is not None:
        whole = whole.around
    behind = set(emit.inputs_behind([value]))
    return bool(behind) and all(
        given.tensor.dtype.is_integer or given.tensor.dtype == dtypes.boolean
        for given in whole.builder.inputs
        if given.name in behind
    )


def sizes(node: OnnxNode, position: int, what: str) -> tuple[Dim, ...]:
    """A list of extents, those that data decide as measured symbols; a negative one ends the run."""
    if not data_decide(node, position):
        return node.dims(position, what)
    return tuple(node.emit.measured(number, "size") for number in numbers(node.emit, node.operand(position)))


def numbers(emit: Emitter, operand: Operand) -> list[Value]:
    """The elements of a list (or number) as int64 values without dimensions."""
    value = emit.emit(operand)
    if not operand.rank:
        return [emit.convert(value, dtypes.int64)]
    count = int(operand.shape[0])
    parts = [emit.slice_axis(value, 0, place, place + 1) for place in range(count)]
    return [emit.convert(emit.reshape(part, ()), dtypes.int64) for part in parts]


def sliced(node: OnnxNode, value: Value, axes: Sequence[int], steps: Sequence[int]) -> Value:
    """ONNX's Slice (from version 10 on) with starts or ends that data decide."""
    emit = node.emit
    starts, ends = (numbers(emit, node.operand(position)) for position in (1, 2))
    for axis, step, start, end in zip(axes, steps, starts, ends, strict=True):
        length = emit.extent(value.tensor.shape[axis], dtypes.int64)
        last = emit.apply("subtract", length, 1)
        low, high = (emit.scalar(0, dtypes.int64), length) if step > 0 else (emit.scalar(-1, dtypes.int64), last)
        first = _clamped(emit, start, length, low, high)
        beyond = _clamped(emit, end, length, low, high)
        gap = emit.apply("subtract", beyond, first) if step > 0 else emit.apply("subtract", first, beyond)
        count = emit.apply("divide", emit.apply("add", gap, abs(step) - 1), abs(step))
        count = emit.apply("maximum", emit.apply("select", emit.compare("GT", gap, 0), count, 0), 0)
        upper = value.tensor.shape[axis].value
        extent = emit.measured(count, "part", upper)
        places = emit.apply("multiply", emit.iota((extent,), 0, dtypes.int64), step)
        places = emit.apply("add", places, emit.broadcast(first, (extent,)))
        value = emit.apply("take", value, places, dimension=axis)
    return value


def _clamped(emit: Emitter, number: Value, length: Value, low: Value, high: Value) -> Value:
    """A position, from the end where it is negative, moved to the nearest that there is."""
    behind = emit.compare("LT", number, 0)
    place = emit.apply("select", behind, emit.apply("add", number, length), number)
    return emit.apply("minimum", emit.apply("maximum", place, low), high)


def counted_range(node: OnnxNode) -> Value:
    """Range with numbers that data decide; a step of 0 and a length that is not finite end the run."""
    emit = node.emit
    start, limit, step = (emit.reshape(node.value(position), ()) for position in range(3))
    dtype = start.tensor.dtype
    known = node.constant_number(2)
    if known is None:
        step = required(emit, step, emit.compare("NE", step, 0), "step other than 0")
    elif known == 0:
        raise NodeFault(1119, "its step is 0")
    if dtype.is_integer:
        gap = emit.apply("subtract", limit, start)
        whole = emit.apply("divide", gap, step)  # towards zero; one more where something is left
        left = emit.compare("NE", emit.apply("multiply", whole, step), gap)
        onward = emit.compare("EQ", emit.compare("GT", gap, 0), emit.compare("GT", step, 0))
        more = emit.convert(emit.apply("and", left, onward), dtype)
        count = emit.convert(emit.apply("add", whole, more), dtypes.int64)
    else:
        wide = [emit.convert(value, dtypes.float64) for value in (start, limit, step)]
        share = emit.apply("divide", emit.apply("subtract", wide[1], wide[0]), wide[2])
        finite = emit.compare("LT", emit.apply("abs", share), 2.0**62)  # not where it is NaN
        share = required(emit, share, finite, "finite length of the range")
        count = emit.convert(emit.apply("ceil", share), dtypes.int64)
    extent = emit.measured(emit.apply("maximum", count, 0), "range")
    places = emit.apply("multiply", emit.iota((extent,), 0, dtype), emit.broadcast(step, (extent,)))
    return emit.apply("add", places, emit.broadcast(start, (extent,)))
