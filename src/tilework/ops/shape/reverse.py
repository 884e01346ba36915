"""`reverse`: some dimensions backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integers_of
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement


class Reverse(Movement):
    """The elements of each of `dimensions` from last to first."""

    name = "reverse"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        rule.axes("dimensions", operand.rank)
        rule.finish()
        return (operand,)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (source,) = operands
        turned = integers_of(attributes, "dimensions")
        return mapped(
            self.name, operands, results, symbols,
            lambda index: Load(
                source.name,
                tuple(source.shape[k] - 1 - i if k in turned else i for k, i in enumerate(index)),
                source.dtype,
            ),
        )  # fmt: skip

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        return (np.flip(operands[0], attributes["dimensions"]).copy(),)


OPERATOR = Reverse()
