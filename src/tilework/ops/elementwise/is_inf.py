"""`is_inf`: Whether x is an infinity of either sign."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class IsInf(Unary):
    """Whether x is an infinity of either sign."""

    name = "is_inf"
    function = "is_infinite"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.isinf(x)


OPERATOR = IsInf()
