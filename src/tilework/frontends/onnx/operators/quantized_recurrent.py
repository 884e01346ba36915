"""DynamicQuantizeLSTM (com.microsoft): an LSTM whose products are of 8-bit integers."""

from __future__ import annotations

from dataclasses import replace

from tilework import dtypes
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import Operand, from_array
from tilework.frontends.onnx.operators.recurrent import LSTM, Weights, direction_part, run_layer
from tilework.frontends.onnx.quantisation import along, centred, dynamic, matrix_product
from tilework.graph.graph import Value


@dataclass(frozen=True)
class _Quantised:
    """Weights [inputs, 4 H] in 8 bits, with scale and zero point (None: 0) of all or of each output.

    Rows are quantised by their own range, all of them together. `positions`: how many rows along the first dimension
    count for that (None: all).
    """

    value: Value
    scale: Value
    zero: Value | None
    positions: Value | None

    def times(self, emit: Emitter, rows: Value) -> Value:
        if self.positions is not None:
            extent = (rows.tensor.shape[0], *(1,) * (rows.tensor.rank - 1))
            here = emit.compare("LT", emit.iota(extent, 0, dtypes.int32), self.positions)
            rows = emit.apply("select", emit.broadcast(here, rows.tensor.shape), rows, emit.zeros_like(rows))
        narrow, scale, offset = dynamic(emit, rows)
        total = matrix_product(emit, narrow, offset, self.value, self.zero)
        factor = emit.apply("multiply", scale, self.scale)
        return emit.apply("multiply", emit.convert(total, dtypes.float32), factor)

    def part(self, emit: Emitter, start: int, limit: int) -> Weights:
        last = self.value.tensor.rank - 1
        scale, zero = (
            value if value is None or not value.tensor.rank else emit.slice_axis(value, 0, start, limit)
            for value in (self.scale, self.zero)
        )
        assert scale is not None
        return replace(self, value=emit.slice_axis(self.value, last, start, limit), scale=scale, zero=zero)


def _weights(node: OnnxNode, position: int, direction: int) -> Weights:
    """W (position 1) or R (2) of one direction; their scales are inputs 8 and 10, their zero points 9 and 11."""
    emit = node.emit
    place = 6 + 2 * position
    value = node.operand(position)
    if not value.dtype.is_integer or value.dtype.bits != 8:
        raise NodeFault(1119, f"input {position}, {value}, must hold 8-bit integers")
    held, zero = centred(_of(node, value, direction), _zero(node, place + 1, direction))
    weights = emit.emit(held)
    scale = _per_output(node, _of(node, node.operand(place), direction), weights, "a scale")
    offset = None if zero is None else _per_output(node, zero, weights, "a zero point")
    positions = None
    if position == 1 and node.has(4):
        lengths = emit.convert(node.value(4), dtypes.int32)
        positions = emit.reduce(lengths, range(lengths.tensor.rank), "maximum", keep=False)
    return _Quantised(weights, scale, offset, positions)


def _zero(node: OnnxNode, position: int, direction: int) -> Operand | None:
    return _of(node, node.operand(position), direction) if node.has(position) else None


def _of(node: OnnxNode, operand: Operand, direction: int) -> Operand:
    """One direction's part of an operand; one that is a constant stays one."""
    extent = operand.shape[0] if operand.rank else None
    if extent is None or not extent.is_constant or extent.constant <= direction:
        raise NodeFault(1119, f"input {operand.name!r}, {operand}, has nothing for direction {direction}")
    if operand.array is not None:
        return from_array(operand.name, operand.array[direction])
    found = direction_part(node.emit, node.emit.emit(operand), direction)
    return Operand(operand.name, operand.dtype, found.tensor.shape, value=found)


def _per_output(node: OnnxNode, operand: Operand, weights: Value, what: str) -> Value:
    """A scale or zero point: one for all, or [4 H]."""
    found = along(node.emit, node.emit.emit(operand), weights, 1, what)
    return found if found.tensor.rank == 0 else node.emit.reshape(found, (found.tensor.size,))


_LAYER = replace(LSTM, weights=_weights, gates_last=True)

CONVERTERS: dict[str, Converter] = {"com.microsoft::DynamicQuantizeLSTM": lambda node: run_layer(_LAYER, node)}
