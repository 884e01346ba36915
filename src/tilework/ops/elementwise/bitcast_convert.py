"""`bitcast_convert`: the same bits read as another element type of the same width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.dtypes import DType
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Expression, bitcast
from tilework.ops.elementwise._base import LOW, Elementwise
from tilework.ops.operator import Array
from tilework.ops.rules import REAL, Rule
from tilework.ops.values import dtype_attribute, widen, wrap


class BitcastConvert(Elementwise):
    """The same bits read as `dtype`, which has as many of them; booleans and complex numbers are refused."""

    name = "bitcast_convert"
    operations = 0
    precision = LOW
    view = True

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (x,) = rule.tensors(1)
        dtype = rule.dtype("dtype", x.dtype)
        rule.kind(x, REAL)
        if dtype.kind not in REAL:
            rule.fault(1225, f"attribute 'dtype' is {dtype}, it must be {' or '.join(REAL)}")
        if dtype.bits != x.dtype.bits:
            rule.fault(
                1225, f"attribute 'dtype' is {dtype}, which has {dtype.bits} bits and {x.dtype} has {x.dtype.bits}"
            )
        rule.finish()
        return (TensorType(x.shape, dtype),)

    def scalar(self, operands: Sequence[Expression], attributes: Mapping[str, Attribute]) -> Expression:
        return bitcast(operands[0], dtype_attribute(attributes))

    def evaluate(self, operands: Sequence[Array], dtype: DType, attributes: Mapping[str, Any]) -> Array:
        target = dtype_attribute(attributes)
        if dtype.is_small_integer and target.is_small_integer:
            return wrap(widen(operands[0]), target)
        return np.ascontiguousarray(operands[0]).view(target.numpy).reshape(operands[0].shape)


OPERATOR = BitcastConvert()
