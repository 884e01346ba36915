"""`take_along_axis`: elements of a tensor, each at its own position along one dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.ops._attributes import integer_of
from tilework.ops._stages import axes, load
from tilework.ops.definitions import computation
from tilework.ops.indexing._positions import (
    check_fits,
    check_indices,
    numpy_positions,
    rooms_to_fit,
    take_counts,
    wrapped,
)
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.rules import Rule


class TakeAlongAxis(Operator):
    """`take_along_axis(operand, indices; dimension)`: `result[i, j] = operand[indices[i, j], j]` for dimension 0.

    `indices` has the operand's rank and is no larger in the other dimensions (the rest of the operand is not read).
    Negative positions count from the end; any other outside the dimension is a fault at run time.
    """

    name = "take_along_axis"
    index_operands = (1,)
    precision = PrecisionFacts(safe_low=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        operand, indices = rule.tensors(2)
        check_indices(rule, indices)
        dimension = rule.axis("dimension", operand.rank)
        check_fits(rule, indices.shape, operand.shape, dimension)
        rule.finish()
        return (TensorType(indices.shape, operand.dtype),)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        return rooms_to_fit(operands, integer_of(attributes, "dimension"))

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand, indices), (result,) = operands, results
        dimension = integer_of(attributes, "dimension")
        points = axes(result.name, result.shape)
        position = wrapped(indices, points, operand.shape[dimension])
        value = load(operand, (*points[:dimension], position, *points[dimension + 1 :]))
        stage = Stage(f"{result.name}.{self.name}", (result,), points, (value,))
        return computation(self.name, operands, results, [stage], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        operand, indices = operands
        dimension = integer_of(attributes, "dimension")
        positions = numpy_positions(indices, operand.shape[dimension], self.name)
        grid = list(np.ogrid[tuple(slice(0, n) for n in indices.shape)])
        grid[dimension] = positions
        return (operand[tuple(grid)],)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        return take_counts(operands[1], results[0])


OPERATOR = TakeAlongAxis()
