"""Sampling images between their elements, at coordinates that are computed when the model runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from tilework import dtypes
from tilework.dims import Dim, dim, product
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.formula import Formula, extent
from tilework.graph.graph import Value


@dataclass(frozen=True)
class Neighbour:
    """An element near a coordinate of one dimension: its position (int64, inside the image), its weight (None: 1), and
    whether it counts (None: yes; where not, its value is 0).
    """

    position: Formula
    weight: Formula | None = None
    counts: Formula | None = None


Combine = Callable[[Formula, Formula], Formula]


def sampled(
    emit: Emitter,
    image: Value,
    shape: Sequence[Dim],
    near: Sequence[Sequence[Neighbour]],
    combine: Combine = Formula.__add__,
) -> Formula:
    """What lies at coordinates of an image [B, C, *spatial], of the shape [B, *shape, C].

    `near` lists the neighbours along each spatial dimension; their formulas broadcast to [B, *shape]. The elements at
    every combination of neighbours, times their weights, are combined: added up, if nothing else is said. Channels come
    last, as all of them are read at the same positions.
    """
    batch, channels, *spatial = image.tensor.shape
    rows = emit.transpose(emit.reshape(image, (batch, channels, product(spatial))), (0, 2, 1))
    found: Formula | None = None
    for chosen in itertools.product(*near):
        index: Formula | None = None
        for neighbour, size in zip(chosen, spatial, strict=True):
            place = neighbour.position
            index = place if index is None else index * extent(emit, size, dtypes.int64) + place
        assert index is not None
        whole = emit.broadcast(index.value, (batch, *shape))
        taken = emit.apply("gather_nd", rows, emit.reshape(whole, (batch, *shape, 1)), batch_dimensions=1)
        term = _weighted(Formula(emit, taken), chosen)
        found = term if found is None else combine(found, term)
    assert found is not None
    return found


def _weighted(taken: Formula, chosen: Sequence[Neighbour]) -> Formula:
    weight = _joined([n.weight for n in chosen if n.weight is not None], Formula.__mul__)
    counts = _joined([n.counts for n in chosen if n.counts is not None], Formula.__and__)
    if weight is not None:
        taken = taken * _for_channels(weight).to(taken.dtype)
    return taken if counts is None else _for_channels(counts).select(taken, 0)


def _joined(parts: Sequence[Formula], join: Combine) -> Formula | None:
    found: Formula | None = None
    for part in parts:
        found = part if found is None else join(found, part)
    return found


def _for_channels(formula: Formula) -> Formula:
    return formula.reshape((*formula.shape, 1))


def position_of(place: Formula, size: Dim) -> Formula:
    """A whole floating coordinate as a position inside a dimension of `size` elements; NaN is its first."""
    last = extent(place.emit, size - 1, place.dtype)
    found = place.clamp(0, last).to(dtypes.int64)  # a large extent may round up in floating point
    return found.clamp(0, extent(place.emit, size - 1, dtypes.int64))


def between(at: Formula, size: Dim) -> list[Neighbour]:
    """The two neighbours of a coordinate for linear interpolation; outside the image is 0."""
    last = extent(at.emit, size - 1, at.dtype)
    low = at.floor()
    behind = at - low
    return [
        Neighbour(position_of(place, size), weight, (place >= 0) & (place <= last))
        for place, weight in ((low, 1 - behind), (low + 1, behind))
    ]


def channels_first(found: Formula) -> Value:
    """[B, ..., C] as [B, C, ...]."""
    rank = len(found.shape)
    return found.emit.transpose(found.value, (0, rank - 1, *range(1, rank - 1)))


def counted(emit: Emitter, size: Dim | int, place: int, rank: int) -> Formula:
    """0, 1, ... along one dimension of a tensor of a rank, in float32."""
    shape = [dim(size) if k == place else dim(1) for k in range(rank)]
    return Formula(emit, emit.iota(shape, place, dtypes.float32))
