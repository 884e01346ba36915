"""`is_nan`: Whether x is not a number."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class IsNan(Unary):
    """Whether x is not a number."""

    name = "is_nan"
    function = "is_nan"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.isnan(x)


OPERATOR = IsNan()
