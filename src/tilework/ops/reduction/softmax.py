"""`softmax`: exponentials along a dimension, divided by their sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import cast, constant
from tilework.loops.program import Buffer
from tilework.ops._attributes import integer_of
from tilework.ops._stages import axes, load
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.reduction._softmax import infer_softmax, normalisation, numpy_normalisation, softmax_counts
from tilework.ops.values import narrow


class Softmax(Operator):
    """`softmax(operand; dimension)`: `exp(x - max) / sum(exp(x - max))` along a dimension, in float32 or wider.

    A row with NaN or +inf, or of -inf alone, is NaN, as the formula has it.
    """

    name = "softmax"
    precision = PrecisionFacts(keep_float32=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        return infer_softmax(self.name, operands, attributes)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand,), (result,) = operands, results
        found = normalisation(operand, result, integer_of(attributes, "dimension"), keep=True)
        # a row's sum is between 1 and the row's length: its reciprocal is neither denormal nor infinite
        share = Buffer(f"{result.name}.share", found.total.shape, found.total.dtype)
        rows = axes(share.name, share.shape)
        one = constant(1, share.dtype)
        divide = Stage(f"{result.name}.divide", (share,), rows, (one / load(found.total, rows),))
        value = cast(found.exponential * load(share, found.row), result.dtype)
        last = Stage(f"{result.name}.{self.name}", (result,), found.points, (value,))
        return computation(self.name, operands, results, [*found.stages, divide, last], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        shifted, total = numpy_normalisation(operands[0], attributes)
        with np.errstate(all="ignore"):
            return (narrow(np.exp(shifted) / total, results[0].dtype),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        return softmax_counts(operands, super().counts(operands, results, attributes))


OPERATOR = Softmax()
