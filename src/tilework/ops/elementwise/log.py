"""`log`: The natural logarithm; NaN below zero."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class Log(Unary):
    """The natural logarithm; NaN below zero."""

    name = "log"
    function = "log"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.log(x)


OPERATOR = Log()
