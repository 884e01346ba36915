"""`truncate`: x without its fraction."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class Truncate(Unary):
    """x without its fraction."""

    name = "truncate"
    function = "truncate"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.trunc(x)


OPERATOR = Truncate()
