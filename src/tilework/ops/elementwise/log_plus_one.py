"""`log_plus_one`: The natural logarithm of 1 + x, exact near zero."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class LogPlusOne(Unary):
    """The natural logarithm of 1 + x, exact near zero."""

    name = "log_plus_one"
    function = "log1p"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.log1p(x)


OPERATOR = LogPlusOne()
