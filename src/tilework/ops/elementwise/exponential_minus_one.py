"""`exponential_minus_one`: e to the power x, minus 1, exact near zero."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class ExponentialMinusOne(Unary):
    """e to the power x, minus 1, exact near zero."""

    name = "exponential_minus_one"
    function = "expm1"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.expm1(x)


OPERATOR = ExponentialMinusOne()
