"""`select`: the second operand where the first is true, else the third."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.dtypes import DType
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.ops.elementwise._base import LOW, Elementwise
from tilework.ops.operator import Array
from tilework.ops.rules import Rule


class Select(Elementwise):
    """`on_true` where `predicate` is true, else `on_false`; all three broadcast."""

    name = "select"
    function = "select"
    arity = 3
    precision = LOW

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        predicate, on_true, on_false = rule.tensors(3)
        rule.kind(predicate, ("boolean",), "the predicate")
        rule.same_dtype((on_true, on_false), "the two choices")
        shape = rule.broadcast((predicate, on_true, on_false))
        rule.finish()
        return (TensorType(shape, on_true.dtype),)

    def evaluate(self, operands: Sequence[Array], dtype: DType, attributes: Mapping[str, Any]) -> Array:
        predicate, on_true, on_false = operands
        return np.where(predicate, on_true, on_false)


OPERATOR = Select()
