"""`maximum`: The larger of x and y; NaN where either is NaN."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Binary
from tilework.ops.operator import Array


class Maximum(Binary):
    """The larger of x and y; NaN where either is NaN."""

    name = "maximum"
    function = "maximum"
    precision = LOW

    def of(self, x: Array, y: Array) -> Array:
        return np.maximum(x, y)


OPERATOR = Maximum()
