"""`shift_right_arithmetic`: bits move down, copies of the top bit follow; by the width or more: all of them."""

from __future__ import annotations

import numpy as np

from tilework.dtypes import DType
from tilework.ops.elementwise._bits import Shift, as_signed
from tilework.ops.operator import Array


class ShiftRightArithmetic(Shift):
    """Bits move down, copies of the top bit follow; by the width or more: all of them."""

    name = "shift_right_arithmetic"
    function = "shift_right_arithmetic"

    def shifted(self, x: Array, amount: Array, dtype: DType) -> Array:
        return np.right_shift(as_signed(x, dtype), amount.astype(np.int64))

    def beyond(self, x: Array, dtype: DType) -> Array:
        return np.where(as_signed(x, dtype) < 0, np.int64(-1), np.int64(0))


OPERATOR = ShiftRightArithmetic()
