"""`reduce`: elements along some dimensions combined into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation, Stage
from tilework.dims import Symbol, dim
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import cast
from tilework.loops.program import Buffer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import integers_of
from tilework.ops._stages import accumulate_for, accumulator, at, axes, load
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.reduction._combine import REDUCERS, check_reducer, numpy_reduce
from tilework.ops.rules import Rule


class Reduce(Operator):
    """`reduce(operand; dimensions, reducer, keep_dimensions)`: the identity where there is nothing to combine.

    `reducer` is "sum", "product", "maximum", "minimum" (NaN wins), "and" or "or" (bitwise). `keep_dimensions` (false
    where left out) keeps each reduced dimension with extent 1. 16-bit floating sums are kept in float32.
    """

    name = "reduce"
    precision = PrecisionFacts(safe_low=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        reduced = rule.axes("dimensions", operand.rank)
        check_reducer(rule, operand, rule.choice("reducer", REDUCERS))
        keep = rule.flag("keep_dimensions", False)
        rule.finish()
        shape = tuple(
            dim(1) if d in reduced else extent for d, extent in enumerate(operand.shape) if keep or d not in reduced
        )
        return (TensorType(shape, operand.dtype),)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand,), (result,) = operands, results
        reduced = integers_of(attributes, "dimensions")
        keep = attributes.get("keep_dimensions", False) is True
        free = [d for d in range(len(operand.shape)) if d not in reduced]
        points = axes(result.name, [operand.shape[d] for d in free])
        inner = axes(result.name, [operand.shape[d] for d in sorted(reduced)], "k", "reduction")
        by_dimension = dict(zip((*free, *sorted(reduced)), (*points, *inner), strict=True))
        kept = (0 if d in reduced else by_dimension[d] for d in range(len(operand.shape)))
        where = at(*kept) if keep else at(*points)
        wide = accumulator(result.dtype)
        total = reducer(str(attributes["reducer"]), wide)
        value = load(operand, [by_dimension[d] for d in range(len(operand.shape))], wide)
        if not inner:
            copy = Stage(f"{result.name}.{self.name}", (result,), points, (cast(value, result.dtype),), where)
            return computation(self.name, operands, results, [copy], symbols)
        stage = Stage(
            f"{result.name}.{self.name}", (result,), (*points, *inner), (value,), where, total, total.identity,
            accumulate=accumulate_for(result.dtype),
        )  # fmt: skip
        return computation(self.name, operands, results, [stage], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (operand,), (result,) = operands, results
        reduced = integers_of(attributes, "dimensions")
        if not reduced:  # nothing is combined, not even with the identity: -0.0 stays
            return (operand.copy(),)
        combined = numpy_reduce(operand, reduced, attributes["reducer"], result.dtype)
        return (combined.reshape(tuple(int(d) for d in result.shape)),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        (operand,) = operands
        assert isinstance(operand, TensorType)
        return Counts(operand.size, super().counts(operands, results, attributes).bytes)


OPERATOR = Reduce()
