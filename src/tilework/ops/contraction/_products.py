"""Types of sums of products, for matrix products and convolutions alike."""

from __future__ import annotations

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType
from tilework.graph.types import TensorType
from tilework.ops._stages import accumulator
from tilework.ops.operator import Array
from tilework.ops.rules import REAL, Rule
from tilework.ops.values import narrow


def check_types(rule: Rule) -> tuple[TensorType, TensorType, DType]:
    """Both operands and the result's element type: theirs, or int32 for integers of at most 8 bits."""
    lhs, rhs = rule.tensors(2)
    rule.kind(lhs, REAL, "lhs")
    rule.kind(rhs, REAL, "rhs")
    if all(operand.dtype.is_integer and operand.dtype.bits <= 8 for operand in (lhs, rhs)):
        return lhs, rhs, dtypes.int32
    rule.same_dtype((lhs, rhs), "lhs and rhs")
    return lhs, rhs, lhs.dtype


def product_type(result: DType) -> DType:
    """The type in which products are formed and summed for a result of this type."""
    return accumulator(result)


def numpy_sum_type(result: DType) -> np.dtype[np.generic]:
    """The widest numpy type to sum in: the oracle is more exact than any code under test."""
    if result.is_floating:
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if result.kind == "unsigned" else np.int64)


def rounded(total: Array, dtype: DType) -> Array:
    """The sum in the result's type; integers wrap."""
    return narrow(total, dtype)
