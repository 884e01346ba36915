"""`logistic`: 1 / (1 + exp(-x))."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import LOW, TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Logistic(Unary):
    """1 / (1 + exp(-x))."""

    name = "logistic"
    function = "logistic"
    operations = TRANSCENDENTAL
    precision = LOW

    def of(self, x: Array) -> Array:
        return 1.0 / (1.0 + np.exp(-x))


OPERATOR = Logistic()
