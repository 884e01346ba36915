"""`iota`: each element is its own index along a dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import cast, index
from tilework.loops.program import Buffer
from tilework.ops._attributes import integer_of
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import REAL, Rule
from tilework.ops.shape._base import Movement
from tilework.ops.values import convert, dtype_attribute


class Iota(Movement):
    """A tensor of `shape` and `dtype` in which each element is its index along `dimension`; integers wrap."""

    name = "iota"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        rule.tensors(0)
        shape = rule.shape("shape")
        rule.axis("dimension", len(shape))
        dtype = rule.dtype("dtype", dtypes.int64)
        if dtype.kind not in REAL:
            rule.fault(1225, f"attribute 'dtype' is {dtype}, it must be {' or '.join(REAL)}")
        rule.finish()
        return (TensorType(shape, dtype),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        along, dtype = integer_of(attributes, "dimension"), dtype_attribute(attributes)
        return mapped(self.name, operands, results, symbols, lambda point: cast(index(point[along]), dtype))

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        shape: tuple[int, ...] = attributes["shape"]
        along: int = attributes["dimension"]
        column = np.arange(shape[along]).reshape([-1 if k == along else 1 for k in range(len(shape))])
        return (convert(np.broadcast_to(column, shape), dtype_attribute(attributes)).copy(),)


OPERATOR = Iota()
