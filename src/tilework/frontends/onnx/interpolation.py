"""Resizing one dimension: where each element of the result lies in the input, and how its neighbours are weighted.

Coordinates that are a rational multiple of the index stay index arithmetic (`resample`), whatever the extents are;
other ones are computed in floating point as ONNX Runtime does, and their neighbours taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilework import dtypes
from tilework.dims import ONE, Dim, dim
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.formula import Formula, counting, extent
from tilework.graph.graph import Value


@dataclass(frozen=True)
class Spaced:
    """Element i lies at (i * step + start) / divisor, `step` and `divisor` positive integers."""

    step: int
    start: Dim
    divisor: int


@dataclass(frozen=True)
class Computed:
    """Element i lies at the i-th number of a vector."""

    at: Formula


Coordinates = Spaced | Computed


@dataclass(frozen=True)
class Axis:
    """A dimension that is resized to `extent` elements."""

    place: int
    extent: Dim
    coordinates: Coordinates


@dataclass(frozen=True)
class Kernel:
    """The neighbours of a coordinate, counted from the element at or before it, and their weights.

    `weights` takes how far the coordinate is behind that element (0 to 1) and a neighbour's offset. `normalised`: the
    weights are divided by their sum. `inside_only`: those of neighbours outside the input are 0.
    """

    offsets: range
    weights: Callable[[Formula, int], Formula]
    normalised: bool = False
    inside_only: bool = False


# -- kernels -----------------------------------------------------------------------------------------------------------
def linear_kernel(inside_only: bool) -> Kernel:
    """Two neighbours, each weighted by how near it is."""
    return Kernel(range(2), lambda behind, offset: behind if offset else 1 - behind, inside_only, inside_only)


def cubic_kernel(a: float, inside_only: bool) -> Kernel:
    """Four neighbours (R. Keys, Cubic convolution interpolation for digital image processing, 1981)."""

    def weights(behind: Formula, offset: int) -> Formula:
        if offset in (0, 1):
            t = 1 - behind if offset else behind
            return ((a + 2) * t - (a + 3)) * t * t + 1
        t = behind + 1 if offset < 0 else 2 - behind
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return Kernel(range(-1, 3), weights, inside_only, inside_only)


def stretched_kernel(scale: float, cubic: float | None, inside_only: bool) -> Kernel:
    """Linear (`cubic` None) or cubic, stretched by 1 / scale where that is more than 1: every input element counts."""
    scale = min(scale, 1.0)
    first = math.floor((-1 if cubic is None else -2) / scale) + 1

    def weights(behind: Formula, offset: int) -> Formula:
        t = abs((offset - behind) * scale)
        if cubic is None:
            return (1 - t).maximum(0)
        a = cubic
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return (t <= 1).select(near, (t < 2).select(far, 0))

    return Kernel(range(first, 2 - first), weights, True, inside_only)


# -- interpolation along one dimension ---------------------------------------------------------------------------------
MOST_TERMS = 8
"""Neighbours up to which each is a term of its own; more are one sum over a dimension made for it."""


def interpolated(emit: Emitter, x: Value, axis: Axis, kernel: Kernel) -> Value:
    """The weighted sum of each coordinate's neighbours; those outside the input are its edge's element."""
    own, kind = x.tensor.shape[axis.place], x.tensor.dtype
    behind = _behind(emit, axis)
    weights = [kernel.weights(behind, offset) for offset in kernel.offsets]
    if kernel.inside_only:
        weights = [
            _inside(emit, axis, offset, own).select(weight, 0)
            for offset, weight in zip(kernel.offsets, weights, strict=True)
        ]
    if kernel.normalised:
        total = weights[0]
        for weight in weights[1:]:
            total = total + weight
        if kernel.inside_only:  # nothing inside has a weight: the sum is 0, as the weights are
            total = total.equals(0).select(1, total)
        weights = [weight / total for weight in weights]
    weights = [weight.to(kind) for weight in weights]
    if len(weights) > MOST_TERMS:
        return _summed(emit, x, axis, kernel, weights)
    found: Formula | None = None
    for offset, weight in zip(kernel.offsets, weights, strict=True):
        near = Formula(emit, neighbours(emit, x, axis, offset))
        term = near * weight.along(axis.place, x.tensor.rank)
        found = term if found is None else found + term
    assert found is not None
    return found.value


def neighbours(emit: Emitter, x: Value, axis: Axis, offset: int) -> Value:
    """For each element of the result, the input's that is so far from the one at or before its coordinate."""
    at = axis.coordinates
    if isinstance(at, Spaced):
        return _resampled(emit, x, axis, at.step, at.start + offset * at.divisor, at.divisor)
    return emit.apply("take", x, _positions(at.at.floor(), offset, x.tensor.shape[axis.place]), dimension=axis.place)


