"""`or`: Logical or of booleans, bitwise or of integers."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class Or(Binary):
    """Logical or of booleans, bitwise or of integers."""

    name = "or"
    function = "or"

    def of(self, x: Array, y: Array) -> Array:
        return np.bitwise_or(x, y)


OPERATOR = Or()
