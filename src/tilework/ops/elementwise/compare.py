"""`compare`: whether two elements stand in the relation `direction`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Expression, call
from tilework.ops.elementwise._base import LOW, Elementwise
from tilework.ops.operator import Array
from tilework.ops.rules import ANY, Rule
from tilework.ops.values import widen

_FUNCTIONS = {
    "EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal",
}  # fmt: skip


class Compare(Elementwise):
    """Whether x stands in the relation `direction` (EQ NE LT LE GT GE) to y; with NaN only NE holds."""

    name = "compare"
    arity = 2
    precision = LOW

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        direction = rule.choice("direction", tuple(_FUNCTIONS))
        tensors = rule.tensors(2)
        rule.same_dtype(tensors)
        if direction not in ("EQ", "NE"):
            for position, operand in enumerate(tensors):
                rule.kind(operand, [kind for kind in ANY if kind != "complex"], f"operand {position} of {direction}")
        shape = rule.broadcast(tensors)
        rule.finish()
        return (TensorType(shape, dtypes.boolean),)

    def scalar(self, operands: Sequence[Expression], attributes: Mapping[str, Attribute]) -> Expression:
        return call(_FUNCTIONS[str(attributes["direction"])], *operands)

    def evaluate(self, operands: Sequence[Array], dtype: DType, attributes: Mapping[str, Any]) -> Array:
        x, y = (widen(operand) for operand in operands)
        match attributes["direction"]:
            case "EQ":
                return np.asarray(x == y)
            case "NE":
                return np.asarray(x != y)
            case "LT":
                return np.asarray(x < y)
            case "LE":
                return np.asarray(x <= y)
            case "GT":
                return np.asarray(x > y)
            case _:
                return np.asarray(x >= y)


OPERATOR = Compare()
