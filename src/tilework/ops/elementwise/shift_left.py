"""`shift_left`: bits move up, zeros follow; by the width or more: 0."""

from __future__ import annotations

import numpy as np

from tilework.dtypes import DType
from tilework.ops.elementwise._bits import Shift, as_unsigned
from tilework.ops.operator import Array


class ShiftLeft(Shift):
    """Bits move up, zeros follow; by the width or more: 0."""

    name = "shift_left"
    function = "shift_left"

    def shifted(self, x: Array, amount: Array, dtype: DType) -> Array:
        return np.left_shift(as_unsigned(x, dtype), amount).astype(np.int64)


OPERATOR = ShiftLeft()
