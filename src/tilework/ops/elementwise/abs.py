"""`abs`: The magnitude of x; the smallest integer gives itself."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class Abs(Unary):
    """The magnitude of x; the smallest integer gives itself."""

    name = "abs"
    function = "absolute"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.abs(x)


OPERATOR = Abs()
