"""`round_nearest_even`: The nearest whole number, ties to the even one."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class RoundNearestEven(Unary):
    """The nearest whole number, ties to the even one."""

    name = "round_nearest_even"
    function = "round_even"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.rint(x)


OPERATOR = RoundNearestEven()
