"""Signals: Fourier transforms, windows, and the mel scale."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilework import dtypes
from tilework.dims import Dim
from tilework.dtypes import DType
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.fourier import Signal, fitted, transform
from tilework.frontends.onnx.node import OnnxNode, Result, element, fixed_extent
from tilework.frontends.onnx.operand import from_array
from tilework.frontends.onnx.tensors import MOST_ELEMENTS, element_type
from tilework.graph.graph import Array, Value


# -- Fourier transforms ------------------------------------------------------------------------------------------------
def _parts(emit: Emitter, value: Value) -> Signal:
    """Numbers [..., 1] or [..., 2] as real and imaginary part, computed with in float32 at least."""
    last = value.tensor.rank - 1
    wide = dtypes.float64 if element(value) == dtypes.float64 else dtypes.float32
    value = emit.convert(value, wide)
    parts = fixed_extent(value.tensor.shape[last], "the last dimension, which holds real and imaginary part,")
    if parts not in (1, 2):
        raise NodeFault(1119, f"the last dimension of the input {value.type} must be 1 (real) or 2 (complex)")
    real, *rest = (emit.drop_dims(emit.slice_axis(value, last, n, n + 1), [last]) for n in range(parts))
    return Signal(real, rest[0] if rest else None)


def _joined(emit: Emitter, signal: Signal) -> Value:
    """The parts [...] as one tensor [..., 2], or [..., 1] without an imaginary part."""
    parts = [signal.real] if signal.imaginary is None else [signal.real, signal.imaginary]
    last = signal.real.tensor.rank
    return emit.concatenate([emit.expand_dims(part, [last]) for part in parts], last)


def _each(signal: Signal, change: Callable[[Value], Value]) -> Signal:
    return Signal(change(signal.real), None if signal.imaginary is None else change(signal.imaginary))


def _dft(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    rank = value.tensor.rank
    if rank < 2:
        raise NodeFault(1119, f"the input {value.type} must have two dimensions or more")
    if node.opset >= 20:
        given = fixed_extent(node.one(2, "the axis"), "the axis") if node.has(2) else -2
    else:
        given = node.integer("axis", 1)
    axis = node.axis(given, rank)
    if axis == rank - 1:
        raise NodeFault(1108, f"axis {given} is the one of real and imaginary part")
    inverse, one_sided = node.flag("inverse"), node.flag("onesided")
    signal = _parts(emit, value)
    order = [*(a for a in range(rank - 1) if a != axis), axis]
    signal = _each(signal, lambda part: emit.transpose(part, order))
    own = signal.real.tensor.shape[-1]
    length = _length(node, own * 2 - 2 if inverse and one_sided else own)
    if inverse and one_sided:
        found = _real_inverse(node, signal, length)
    else:
        if one_sided and signal.imaginary is not None:
            raise NodeFault(1119, "a one-sided transform takes real numbers, these are complex")
        found = transform(emit, _each(signal, lambda part: _fitted(node, part, length)), inverse)
        if one_sided:
            found = _each(found, lambda part: emit.slice_axis(part, rank - 2, 0, length // 2 + 1))
    if inverse:
        divisor = emit.extent(length, element(found.real))
        found = _each(found, lambda part: emit.apply("divide", part, divisor))
    back = [order.index(a) for a in range(rank - 1)]
    return emit.convert(_joined(emit, _each(found, lambda part: emit.transpose(part, back))), element(value))


def _length(node: OnnxNode, default: Dim) -> Dim:
    found = node.one(1, "the length") if node.has(1) else default
    if found.is_constant and not 0 < found.constant < 2**31:
        raise NodeFault(1119, f"a transform of length {found}")
    return found


def _fitted(node: OnnxNode, value: Value, length: Dim) -> Value:
    """The last dimension padded or cut to a length."""
    own = value.tensor.shape[-1]
    if own == length:
        return value
    longer = node.symbols.decide_at_least(length - own, 0)
    if longer is None:
        raise NodeFault(1121, f"a transform of length {length} of {own} elements, which may be more or fewer")
    return fitted(node.emit, value, length, longer)


def _real_inverse(node: OnnxNode, signal: Signal, length: Dim) -> Signal:
    """Real numbers from the first half of their spectrum; the other half is its conjugate, backwards."""
    emit = node.emit
    if signal.imaginary is None:
        raise NodeFault(1119, "the inverse of a one-sided transform takes complex numbers, these are real")
    half = _each(signal, lambda part: _fitted(node, part, length // 2 + 1))
    last = half.real.tensor.rank - 1

    def whole(part: Value, conjugate: bool) -> Value:
        mirrored = emit.reverse(emit.slice_axis(part, last, 1, length - length // 2), [last])
        return emit.concatenate([part, emit.apply("negate", mirrored) if conjugate else mirrored], last)

    assert half.imaginary is not None
    spectrum = Signal(whole(half.real, False), whole(half.imaginary, True))
    real = transform(emit, spectrum, inverse=True).real
    return Signal(emit.assumed(real, (*real.tensor.shape[:-1], length)), None)


def _stft(node: OnnxNode) -> Value:
    """Transforms of overlapping frames, each times a window: [batch, frames, bins, 2]."""
    value, emit = node.value(0), node.emit
    if value.tensor.rank == 2:  # a real signal, as the first texts of the specification have it
        value = emit.expand_dims(value, [2])
    if value.tensor.rank != 3:
        raise NodeFault(1119, f"the signal {value.type} must have three dimensions")
    signal = _parts(emit, value)
    one_sided = node.flag("onesided", True)
    if one_sided and signal.imaginary is not None:
        raise NodeFault(1119, "a one-sided transform takes a real signal, this one is complex (onesided=0 is possible)")
    extent = value.tensor.shape[1]
    step = fixed_extent(node.one(1, "the step"), "the step")
    window = node.optional(2)
    if window is not None and window.tensor.rank != 1:
        raise NodeFault(1119, f"the window {window.type} must have one dimension")
    if node.has(3):
        length = node.one(3, "the length of frames")
    else:
        length = window.tensor.shape[0] if window is not None else extent
    if step < 1 or (length.is_constant and length.constant < 1):
        raise NodeFault(1119, f"frames of {length} elements, one every {step}")
    if window is not None:
        window = emit.shaped(window, (length,), "the window")
    fits = node.symbols.require_at_least(extent - length, 0)
    if not fits and any(map(node.symbols.is_measured, (extent - length).names())):
        signal = _each(signal, lambda part: emit.assumed(part, part.tensor.shape, (extent - length,)))
    if node.symbols.decide_at_least(extent - length, 0) is False:
        raise NodeFault(1119, f"frames of {length} elements in a signal of {extent}")
    count = (extent - length) // step + 1
    starts = emit.apply("multiply", emit.iota((count, length), 0, dtypes.int64), step)
    places = emit.apply("add", starts, emit.iota((count, length), 1, dtypes.int64))
    frames = _each(signal, lambda part: emit.apply("take", part, places, dimension=1))
    if window is not None:
        factors = emit.broadcast(emit.convert(window, element(frames.real)), frames.real.tensor.shape)
        frames = _each(frames, lambda part: emit.apply("multiply", part, factors))
    found = transform(emit, frames, inverse=False)
    if one_sided:
        found = _each(found, lambda part: emit.slice_axis(part, 2, 0, length // 2 + 1))
    return emit.convert(_joined(emit, found), element(value))


_LARGEST_TABLE = 2**25
"""Elements of a table that an import computes: what is larger is made by the run, which has a limit, or refused."""


# -- windows -----------------------------------------------------------------------------------------------------------
def _window(*factors: float) -> Converter:
    """A sum of cosines: factors[m] cos(2 pi m n / N), N being the size, or (symmetric) one less."""

    def convert(node: OnnxNode) -> Result:
        emit, size = node.emit, node.one(0, "the size")
        dtype = element_type(node.integer("output_datatype", 1))
        divisor = size if node.flag("periodic", True) else size - 1
        if size.is_constant and not 0 <= size.constant <= MOST_ELEMENTS:
            raise NodeFault(1119, f"a window of {size} elements")
        if size.is_constant and size.constant <= _LARGEST_TABLE:
            # where N is 0 (one element, symmetric) the formula says 0 / 0; the one element is taken to be the first
            angles = 2 * np.pi / max(divisor.constant, 1) * np.arange(size.constant)
            array: Array = np.zeros(size.constant)
            for m, factor in enumerate(factors):
                array = array + factor * np.cos(m * angles)
            return from_array("", array.astype(dtype.numpy))
        return emit.convert(_symbolic_window(emit, size, divisor, factors), dtype)

    return convert


def _symbolic_window(emit: Emitter, size: Dim, divisor: Dim, factors: tuple[float, ...]) -> Value:
    wide: DType = dtypes.float64
    angles = emit.apply("multiply", emit.iota((size,), 0, wide), 2 * np.pi)
    angles = emit.apply("divide", angles, emit.apply("maximum", emit.extent(divisor, wide), 1.0))
    total = emit.fill(factors[0], wide, (size,))
    for m, factor in enumerate(factors[1:], 1):
        wave = emit.apply("cosine", emit.apply("multiply", angles, float(m)))
        total = emit.apply("add", total, emit.apply("multiply", wave, factor))
    return total


# -- the mel scale -----------------------------------------------------------------------------------------------------
def _mel_weights(node: OnnxNode) -> Result:
    """Triangles over the bins of a spectrum, [dft_length / 2 + 1, num_mel_bins]; their corners are even in mel."""
    bands, length, rate = (
        fixed_extent(node.one(place, what), what)
        for place, what in enumerate(("the number of bands", "the length", "the sample rate"))
    )
    low, high = (node.number_input(place, "the edges") for place in (3, 4))
    dtype = element_type(node.integer("output_datatype", 1))
    bins = length // 2 + 1
    if not (0 < bands < 2**24 and 0 < length < 2**24 and rate > 0 and 0 <= low < high < np.inf):
        text = f"{bands} bands from {low} to {high} Hz over {length} elements at {rate} Hz make no mel scale"
        raise NodeFault(1119, text)
    if bins * bands > _LARGEST_TABLE:
        raise NodeFault(1124, f"a mel scale of {bins} bins by {bands} bands")
    first_edge, last_edge = (2595 * math.log10(1 + edge / 700) for edge in (low, high))
    # as onnx.reference and ONNX Runtime have it, the last corner lies one step below the upper edge
    steps = np.arange(bands + 2, dtype=np.float64) / (bands + 2)
    corners: Array = 700 * np.expm1((first_edge + (last_edge - first_edge) * steps) * (math.log(10) / 2595))
    places = ((length + 1) * corners // rate).astype(np.int64)
    found = np.zeros((bins, bands))
    rows = np.arange(bins)
    for band in range(bands):
        first, peak, last = (int(place) for place in places[band : band + 3])
        if peak == first:
            found[peak : peak + 1, band] = 1
        else:
            rising = (rows >= first) & (rows <= peak)
            found[rising, band] = (rows[rising] - first) / (peak - first)
        if last > peak:
            falling = (rows >= peak) & (rows < last)
            found[falling, band] = (last - rows[falling]) / (last - peak)
    return from_array("", found.astype(dtype.numpy))


CONVERTERS: dict[str, Converter] = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08), "DFT": _dft, "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5), "MelWeightMatrix": _mel_weights, "STFT": _stft,
}  # fmt: skip
