"""`and`: Logical and of booleans, bitwise and of integers."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class And(Binary):
    """Logical and of booleans, bitwise and of integers."""

    name = "and"
    function = "and"

    def of(self, x: Array, y: Array) -> Array:
        return np.bitwise_and(x, y)


OPERATOR = And()
