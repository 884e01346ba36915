"""`floor_remainder`: x minus y times the floored quotient: the sign of y, as Python has it; integers by 0 give 0."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class FloorRemainder(Binary):
    """x minus y times the floored quotient: the sign of y, as Python has it; integers by 0 give 0."""

    name = "floor_remainder"
    function = "floor_remainder"
    operations = 3

    def of(self, x: Array, y: Array) -> Array:
        return np.remainder(x, y)


OPERATOR = FloorRemainder()
