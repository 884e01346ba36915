"""`maximum`: The larger of x and y; NaN where either is NaN."""

from __future__ import annotations

from tilework.ops.elementwise._base import LOW, Binary
from tilework.ops.operator import Array
from tilework.ops.values import larger


class Maximum(Binary):
    """The larger of x and y; NaN where either is NaN."""

    name = "maximum"
    function = "maximum"
    precision = LOW

    def of(self, x: Array, y: Array) -> Array:
        return larger(x, y)


OPERATOR = Maximum()
