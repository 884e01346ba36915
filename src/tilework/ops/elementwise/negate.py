"""`negate`: -x; integers wrap."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array


class Negate(Unary):
    """-x; integers wrap."""

    name = "negate"
    function = "negate"
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.negative(x)


OPERATOR = Negate()
