"""`ceil`: The smallest whole number that is not below x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class Ceil(Unary):
    """The smallest whole number that is not below x."""

    name = "ceil"
    function = "ceil"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.ceil(x)


OPERATOR = Ceil()
