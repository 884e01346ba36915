"""`rsqrt`: 1 / sqrt(x)."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import WIDE, Unary
from tilework.ops.operator import Array


class Rsqrt(Unary):
    """1 / sqrt(x)."""

    name = "rsqrt"
    function = "reciprocal_square_root"
    operations = 2
    precision = WIDE

    def of(self, x: Array) -> Array:
        return 1.0 / np.sqrt(x)


OPERATOR = Rsqrt()
