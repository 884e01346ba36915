"""`log_softmax`: the logarithm of softmax, computed without overflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import call, cast
from tilework.loops.program import Buffer
from tilework.ops._attributes import integer_of
from tilework.ops._stages import load
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.reduction._softmax import infer_softmax, normalisation, numpy_normalisation, softmax_counts
from tilework.ops.values import narrow


class LogSoftmax(Operator):
    """`log_softmax(operand; dimension)`: `x - max - log(sum(exp(x - max)))` along a dimension, in float32 or wider.

    A row with NaN or +inf, or of -inf alone, is NaN, as the formula has it.
    """

    name = "log_softmax"
    precision = PrecisionFacts(keep_float32=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        return infer_softmax(self.name, operands, attributes)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand,), (result,) = operands, results
        found = normalisation(operand, result, integer_of(attributes, "dimension"), keep=False)
        value = cast(found.shifted - call("log", load(found.total, found.row)), result.dtype)
        last = Stage(f"{result.name}.{self.name}", (result,), found.points, (value,))
        return computation(self.name, operands, results, [*found.stages, last], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        shifted, total = numpy_normalisation(operands[0], attributes)
        with np.errstate(all="ignore"):
            return (narrow(shifted - np.log(total), results[0].dtype),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        return softmax_counts(operands, super().counts(operands, results, attributes))


OPERATOR = LogSoftmax()
