"""`sinh`: The hyperbolic sine."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class Sinh(Unary):
    """The hyperbolic sine."""

    name = "sinh"
    function = "sinh"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.sinh(x)


OPERATOR = Sinh()
