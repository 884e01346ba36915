"""`cosine`: The cosine of x in radians."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Cosine(Unary):
    """The cosine of x in radians."""

    name = "cosine"
    function = "cos"
    operations = TRANSCENDENTAL

    def of(self, x: Array) -> Array:
        return np.cos(x)


OPERATOR = Cosine()
