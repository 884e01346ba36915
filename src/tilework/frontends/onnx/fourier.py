"""Discrete Fourier transforms as products with constant matrices.

Long ones go in two shorter ones (Cooley and Tukey), those of large prime length by a convolution of a length that is a
power of two (Bluestein); what remains is a product with a matrix of cosines and sines, made in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.emitter import Emitter
from tilework.graph.graph import Array, Value

DIRECT = 96
"""Length up to which a transform is one product."""

DIRECT_PRIME = 512
"""The same for prime lengths, which do not divide."""


@dataclass(frozen=True)
class Signal:
    """Complex numbers [..., n] as two tensors; no imaginary part stands for zeros."""

    real: Value
    imaginary: Value | None


def transform(emit: Emitter, signal: Signal, inverse: bool) -> Signal:
    """The transform along the last dimension; the inverse is not divided by the length."""
    length = signal.real.tensor.shape[-1]
    if not length.is_constant:
        return _product_of_symbolic_length(emit, signal, inverse)
    return _transform(emit, signal, length.constant, 1 if inverse else -1)


def _transform(emit: Emitter, signal: Signal, length: int, sign: int) -> Signal:
    if length <= DIRECT:
        return _product(emit, signal, length, sign)
    factor = next((f for f in range(math.isqrt(length), 1, -1) if length % f == 0), 1)
    if factor > 1:
        return _in_two(emit, signal, factor, length // factor, sign)
    return (_product if length <= DIRECT_PRIME else _by_convolution)(emit, signal, length, sign)


# -- by a matrix -------------------------------------------------------------------------------------------------------
def _waves(length: int, sign: int) -> tuple[Array, Array]:
    """Cosines and sines of 2 pi n k / length, both [n, k]."""
    turns = np.outer(np.arange(length), np.arange(length)) % length
    angles = sign * 2 * np.pi / length * turns
    return np.cos(angles), np.sin(angles)


def _product(emit: Emitter, signal: Signal, length: int, sign: int) -> Signal:
    """Real and imaginary part side by side, times one matrix."""
    cosines, sines = _waves(length, sign)
    matrix = np.concatenate([cosines, sines], 1)
    operand = signal.real
    if signal.imaginary is not None:
        matrix = np.concatenate([matrix, np.concatenate([-sines, cosines], 1)], 0)
        operand = emit.concatenate([signal.real, signal.imaginary], operand.tensor.rank - 1)
    both = emit.matmul(operand, _constant(emit, matrix, operand.tensor.dtype))
    last = both.tensor.rank - 1
    return Signal(emit.slice_axis(both, last, 0, length), emit.slice_axis(both, last, length, 2 * length))


def _product_of_symbolic_length(emit: Emitter, signal: Signal, inverse: bool) -> Signal:
    length, dtype = signal.real.tensor.shape[-1], signal.real.tensor.dtype
    wide = dtypes.float64  # as constant matrices are made
    places = [emit.iota((length, length), axis, dtypes.int64) for axis in (0, 1)]
    turns = emit.apply("remainder", emit.apply("multiply", *places), emit.extent(length, dtypes.int64))
    fractions = emit.apply("divide", emit.convert(turns, wide), emit.extent(length, wide))
    angles = emit.apply("multiply", fractions, math.tau if inverse else -math.tau)
    cosines, sines = (emit.convert(emit.apply(name, angles), dtype) for name in ("cosine", "sine"))
    real, imaginary = emit.matmul(signal.real, cosines), emit.matmul(signal.real, sines)
    if signal.imaginary is not None:
        real = emit.apply("subtract", real, emit.matmul(signal.imaginary, sines))
        imaginary = emit.apply("add", imaginary, emit.matmul(signal.imaginary, cosines))
    return Signal(real, imaginary)


# -- by shorter ones ---------------------------------------------------------------------------------------------------
def _in_two(emit: Emitter, signal: Signal, rows: int, columns: int, sign: int) -> Signal:
    """n = columns n1 + n2 and k = k1 + rows k2: over n1, times e^(2 pi i n2 k1 / length), over n2."""
    lead = signal.real.tensor.shape[:-1]

    def turned(value: Value, first: int, second: int) -> Value:
        """The last dimension split in two, which change places."""
        rank = len(lead)
        return emit.transpose(emit.reshape(value, (*lead, first, second)), (*range(rank), rank + 1, rank))

    def each(one: Signal, first: int, second: int) -> Signal:
        other = one.imaginary
        return Signal(turned(one.real, first, second), None if other is None else turned(other, first, second))

    inner = _transform(emit, each(signal, rows, columns), rows, sign)  # [n2, k1]
    angles = sign * 2 * np.pi / (rows * columns) * np.outer(np.arange(columns), np.arange(rows))
    inner = multiplied(emit, inner, np.cos(angles), np.sin(angles))
    flat = Signal(*(emit.reshape(part, (*lead, rows * columns)) for part in _both(emit, inner)))
    outer = _transform(emit, each(flat, columns, rows), columns, sign)  # [k1, k2]
    flat = Signal(*(emit.reshape(part, (*lead, rows * columns)) for part in _both(emit, outer)))
    back = each(flat, rows, columns)  # [k2, k1]
    return Signal(*(emit.reshape(part, (*lead, rows * columns)) for part in _both(emit, back)))


def _by_convolution(emit: Emitter, signal: Signal, length: int, sign: int) -> Signal:
    """n k = (n^2 + k^2 - (k - n)^2) / 2: a product with a chirp, a convolution with its conjugate, the chirp again."""
    long = 1 << (2 * length - 2).bit_length()
    squares = np.arange(length, dtype=object) ** 2 % (2 * length)
    angles = sign * np.pi / length * squares.astype(np.float64)
    cosines, sines = np.cos(angles), np.sin(angles)
    chirped = multiplied(emit, signal, cosines, sines)
    padded = Signal(*(_padded(emit, part, long) for part in _both(emit, chirped)))
    filter_ = np.zeros(long, np.complex128)
    filter_[:length] = cosines - 1j * sines
    filter_[long - length + 1 :] = filter_[1:length][::-1]
    response = np.fft.fft(filter_) / long
    spectrum = multiplied(emit, _transform(emit, padded, long, -1), response.real, response.imag)
    last = signal.real.tensor.rank - 1
    convolved = _both(emit, _transform(emit, spectrum, long, 1))
    return multiplied(emit, Signal(*(emit.slice_axis(part, last, 0, length) for part in convolved)), cosines, sines)


# -- pieces ------------------------------------------------------------------------------------------------------------
def _constant(emit: Emitter, array: Array, dtype: DType) -> Value:
    return emit.constant(array.astype(dtype.numpy))


def _both(emit: Emitter, signal: Signal) -> tuple[Value, Value]:
    return signal.real, signal.imaginary if signal.imaginary is not None else emit.zeros_like(signal.real)


def multiplied(emit: Emitter, signal: Signal, real: Array, imaginary: Array) -> Signal:
    """The product with constant complex numbers, element by element."""
    dtype = signal.real.tensor.dtype
    cosines, sines = _constant(emit, real, dtype), _constant(emit, imaginary, dtype)

    def times(one: Value, other: Value) -> Value:
        return emit.apply("multiply", one, emit.broadcast(other, one.tensor.shape))

    if signal.imaginary is None:
        return Signal(times(signal.real, cosines), times(signal.real, sines))
    return Signal(
        emit.apply("subtract", times(signal.real, cosines), times(signal.imaginary, sines)),
        emit.apply("add", times(signal.real, sines), times(signal.imaginary, cosines)),
    )


def _padded(emit: Emitter, value: Value, length: int) -> Value:
    none: list[Any] = [0] * value.tensor.rank
    return emit.pad(value, 0.0, none, [*none[:-1], dim(length) - value.tensor.shape[-1]])


def fitted(emit: Emitter, value: Value, length: Dim, longer: bool) -> Value:
    """The last dimension padded with zeros, or cut, to a length."""
    last = value.tensor.rank - 1
    if not longer:
        return emit.slice_axis(value, last, 0, length)
    none: list[Any] = [0] * value.tensor.rank
    return emit.pad(value, 0.0, none, [*none[:-1], length - value.tensor.shape[last]])
