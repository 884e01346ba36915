"""`arg_reduce`: where along a dimension the largest or smallest element stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tilework import dtypes
from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, Symbol, dim
from tilework.dtypes import DType
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Expression, Parameter, call, constant, index
from tilework.loops.program import Buffer, Reducer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import integer_of
from tilework.ops._stages import at, axes, load
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.rules import REAL, Rule

Direction = Literal["maximum", "minimum"]
DIRECTIONS: tuple[Direction, ...] = ("maximum", "minimum")

_FIRST_OF_NONE = dtypes.integer_range(dtypes.int64)[1]
_LAST_OF_NONE = -1


def arg_reducer(direction: str, dtype: DType, last: bool) -> Reducer:
    """Pairs (value, position): the pair with the larger (smaller) value, NaN before all, ties by position."""
    left = (Parameter("left_value", dtype), Parameter("left_position", dtypes.int64))
    right = (Parameter("right_value", dtype), Parameter("right_position", dtypes.int64))
    wins = call("greater" if direction == "maximum" else "less", left[0], right[0])
    ties = call("equal", left[0], right[0])
    if dtype.is_floating:
        left_nan, right_nan = call("is_nan", left[0]), call("is_nan", right[0])
        wins = call("or", wins, call("and", left_nan, call("not", right_nan)))
        ties = call("or", ties, call("and", left_nan, right_nan))
    nearer = call("greater" if last else "less", left[1], right[1])
    keep = call("or", wins, call("and", ties, nearer))
    combine: tuple[Expression, ...] = tuple(call("select", keep, a, b) for a, b in zip(left, right, strict=True))
    none = constant(_LAST_OF_NONE if last else _FIRST_OF_NONE, dtypes.int64)
    name = f"arg_{direction}_{'last' if last else 'first'}_{dtype}"
    return Reducer(name, left, right, combine, (reducer(direction, dtype).identity[0], none))


class ArgReduce(Operator):
    """`arg_reduce(operand; dimension, direction, keep_dimensions, last)`: an int64 position as numpy.argmax, argmin.

    NaN counts as the largest (smallest). Of equal elements the first wins, or with `last` the last. An empty dimension
    has no position: it is refused, where its extent is a symbol when it runs.
    """

    name = "arg_reduce"
    precision = PrecisionFacts(keep_float32=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        rule.kind(operand, ("boolean", *REAL))
        dimension = rule.axis("dimension", operand.rank)
        direction = rule.choice("direction", DIRECTIONS)
        keep, _ = rule.flag("keep_dimensions", False), rule.flag("last", False)
        if operand.rank and operand.shape[dimension] == 0:
            rule.fault(1223, f"dimension {dimension} of {operand} is empty, no element of it is the {direction}")
        rule.finish()
        middle = (dim(1),) if keep else ()
        return (TensorType(operand.shape[:dimension] + middle + operand.shape[dimension + 1 :], dtypes.int64),)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        (operand,) = operands
        assert isinstance(operand, TensorType)
        room = operand.shape[integer_of(attributes, "dimension")] - 1
        return () if room.is_constant else (room,)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand,), (result,) = operands, results
        dimension = integer_of(attributes, "dimension")
        keep = attributes.get("keep_dimensions", False) is True
        points = axes(result.name, operand.shape[:dimension] + operand.shape[dimension + 1 :])
        (inner,) = axes(result.name, [operand.shape[dimension]], "k", "reduction")
        before, after = points[:dimension], points[dimension:]
        best = Buffer(f"{result.name}.value", result.shape, operand.dtype)
        how = arg_reducer(str(attributes["direction"]), operand.dtype, attributes.get("last", False) is True)
        values = (load(operand, (*before, inner, *after)), index(inner.name))
        where = at(*before, *((0,) if keep else ()), *after)
        stage = Stage(f"{result.name}.{self.name}", (best, result), (*points, inner), values, where, how, how.identity)
        return computation(self.name, operands, results, [stage], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (operand,), (result,) = operands, results
        dimension = integer_of(attributes, "dimension")
        last = attributes.get("last", False) is True
        extent = operand.shape[dimension]
        if extent == 0:
            raise self.runtime_fault(f"dimension {dimension} is empty")
        values = operand.astype(np.float32) if operand.dtype.itemsize < 4 else operand
        ordered = np.flip(values, dimension) if last else values
        found = (np.argmax if attributes["direction"] == "maximum" else np.argmin)(ordered, axis=dimension)
        positions = extent - 1 - np.asarray(found) if last else np.asarray(found)
        return (positions.astype(np.int64).reshape(tuple(int(d) for d in result.shape)),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        (operand,) = operands
        assert isinstance(operand, TensorType)
        return Counts(operand.size, super().counts(operands, results, attributes).bytes)


OPERATOR = ArgReduce()
