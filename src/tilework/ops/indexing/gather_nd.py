"""`gather_nd`: slices of a tensor, each at a tuple of positions along its leading dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.ops._attributes import integer_of, same_dim
from tilework.ops._stages import axes, load
from tilework.ops.definitions import computation
from tilework.ops.indexing._positions import check_indices, numpy_tuples, take_counts, tuple_length, wrapped_tuple
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.rules import Rule


class GatherNd(Operator):
    """`gather_nd(operand, indices; batch_dimensions)`: `result[i, ...] = operand[indices[i, 0], indices[i, 1], ...]`.

    The last dimension of `indices` is a tuple of positions along the operand's dimensions; whole slices along the
    dimensions that it does not reach. The first `batch_dimensions` (0 where left out) of both are walked together, and
    the positions belong to the operand's dimensions after them. The result's shape is that of `indices` but for the
    last dimension, then that of a slice. Negative positions count from the end of their own dimension; any other
    outside it is a fault at run time. ONNX: GatherND.
    """

    name = "gather_nd"
    precision = PrecisionFacts(safe_low=True)
    index_operands = (1,)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        operand, indices = rule.tensors(2)
        check_indices(rule, indices)
        batch = rule.integer("batch_dimensions", 0)
        if not 0 <= batch <= min(operand.rank, indices.rank - 1):
            text = f"attribute 'batch_dimensions' is {batch}, the operand is {operand} and the indices are {indices}"
            rule.stop(1225, text)
        for place in range(batch):
            same_dim(rule, indices.shape[place], operand.shape[place], f"dimension {place} of indices and of operand")
        depth = tuple_length(rule, indices, operand.rank - batch)
        rule.finish()
        return (TensorType(indices.shape[:-1] + operand.shape[batch + depth :], operand.dtype),)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand, indices), (result,) = operands, results
        batch = integer_of(attributes, "batch_dimensions", 0)
        points = axes(result.name, result.shape)
        outer = points[: len(indices.shape) - 1]
        positions = wrapped_tuple(indices, outer, operand.shape[batch:])
        value = load(operand, (*points[:batch], *positions, *points[len(outer) :]))
        stage = Stage(f"{result.name}.{self.name}", (result,), points, (value,))
        return computation(self.name, operands, results, [stage], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        operand, indices = operands
        batch = integer_of(attributes, "batch_dimensions", 0)
        positions = numpy_tuples(indices, operand.shape[batch:], self.name)
        walked = [
            along for along, _ in zip(np.ogrid[tuple(map(slice, indices.shape[:-1]))], range(batch), strict=False)
        ]
        return (np.asarray(operand[(*walked, *positions)]),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        return take_counts(operands[1], results[0])


OPERATOR = GatherNd()
