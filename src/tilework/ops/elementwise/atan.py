"""`atan`: The angle in -pi/2 .. pi/2 whose tangent is x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Atan(Unary):
    """The angle in -pi/2 .. pi/2 whose tangent is x."""

    name = "atan"
    function = "atan"
    operations = TRANSCENDENTAL

    def of(self, x: Array) -> Array:
        return np.arctan(x)


OPERATOR = Atan()
