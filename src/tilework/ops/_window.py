"""Sliding windows: the arithmetic that convolution and `reduce_window` share.

Along one dimension, output position o and window position k meet the padded, dilated operand at
`o * stride + k * window_dilation - padding_low`. That point is an element where it lies inside and, with a base
dilation d > 1, is a multiple of d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilework.dims import ZERO, Dim, IntLike, dim, maximum
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


def windows(array: Array, axes: Sequence[int], dimensions: Sequence[WindowDimension], fill: object) -> Array:
    """In numpy: every window as trailing dimensions, one per axis, holes and padding filled. Sizes are integers."""
    padded = array
    for axis, window in zip(axes, dimensions, strict=True):
        padded = _dilate_and_pad(padded, axis, window, fill)
    view = padded
    for position, (axis, window) in enumerate(zip(axes, dimensions, strict=True)):
        count, size = int(window.output), int(window.window)
        at = np.arange(count)[:, None] * window.stride + np.arange(size)[None, :] * window.window_dilation
        view = np.take(view, at.reshape(-1), axis=axis)
        view = view.reshape(*view.shape[:axis], count, size, *view.shape[axis + 1 :])
        view = np.moveaxis(view, axis + 1, array.ndim + position)
    return view


def _dilate_and_pad(array: Array, axis: int, window: WindowDimension, fill: object) -> Array:
    size, low, high = array.shape[axis], int(window.low), int(window.high)
    spread = int(dilated(dim(size), window.base_dilation))
    shape = list(array.shape)
    shape[axis] = max(0, spread + low + high)
    result: Array = np.full(shape, fill, array.dtype)
    at = [n for n in range(size) if 0 <= n * window.base_dilation + low < shape[axis]]
    moved_result, moved = np.moveaxis(result, axis, 0), np.moveaxis(array, axis, 0)
    moved_result[[n * window.base_dilation + low for n in at]] = moved[at]
    return result
