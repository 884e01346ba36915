"""`sqrt`: The square root; NaN below zero."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Unary
from tilework.ops.operator import Array


class Sqrt(Unary):
    """The square root; NaN below zero."""

    name = "sqrt"
    function = "square_root"

    def of(self, x: Array) -> Array:
        return np.sqrt(x)


OPERATOR = Sqrt()
