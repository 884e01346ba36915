"""Sliding windows: the arithmetic that convolution and `reduce_window` share.

Along one dimension, output position o and window position k meet the padded, dilated operand at
`o * stride + k * window_dilation - padding_low`. That point is an element where it lies inside and, with a base
dilation d > 1, is a multiple of d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilework.dims import ZERO, Dim, IntLike, dim, maximum
from tilework.fast_dataclass import dataclass
from tilework.ops.operator import Array


@dataclass(frozen=True)
class WindowDimension:
    """One dimension of a window. Sizes in elements; stride and dilations positive; padding may be negative (crop)."""

    operand: Dim
    window: Dim
    stride: int = 1
    low: Dim = ZERO
    high: Dim = ZERO
    base_dilation: int = 1
    window_dilation: int = 1

    @property
    def output(self) -> Dim:
        """Number of window positions. 0 where the window does not fit; of symbolic sizes, the fit is assumed."""
        covered = dilated(self.operand, self.base_dilation) + self.low + self.high
        count = (covered - dilated(self.window, self.window_dilation)) // self.stride + 1
        return dim(max(0, count.constant)) if count.is_constant else count

    def point(self, output: IntLike, window: IntLike) -> tuple[Dim, tuple[Dim, ...]]:
        """The operand's index at an output and a window position, and the guards (>= 0) under which it exists."""
        at = dim(output) * self.stride + dim(window) * self.window_dilation - self.low
        guards: list[Dim] = []
        if self._may_leave_low:
            guards.append(at)
        if self._may_leave_high:
            guards.append(dilated(self.operand, self.base_dilation) - 1 - at)
        if self.base_dilation > 1:
            guards.append(-(at % self.base_dilation))
        return at // self.base_dilation, tuple(guards)

    @property
    def _may_leave_low(self) -> bool:
        return not (self.low.is_constant and self.low.constant <= 0)

    @property
    def _may_leave_high(self) -> bool:
        return not (self.high.is_constant and self.high.constant <= 0)


def dilated(size: Dim, dilation: int) -> Dim:
    """The size with `dilation - 1` holes between neighbours (0 stays 0)."""
    if dilation == 1:
        return size
    return maximum((size - 1) * dilation + 1, 0)


# -- in numpy ----------------------------------------------------------------------------------------------------------
def spread(array: Array, dimensions: Sequence[WindowDimension], fill: object) -> Array:
    """The last dimensions dilated and padded, holes and padding filled. All sizes are integers."""
    for axis, window in enumerate(dimensions, array.ndim - len(dimensions)):
        array = _dilate_and_pad(array, axis, window, fill)
    return array


def at_tap(array: Array, dimensions: Sequence[WindowDimension], tap: Sequence[int]) -> Array:
    """Of a spread array, the element at one position in the window for every position of the window."""
    starts = [offset * window.window_dilation for offset, window in zip(tap, dimensions, strict=True)]
    counts = [int(window.output) for window in dimensions]
    steps = [window.stride for window in dimensions]
    ranges = zip(starts, counts, steps, strict=True)
    return array[
        (..., *(slice(start, start + count * step, step) if count else slice(0, 0) for start, count, step in ranges))
    ]


def _dilate_and_pad(array: Array, axis: int, window: WindowDimension, fill: object) -> Array:
    size, low, high = array.shape[axis], int(window.low), int(window.high)
    extent = int(dilated(dim(size), window.base_dilation)) + low + high
    shape = list(array.shape)
    shape[axis] = max(0, extent)
    result: Array = np.full(shape, fill, array.dtype)
    at = [n for n in range(size) if 0 <= n * window.base_dilation + low < shape[axis]]
    moved_result, moved = np.moveaxis(result, axis, 0), np.moveaxis(array, axis, 0)
    moved_result[[n * window.base_dilation + low for n in at]] = moved[at]
    return result
