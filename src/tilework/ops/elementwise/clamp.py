"""`clamp`: x moved into low .. high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Expression, call
from tilework.ops.elementwise._base import LOW, Elementwise
from tilework.ops.operator import Array
from tilework.ops.rules import REAL, Rule
from tilework.ops.values import larger, smaller


class Clamp(Elementwise):
    """`minimum(maximum(x, low), high)` of operands low, x, high: `high` wins over `low`, NaN anywhere gives NaN."""

    name = "clamp"
    function = "maximum"
    arity = 3
    operations = 2
    precision = LOW

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        tensors = rule.tensors(3)
        rule.same_dtype(tensors)
        for position, operand in enumerate(tensors):
            rule.kind(operand, REAL, f"operand {position}")
        shape = rule.broadcast(tensors)
        rule.finish()
        return (TensorType(shape, tensors[1].dtype),)

    def scalar(self, operands: Sequence[Expression], attributes: Mapping[str, Attribute]) -> Expression:
        low, x, high = operands
        return call("minimum", call("maximum", x, low), high)

    def values(self, *operands: Array) -> Array:
        low, x, high = operands
        return smaller(larger(x, low), high)


OPERATOR = Clamp()
