"""`add`: x + y; integers wrap."""

from __future__ import annotations

import numpy as np

from tilework.ops.elementwise._base import Binary
from tilework.ops.operator import Array


class Add(Binary):
    """x + y; integers wrap."""

    name = "add"
    function = "add"

    def of(self, x: Array, y: Array) -> Array:
        return np.add(x, y)


OPERATOR = Add()
