"""`sine`: The sine of x in radians."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, Unary
from tilework.ops.operator import Array


class Sine(Unary):
    """The sine of x in radians."""

    name = "sine"
    function = "sin"
    operations = TRANSCENDENTAL

    def of(self, x: Array) -> Array:
        return np.sin(x)


OPERATOR = Sine()
