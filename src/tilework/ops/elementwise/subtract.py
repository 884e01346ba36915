"""`subtract`: x - y; integers wrap."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class Subtract(Binary):
    """x - y; integers wrap."""

    name = "subtract"
    function = "subtract"

    def of(self, x: Array, y: Array) -> Array:
        return np.subtract(x, y)


OPERATOR = Subtract()
