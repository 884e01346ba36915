"""A two-dimensional convolution among the stages of a computation, with what is computed from each of its elements.

    result[n, o, y, x] = tail(element[n, o, y, x]; n, o, y, x)
    element[n, o, y, x] = sum over c, i, j of image[n, c, y + i + top, x + j + left] weights[o, c, i, j]

whatever the order of the dimensions. Outside the image there are zeros: guards leave those terms out.
"""

from __future__ import annotations

from tilework.algorithms.reading import OtherPatternError, Reading, need, only_name, pair
from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Dim, dim
from tilework.fast_dataclass import dataclass
from tilework.loops.expressions import Expression, Load, Parameter, rewrite, substitute
from tilework.loops.program import Buffer

ELEMENT = "element"
"""The parameter that stands for an element of the convolution."""


@dataclass(frozen=True)
class Along:
    """One direction: results and taps at `place + tap + start` of the image's dimension `dimension`."""

    place: Axis
    tap: Axis
    start: int
    dimension: int


@dataclass(frozen=True, eq=False)
class Convolution:
    """What is computed. The image and the weights are inputs of the computation."""

    computation: Computation
    image: Load
    """Over batch, depth, places and taps."""
    weights: Load
    """Over filter, depth and taps: each of its indices is one axis."""
    batch: tuple[Axis, ...]
    filter: Axis
    depth: Axis
    rows: Along
    columns: Along
    tail: Expression
    """The result's element, over batch, filter and places, with the parameter `element`."""
    place: tuple[Dim, ...]
    """Where the output has that element."""

    @property
    def output(self) -> Buffer:
        (only,) = self.computation.outputs
        return only

    def buffer(self, name: str) -> Buffer:
        """An input by name."""
        return next(found for found in self.computation.inputs if found.name == name)


def convolution_of(computation: Computation) -> Convolution | None:
    """The convolution that a computation is; None where it is anything else, or more than that."""
    sums = [stage for stage in computation.stages if stage.reducer is not None]
    if len(sums) != 1 or len(computation.outputs) != 1 or len(sums[0].reduction_axes) != 3:
        return None
    try:
        return _ConvolutionReading(computation).convolution(sums[0])
    except OtherPatternError:
        return None


class _ConvolutionReading(Reading):
    def convolution(self, stage: Stage) -> Convolution:
        need(stage.reducer is not None and stage.reducer.name == "sum" and stage.accumulate is None)
        need(stage.init is not None and len(stage.targets) == 1)
        one, other = pair(stage.values[0], "multiply")
        need(isinstance(one, Load) and isinstance(other, Load) and one.dtype == other.dtype == stage.target.dtype)
        assert isinstance(one, Load)
        assert isinstance(other, Load)
        taken = {axis.name for axis in stage.reduction_axes}
        weights, image = (one, other) if self._plain(one) else (other, one)
        seen = self.expanded(image)  # through a slice of channels, say
        need(isinstance(seen, Load))
        assert isinstance(seen, Load)
        image = seen
        need(self._plain(weights) and image.buffer not in self.stages and weights.buffer not in self.stages)
        need(image.buffer != weights.buffer)
        directions = [self._along(d, entry, taken) for d, entry in enumerate(image.index) if len(entry.names()) == 2]
        need(len(directions) == 2)
        first, second = directions
        # an image that is part of a larger one starts at a channel of it
        alone = [only_name(entry - entry.constant) for entry in image.index if len(entry.names()) == 1]
        need(len(alone) + 2 == sum(1 for entry in image.index if entry.terms or entry.constant))
        depths = [name for name in alone if name in taken]
        filters = [only_name(entry) for entry in weights.index if only_name(entry) not in taken]
        need(len(depths) == len(filters) == 1 and depths[0] not in (first.tap.name, second.tap.name))
        self._guarded(stage, image, directions)
        tail, place, moved = self._tail(stage)
        free = {axis.name for axis in stage.axes if axis.kind == "parallel"}
        batch = [name for name in free if name not in (filters[0], first.place.name, second.place.name)]
        batch = [axis.name for axis in stage.axes if axis.name in batch]
        need({*batch} >= {name for name in alone if name not in taken} and filters[0] not in alone)
        names = dict(moved)
        tail = substitute(tail, names)
        return Convolution(
            self.computation, image, weights, tuple(self.axes[name] for name in batch), self.axes[filters[0]],
            self.axes[depths[0]], first, second, tail, tuple(entry.substitute(names) for entry in place),
        )  # fmt: skip

    def _plain(self, load: Load) -> bool:
        """Whether every index is an axis of its own."""
        found = [
            min(entry.names()) for entry in load.index if len(entry.names()) == 1 and entry == dim(min(entry.names()))
        ]
        return len(load.index) == 4 and len(set(found)) == 4

    def _along(self, dimension: int, entry: Dim, taken: set[str]) -> Along:
        taps = entry.names() & taken
        need(len(taps) == 1)
        (tap,) = taps
        (place,) = entry.names() - taps
        start = (entry - tap - place).value
        need(start is not None)
        assert start is not None
        return Along(self.axes[place], self.axes[tap], start, dimension)

    def _guarded(self, stage: Stage, image: Load, directions: list[Along]) -> None:
        """Guards may say that elements are inside the image, and nothing else."""
        shape = next(found.shape for found in self.computation.inputs if found.name == image.buffer)
        inside: set[Dim] = set()
        for along in directions:
            at = image.index[along.dimension]
            inside |= {at, shape[along.dimension] - 1 - at}
        need(set(stage.guards) <= inside)

    def _tail(self, stage: Stage) -> tuple[Expression, tuple[Dim, ...], dict[str, Dim]]:
        """What is computed from an element, where it is written, and its axes in those of the convolution."""
        last = self.computation.stages[-1]
        need(last.targets == self.computation.outputs)
        parameter = Parameter(ELEMENT, stage.target.dtype)
        if last is stage:
            return parameter, last.where, {}
        need(stage.index is None and last.reducer is None and len(last.targets) == 1 and not last.guards)
        tail = self.expanded(last.values[0])
        found = {load.index for load in self.inner_loads(tail)}
        need(len(found) == 1)
        (index,) = found
        moved: dict[str, Dim] = {}
        for axis, entry in zip((a for a in stage.axes if a.kind == "parallel"), index, strict=True):
            if entry.terms:
                name = only_name(entry)
                need(name not in moved and self.axes[name].extent == axis.extent)
                moved[name] = dim(axis.name)
            else:
                need(axis.extent == 1)
        for axis in last.axes:  # of one element, and left out of the index
            need(axis.name in moved or axis.extent == 1)
            moved.setdefault(axis.name, Dim())
        tail = rewrite(
            tail, lambda leaf: parameter if isinstance(leaf, Load) and leaf.buffer == stage.target.name else leaf
        )
        return tail, last.where, moved