def nearest(emit: Emitter, x: Value, axis: Axis, rounding: str) -> Value:
    """For each element of the result the input's nearest to its coordinate; `rounding` is ONNX's `nearest_mode`."""
    at = axis.coordinates
    if isinstance(at, Spaced):
        step, start, divisor = at.step, at.start, at.divisor
        if rounding.startswith("round"):  # floor(x + 1/2), or ceil(x - 1/2) = floor(x + 1/2 - the least there is)
            step, start, divisor = step * 2, start * 2 + at.divisor, divisor * 2
            start = start - 1 if rounding == "round_prefer_floor" else start
        elif rounding == "ceil":
            start = start + divisor - 1
        return _resampled(emit, x, axis, step, start, divisor)
    place = at.at - 0.5 if rounding == "round_prefer_floor" else at.at + 0.5 if rounding.startswith("round") else at.at
    whole = place.ceil() if rounding in ("ceil", "round_prefer_floor") else place.floor()
    return emit.apply("take", x, _positions(whole, 0, x.tensor.shape[axis.place]), dimension=axis.place)


def _behind(emit: Emitter, axis: Axis) -> Formula:
    """How far each coordinate is behind the element at or before it."""
    at = axis.coordinates
    if isinstance(at, Computed):
        return at.at - at.at.floor()
    index = counting(emit, axis.extent) * (at.step % at.divisor)
    rest = (index + extent(emit, at.start, dtypes.int64)) % at.divisor
    return rest.to(dtypes.float64) / at.divisor


def _inside(emit: Emitter, axis: Axis, offset: int, own: Dim) -> Formula:
    """Whether each coordinate's neighbour lies in the input."""
    at = axis.coordinates
    if isinstance(at, Computed):
        place = at.at.floor() + offset
        return (place >= 0) & (place < extent(emit, own, place.dtype))
    place = counting(emit, axis.extent) * at.step + extent(emit, at.start + offset * at.divisor, dtypes.int64)
    return (place >= 0) & (place < extent(emit, own * at.divisor, dtypes.int64))


def _positions(place: Formula, offset: int, own: Dim) -> Value:
    """Rounded coordinates as positions that exist."""
    limit = float(1 << 30)  # what is far outside stays so, and fits an integer
    whole = place.clamp(-limit, limit).to(dtypes.int64) + offset
    return whole.clamp(0, extent(place.emit, own - 1, dtypes.int64)).value


def _resampled(emit: Emitter, x: Value, axis: Axis, step: int, start: Dim, divisor: int) -> Value:
    rank, place = x.tensor.rank, axis.place
    shape = list(x.tensor.shape)
    shape[place] = axis.extent
    common = math.gcd(step, divisor)
    # (g s i + t) // (g d) = (s i + t // g) // d
    step, start, divisor = step // common, start // common, divisor // common
    return emit.apply(
        "resample", x, shape=tuple(shape), starts=_only(place, rank, start, dim(0)),
        steps=_only(place, rank, step, 1), divisors=_only(place, rank, divisor, 1),
    )  # fmt: skip


def _only(place: int, rank: int, value: Dim | int, others: Dim | int) -> tuple[Dim | int, ...]:
    return tuple(value if k == place else others for k in range(rank))


def _summed(emit: Emitter, x: Value, axis: Axis, kernel: Kernel, weights: Sequence[Formula]) -> Value:
    """Many neighbours: their positions and weights as matrices, and a sum over the neighbours."""
    own, place, rank = x.tensor.shape[axis.place], axis.place, x.tensor.rank
    at = axis.coordinates
    count = len(weights)
    offsets = counting(emit, dim(count)) + kernel.offsets.start
    if isinstance(at, Computed):
        limit = float(1 << 30)
        first = at.at.floor().clamp(-limit, limit).to(dtypes.int64)
    else:
        place_of = counting(emit, axis.extent) * at.step + extent(emit, at.start, dtypes.int64)
        first = (place_of - place_of % at.divisor) / at.divisor
    places = first.reshape((axis.extent, 1)) + offsets.reshape((1, count))
    places = places.clamp(0, extent(emit, own - 1, dtypes.int64))
    table = emit.concatenate([weight.reshape((axis.extent, 1)).value for weight in weights], 1)
    taken = emit.apply("take", x, places.value, dimension=place)  # [..., extent, neighbours, ...]
    shape: list[Dim] = [ONE] * place + [axis.extent, dim(count)] + [ONE] * (rank - place - 1)
    product = Formula(emit, taken) * Formula(emit, emit.reshape(table, shape))
    return emit.reduce(product.value, [place + 1], "sum", keep=False)


def accumulated(kind: DType) -> DType:
    """The type in which neighbours of elements of this type are weighted and added up."""
    wide = kind.bits > 16 if kind.is_integer else kind.bits > 32
    return dtypes.float64 if wide else dtypes.float32


def narrowed(found: Formula, kind: DType, truncated: bool) -> Value:
    """The sums in the input's type; integers saturate, and are truncated or rounded with halves to even."""
    rounded = found.rounded() if kind.is_integer and not truncated else found
    return rounded.to(kind).value
