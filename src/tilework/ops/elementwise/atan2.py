"""`atan2`: The angle of the point (y, x), first operand y, in -pi .. pi."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, Binary
from tilework.ops.operator import Array


class Atan2(Binary):
    """The angle of the point (y, x), first operand y, in -pi .. pi."""

    name = "atan2"
    function = "atan2"
    operations = TRANSCENDENTAL

    def of(self, x: Array, y: Array) -> Array:
        return np.arctan2(x, y)


OPERATOR = Atan2()
