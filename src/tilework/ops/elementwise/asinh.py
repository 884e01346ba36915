"""`asinh`: The number whose hyperbolic sine is x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Asinh(Unary):
    """The number whose hyperbolic sine is x."""

    name = "asinh"
    function = "asinh"
    operations = TRANSCENDENTAL

    def of(self, x: Array) -> Array:
        return np.arcsinh(x)


OPERATOR = Asinh()
