"""`not`: Logical not of booleans, bitwise not of integers."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Unary
from tilework.ops.operator import Array


class Not(Unary):
    """Logical not of booleans, bitwise not of integers."""

    name = "not"
    function = "not"

    def of(self, x: Array) -> Array:
        return np.invert(x)


OPERATOR = Not()
