"""`convert`: the same number as another element type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.dtypes import DType
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Expression, cast
from tilework.ops.elementwise._base import LOW, Elementwise
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.values import convert, dtype_attribute


class Convert(Elementwise):
    """The same number as `dtype`. Floating to integer truncates, saturates, and NaN gives 0; integers wrap; to bool:
    whether it is not zero; complex to real drops the imaginary part; everything else rounds to nearest even.
    """

    name = "convert"
    precision = LOW

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (x,) = rule.tensors(1)
        dtype = rule.dtype("dtype", x.dtype)
        rule.finish()
        return (TensorType(x.shape, dtype),)

    def scalar(self, operands: Sequence[Expression], attributes: Mapping[str, Attribute]) -> Expression:
        return cast(operands[0], dtype_attribute(attributes))

    def evaluate(self, operands: Sequence[Array], dtype: DType, attributes: Mapping[str, Any]) -> Array:
        return convert(operands[0], dtype_attribute(attributes))


OPERATOR = Convert()
