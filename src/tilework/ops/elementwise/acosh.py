"""`acosh`: The number >= 0 whose hyperbolic cosine is x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Acosh(Unary):
    """The number >= 0 whose hyperbolic cosine is x."""

    name = "acosh"
    function = "acosh"
    operations = TRANSCENDENTAL

    def of(self, x: Array) -> Array:
        return np.arccosh(x)


OPERATOR = Acosh()
