"""`tanh`: The hyperbolic tangent."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Tanh(Unary):
    """The hyperbolic tangent."""

    name = "tanh"
    function = "tanh"
    operations = TRANSCENDENTAL
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.tanh(x)


OPERATOR = Tanh()
