"""`sign`: -1, 0 or 1 with the sign of x; zeros and NaN give themselves."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class Sign(Unary):
    """-1, 0 or 1 with the sign of x; zeros and NaN give themselves."""

    name = "sign"
    function = "sign"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.where(x == 0, x, np.sign(x))


OPERATOR = Sign()
