"""`softsign`: x / (1 + |x|)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Constant, Expression, call, cast
from tilework.ops.elementwise._base import LOW, Unary
from tilework.ops.operator import Array
from tilework.ops.rules import FLOATING, Rule


class Softsign(Unary):
    """x / (1 + |x|), between -1 and 1; of an infinity NaN, as in the formula."""

    name = "softsign"
    function = "divide"
    operations = 3
    precision = LOW

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (x,) = rule.tensors(1)
        rule.kind(x, FLOATING, "operand 0")
        rule.finish()
        return (TensorType(x.shape, x.dtype),)

    def scalar(self, operands: Sequence[Expression], attributes: Mapping[str, Attribute]) -> Expression:
        (x,) = operands
        wide = x if x.dtype.bits >= 32 else cast(x, "float32")  # intermediate results are rounded to their type
        return cast(call("divide", wide, call("add", Constant(1.0, wide.dtype), call("absolute", wide))), x.dtype)

    def of(self, x: Array) -> Array:
        return x / (1.0 + np.abs(x))


OPERATOR = Softsign()
