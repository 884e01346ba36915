"""`asin`: The angle in -pi/2 .. pi/2 whose sine is x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class Asin(Unary):
    """The angle in -pi/2 .. pi/2 whose sine is x."""

    name = "asin"
    function = "asin"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.arcsin(x)


OPERATOR = Asin()
