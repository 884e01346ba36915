"""`exponential`: e to the power x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class Exponential(Unary):
    """e to the power x."""

    name = "exponential"
    function = "exp"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.exp(x)


OPERATOR = Exponential()
