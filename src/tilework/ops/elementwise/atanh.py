"""`atanh`: The number whose hyperbolic tangent is x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Atanh(Unary):
    """The number whose hyperbolic tangent is x."""

    name = "atanh"
    function = "atanh"
    operations = TRANSCENDENTAL

    def of(self, x: Array) -> Array:
        return np.arctanh(x)


OPERATOR = Atanh()
