"""`dimension_values`: symbolic integers as a tensor, for graphs that compute with their own shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.compute.notation import Computation
from tilework.dims import Symbol, dim
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import index
from tilework.loops.program import Buffer
from tilework.ops.definitions import computation, copied, mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement, dims_of


class DimensionValues(Movement):
    """An int64 tensor of constant `shape` whose elements, in row-major order, are the dims `values`. One stage each."""

    name = "dimension_values"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        rule.tensors(0)
        values = rule.dims("values")
        shape = rule.integers("shape")
        if any(extent < 0 for extent in shape):
            rule.fault(1225, f"attribute 'shape' is {shape}, its entries must be at least 0")
        elif int(np.prod(shape, dtype=np.int64)) != len(values):
            rule.fault(1223, f"{len(values)} values do not fill shape {shape}")
        for value in values:
            if value.loads():
                rule.fault(1225, f"attribute 'values' holds {value}, which depends on data")
        rule.finish()
        return (TensorType(tuple(dim(extent) for extent in shape), dtypes.int64),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (result,) = results
        values = dims_of(attributes, "values")
        if not values:  # one stage that has no point, so that a stage writes the result
            return mapped(self.name, operands, results, symbols, lambda _: index(0))
        places = np.ndindex(*(int(extent) for extent in result.shape))
        stages = [
            copied(
                f"value{position}", result, (),
                lambda _, value=value: index(value),
                lambda _, place=place: [dim(entry) for entry in place],
            )
            for position, (place, value) in enumerate(zip(places, values, strict=True))
        ]  # fmt: skip
        return computation(self.name, operands, results, stages, symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        return (np.array(attributes["values"], np.int64).reshape(attributes["shape"]),)


OPERATOR = DimensionValues()
