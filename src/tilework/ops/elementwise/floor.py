"""`floor`: The largest whole number that is not above x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class Floor(Unary):
    """The largest whole number that is not above x."""

    name = "floor"
    function = "floor"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.floor(x)


OPERATOR = Floor()
