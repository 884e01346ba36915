"""`minimum`: The smaller of x and y; NaN where either is NaN."""

from __future__ import annotations

from tilework.ops.elementwise._base import LOW, Binary
from tilework.ops.operator import Array
from tilework.ops.values import smaller


class Minimum(Binary):
    """The smaller of x and y; NaN where either is NaN."""

    name = "minimum"
    function = "minimum"
    precision = LOW

    def of(self, x: Array, y: Array) -> Array:
        return smaller(x, y)


OPERATOR = Minimum()
