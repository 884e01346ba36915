"""`remainder`: x minus y times the truncated quotient: the sign of x, as C has it; integers by 0 give 0."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class Remainder(Binary):
    """x minus y times the truncated quotient: the sign of x, as C has it; integers by 0 give 0."""

    name = "remainder"
    function = "remainder"
    operations = 2

    def of(self, x: Array, y: Array) -> Array:
        return np.fmod(x, y)


OPERATOR = Remainder()
