"""`cosh`: The hyperbolic cosine."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class Cosh(Unary):
    """The hyperbolic cosine."""

    name = "cosh"
    function = "cosh"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.cosh(x)


OPERATOR = Cosh()
