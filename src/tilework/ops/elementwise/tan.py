"""`tan`: The tangent of x in radians."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class Tan(Unary):
    """The tangent of x in radians."""

    name = "tan"
    function = "tan"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.tan(x)


OPERATOR = Tan()
