"""`cumulative`: running results along a dimension (cumulative sums, products, maxima, minima)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Dim, Symbol, dim
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import integer_of
from tilework.ops._stages import accumulate_for, accumulator, axes, load
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.reduction._combine import REDUCERS, check_reducer, numpy_accumulate, numpy_identity
from tilework.ops.rules import Rule
from tilework.ops.values import narrow


class Cumulative(Operator):
    """`cumulative(operand; dimension, reducer, exclusive, reverse)`: element i combines elements 0 .. i.

    `exclusive` leaves element i itself out (the first is the identity); `reverse` runs from the end. Both are false
    where left out. Floating types of 16 bits run in float32; each result is rounded by itself.
    """

    name = "cumulative"
    precision = PrecisionFacts(keep_float32=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        rule.axis("dimension", operand.rank)
        check_reducer(rule, operand, rule.choice("reducer", REDUCERS))
        rule.flag("exclusive", False)
        rule.flag("reverse", False)
        rule.finish()
        return (operand,)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand,), (result,) = operands, results
        dimension = integer_of(attributes, "dimension")
        wide = accumulator(result.dtype)
        points = list(axes(result.name, result.shape))
        scanned = Axis(points[dimension].name, points[dimension].extent, "scan")
        index: list[Dim] = [dim(axis.name) for axis in points]
        points[dimension] = scanned
        if attributes.get("reverse", False) is True:
            index[dimension] = scanned.extent - 1 - index[dimension]
        how = reducer(str(attributes["reducer"]), wide)
        stage = Stage(
            f"{result.name}.{self.name}", (result,), tuple(points), (load(operand, index, wide),), tuple(index), how,
            how.identity, accumulate=accumulate_for(result.dtype), exclusive=attributes.get("exclusive", False) is True,
        )  # fmt: skip
        return computation(self.name, operands, results, [stage], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (operand,), (result,) = operands, results
        dimension, name = integer_of(attributes, "dimension"), attributes["reducer"]
        ordered = np.flip(operand, dimension) if attributes.get("reverse", False) else operand
        shape = [1 if d == dimension else extent for d, extent in enumerate(operand.shape)]
        none = np.full(shape, numpy_identity(name, result.dtype))
        started = np.concatenate([none, ordered.astype(none.dtype)], dimension)
        first = 0 if attributes.get("exclusive", False) else 1
        kept = range(first, first + operand.shape[dimension])
        running = np.take(numpy_accumulate(started, dimension, name, result.dtype), kept, dimension)
        if attributes.get("reverse", False):
            running = np.flip(running, dimension)
        return (narrow(running, result.dtype),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        (operand,) = operands
        assert isinstance(operand, TensorType)
        return Counts(operand.size, super().counts(operands, results, attributes).bytes)


OPERATOR = Cumulative()
