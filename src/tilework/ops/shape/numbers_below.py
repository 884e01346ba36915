"""`numbers_below`: the numbers 0, 1, 2, ... below a value, which gives a measured symbol that value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import index
from tilework.loops.program import Buffer
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import INTEGER, Rule
from tilework.ops.shape._base import Movement, dims_of


class NumbersBelow(Movement):
    """`numbers_below(count; extent)`: the int64 numbers 0 to count - 1, for an integer without dimensions.

    `extent` holds the one measured symbol that is bound to the count before it runs: any value made later may have it
    in its shape. A count outside the symbol's bounds ends the run.
    """

    name = "numbers_below"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (count,) = rule.tensors(1)
        rule.scalar(count, "the count")
        rule.kind(count, INTEGER, "the count")
        extent = rule.dims("extent")
        if len(extent) != 1 or str(extent[0]) not in extent[0].names():
            rule.stop(1225, "attribute 'extent' must hold one symbol")
        rule.finish()
        return (TensorType(extent, dtypes.int64),)

    def measured(self, attributes: Mapping[str, Attribute]) -> Mapping[str, int]:
        return {str(dims_of(attributes, "extent")[0]): 0}

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        return mapped(self.name, operands, results, symbols, lambda point: index(point[0]))

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        count = int(operands[0])
        if count < 0:
            raise self.runtime_fault(f"the count is {count}")
        return (np.arange(count, dtype=np.int64),)

    def run(self, node: Any, operands: Sequence[Array], environment: Any) -> tuple[Array, ...]:
        return self.reference(operands, {}, ())  # the symbol gets its value from the result


OPERATOR = NumbersBelow()
