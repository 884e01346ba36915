"""`shift_right_logical`: bits move down, zeros follow; by the width or more: 0."""

from __future__ import annotations

import numpy as np

from tilework.dtypes import DType
from tilework.ops.elementwise._bits import Shift, as_unsigned
from tilework.ops.operator import Array


class ShiftRightLogical(Shift):
    """Bits move down, zeros follow; by the width or more: 0."""

    name = "shift_right_logical"
    function = "shift_right_logical"

    def shifted(self, x: Array, amount: Array, dtype: DType) -> Array:
        return np.right_shift(as_unsigned(x, dtype), amount).astype(np.int64)


OPERATOR = ShiftRightLogical()
