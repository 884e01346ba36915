"""`power`: x to the power y; integers wrap, and a negative exponent gives the truncated reciprocal (0 for base 0)."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Binary
from tilework.ops.operator import Array


class Power(Binary):
    """x to the power y; integers wrap, and a negative exponent gives the truncated reciprocal (0 for base 0)."""

    name = "power"
    function = "power"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array, y: Array) -> Array:
        if not np.issubdtype(x.dtype, np.integer):
            return np.power(x, y)
        raised = np.power(x, np.maximum(y, np.zeros_like(y)))
        odd = (y & y.dtype.type(1)) != 0
        minus_one = np.where(odd, x, np.ones_like(x))
        reciprocal = np.where(x == 1, x, np.where(np.negative(x) == 1, minus_one, np.zeros_like(x)))
        return np.where(y < 0, reciprocal, raised)


OPERATOR = Power()
