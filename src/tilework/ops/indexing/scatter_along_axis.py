"""`scatter_along_axis`: a copy of a tensor with some elements replaced or combined, each at its own position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import integer_of, same_dim
from tilework.ops._stages import at, axes, load
from tilework.ops.definitions import computation
from tilework.ops.indexing._positions import check_fits, check_indices, numpy_positions, rooms_to_fit, wrapped
from tilework.ops.indexing._updates import check_reducer, combined, update_counts
from tilework.ops.operator import Array, Counts, Operator
from tilework.ops.rules import Rule


class ScatterAlongAxis(Operator):
    """`scatter_along_axis(operand, indices, updates; dimension, reducer)`: for dimension 0,
    `result[indices[i, j], j] = reducer(result[...], updates[i, j])` for all i, j in order, from `result = operand`.

    `reducer` is "replace" (the last update wins), "sum", "maximum", "minimum" or "product". `updates` has the shape
    of `indices`, which has the operand's rank and is no larger in the other dimensions. Negative positions count from
    the end; any other outside the dimension is a fault at run time.
    """

    name = "scatter_along_axis"
    index_operands = (1,)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        operand, indices, updates = rule.tensors(3)
        check_reducer(rule, operand)
        check_indices(rule, indices)
        rule.same_dtype((operand, updates), "operand and updates")
        dimension = rule.axis("dimension", operand.rank)
        check_fits(rule, indices.shape, operand.shape, dimension)
        if updates.rank != indices.rank:
            rule.fault(1223, f"updates have rank {updates.rank}, indices {indices.rank}; they must be equal")
        for position, (a, b) in enumerate(zip(updates.shape, indices.shape, strict=False)):
            same_dim(rule, a, b, f"dimension {position} of updates and of indices")
        rule.finish()
        return (operand,)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        return rooms_to_fit(operands, integer_of(attributes, "dimension"))

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand, indices, updates), (result,) = operands, results
        dimension = integer_of(attributes, "dimension")
        points = axes(result.name, result.shape)
        copy = Stage(f"{result.name}.copy", (result,), points, (load(operand, points),))
        sources = axes(result.name, updates.shape, "u")
        position = wrapped(indices, sources, operand.shape[dimension])
        target = at(*sources[:dimension], position, *sources[dimension + 1 :])
        how = reducer(str(attributes.get("reducer", "replace")), result.dtype)
        update = Stage(f"{result.name}.update", (result,), sources, (load(updates, sources),), target, how)
        return computation(self.name, operands, results, [copy, update], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        operand, indices, updates = operands
        dimension = integer_of(attributes, "dimension")
        positions = numpy_positions(indices, operand.shape[dimension], self.name)
        result = operand.copy()
        for source in np.ndindex(*indices.shape):
            target = (*source[:dimension], int(positions[source]), *source[dimension + 1 :])
            result[target] = combined(attributes, result[target], updates[source])
        return (result,)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        return update_counts(super().counts(operands, results, attributes), operands[2], attributes)


OPERATOR = ScatterAlongAxis()
