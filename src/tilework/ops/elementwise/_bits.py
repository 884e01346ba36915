"""The bits of integers, and the base of the shifts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.dtypes import DType
from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array
from tilework.ops.values import widen


def as_unsigned(array: Array, dtype: DType) -> Array:
    """The two's complement bits of integers of that type, as uint64."""
    return widen(array).astype(np.uint64) & np.uint64((1 << dtype.bits) - 1)


def as_signed(array: Array, dtype: DType) -> Array:
    """The two's complement bits of integers of that type read as signed numbers, as int64."""
    lift = np.uint64(64 - dtype.bits)
    raised = np.asarray(np.left_shift(as_unsigned(array, dtype), lift)).view(np.int64)
    return np.right_shift(raised, np.int64(64 - dtype.bits))


class Shift(Binary):
    """A shift of the first operand by the second, whose bits count as an unsigned number; nothing traps."""

    def evaluate(self, operands: Sequence[Array], dtype: DType, attributes: Mapping[str, Any]) -> Array:
        x, y = operands
        amount = as_unsigned(y, dtype)
        inside = amount < dtype.bits
        safe = np.where(inside, amount, np.zeros_like(amount))
        return np.where(inside, self.shifted(x, safe, dtype), self.beyond(x, dtype))

    def of(self, x: Array, y: Array) -> Array:
        """Shifts need the type's width; see `evaluate`."""
        raise AssertionError("a shift is evaluated with its width")

    @abstractmethod
    def shifted(self, x: Array, amount: Array, dtype: DType) -> Array:
        """By less than the width (`amount` is uint64); the caller wraps to the type."""

    def beyond(self, x: Array, dtype: DType) -> Array:
        """By the width or more."""
        return np.zeros_like(x, np.int64)
