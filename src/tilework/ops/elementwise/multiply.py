"""`multiply`: x y; integers wrap."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class Multiply(Binary):
    """x y; integers wrap."""

    name = "multiply"
    function = "multiply"

    def of(self, x: Array, y: Array) -> Array:
        return np.multiply(x, y)


OPERATOR = Multiply()
