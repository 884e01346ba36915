"""`erf`: The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""

from __future__ import annotations

import math

import numpy as np

from tilework.ops.elementwise._base import LOW, TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Erf(Unary):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""

    name = "erf"
    function = "erf"
    operations = TRANSCENDENTAL
    precision = LOW

    def of(self, x: Array) -> Array:
        return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


OPERATOR = Erf()
