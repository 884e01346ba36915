"""`xor`: Exclusive or of booleans, bitwise of integers."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class Xor(Binary):
    """Exclusive or of booleans, bitwise of integers."""

    name = "xor"
    function = "xor"

    def of(self, x: Array, y: Array) -> Array:
        return np.bitwise_xor(x, y)


OPERATOR = Xor()
