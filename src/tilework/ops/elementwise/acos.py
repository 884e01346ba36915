"""`acos`: The angle in 0 .. pi whose cosine is x."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import TRANSCENDENTAL, WIDE, Unary
from tilework.ops.operator import Array


class Acos(Unary):
    """The angle in 0 .. pi whose cosine is x."""

    name = "acos"
    function = "acos"
    operations = TRANSCENDENTAL
    precision = WIDE

    def of(self, x: Array) -> Array:
        return np.arccos(x)


OPERATOR = Acos()
