"""`scatter_nd`: a copy of a tensor with slices replaced or combined, each at a tuple of positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import same_dim
from tilework.ops._stages import at, axes, load
from tilework.ops.definitions import computation
from tilework.ops.indexing._positions import check_indices, numpy_tuples, tuple_length, wrapped_tuple
from tilework.ops.indexing._updates import check_reducer, combined, update_counts
from tilework.ops.operator import Array, Counts, Operator
from tilework.ops.rules import Rule


class ScatterNd(Operator):
    """`scatter_nd(operand, indices, updates; reducer)`: for all i in order, from `result = operand`,
    `result[indices[i, 0], indices[i, 1], ...] = reducer(result[...], updates[i, ...])`.

    The last dimension of `indices` is a tuple of positions along the operand's leading dimensions; an update is a slice
    along the rest, and `updates` has the other dimensions of `indices` before those of the slice. `reducer` is
    "replace" (the last update wins), "sum", "maximum", "minimum" or "product". Negative positions count from the end of
    their own dimension; any other outside it is a fault at run time. ONNX: ScatterND.
    """

    name = "scatter_nd"
    index_operands = (1,)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        operand, indices, updates = rule.tensors(3)
        check_reducer(rule, operand)
        check_indices(rule, indices)
        rule.same_dtype((operand, updates), "operand and updates")
        depth = tuple_length(rule, indices, operand.rank)
        wanted = indices.shape[:-1] + operand.shape[depth:]
        if updates.rank != len(wanted):
            shape = ", ".join(map(str, wanted))
            rule.fault(1223, f"updates have rank {updates.rank}, they must have shape [{shape}]")
        for place, (one, other) in enumerate(zip(updates.shape, wanted, strict=False)):
            same_dim(rule, one, other, f"dimension {place} of updates and of what the indices name")
        rule.finish()
        return (operand,)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (operand, indices, updates), (result,) = operands, results
        points = axes(result.name, result.shape)
        copy = Stage(f"{result.name}.copy", (result,), points, (load(operand, points),))
        sources = axes(result.name, updates.shape, "u")
        outer = sources[: len(indices.shape) - 1]
        target = at(*wrapped_tuple(indices, outer, operand.shape), *sources[len(outer) :])
        how = reducer(str(attributes.get("reducer", "replace")), result.dtype)
        update = Stage(f"{result.name}.update", (result,), sources, (load(updates, sources),), target, how)
        return computation(self.name, operands, results, [copy, update], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        operand, indices, updates = operands
        positions = numpy_tuples(indices, operand.shape, self.name)
        result = operand.copy()
        for source in np.ndindex(*indices.shape[:-1]):
            target = tuple(int(along[source]) for along in positions)
            result[target] = combined(attributes, result[target], updates[source])
        return (result,)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        return update_counts(super().counts(operands, results, attributes), operands[2], attributes)


OPERATOR = ScatterNd()
