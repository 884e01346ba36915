"""`divide`: x / y; integers truncate, x / 0 is 0 and the smallest by -1 is itself."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class Divide(Binary):
    """x / y; integers truncate, x / 0 is 0 and the smallest by -1 is itself."""

    name = "divide"
    function = "divide"

    def of(self, x: Array, y: Array) -> Array:
        if not np.issubdtype(x.dtype, np.integer):
            return np.divide(x, y)
        # numpy floors; one more where the signs differ and something is left over
        special = (y == 0) | (y == -1) if np.issubdtype(y.dtype, np.signedinteger) else y == 0
        safe = np.where(special, np.ones_like(y), y)
        quotient = x // safe
        rest = x - quotient * safe
        quotient = quotient + ((rest != 0) & ((x < 0) != (safe < 0))).astype(quotient.dtype)
        return np.where(y == 0, np.zeros_like(quotient), np.where(special, np.negative(x), quotient))


OPERATOR = Divide()
