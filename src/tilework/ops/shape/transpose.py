"""`transpose`: the dimensions in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integers_of, permutation
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement


class Transpose(Movement):
    """Dimension i of the result is dimension `permutation[i]` of the operand."""

    name = "transpose"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        if not rule.has("permutation"):
            rule.fault(1224, "attribute 'permutation' is missing")
        order = permutation(rule, "permutation", operand.rank)
        rule.finish()
        return (TensorType(tuple(operand.shape[place] for place in order), operand.dtype),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (source,) = operands
        order = integers_of(attributes, "permutation")
        return mapped(
            self.name, operands, results, symbols,
            lambda index: Load(source.name, tuple(index[order.index(k)] for k in range(len(order))), source.dtype),
        )  # fmt: skip

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        return (operands[0].transpose(attributes["permutation"]).copy(),)


OPERATOR = Transpose()
