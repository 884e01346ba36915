"""The base of elementwise operators: operands of one element type, broadcast as numpy does it.

An operator of this family names a scalar function of `loops.functions`, which gives its type rule and its definition,
and says in numpy what the function's values are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.dtypes import DType, dtype_of
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Expression, call
from tilework.loops.functions import result_type, scalar_function
from tilework.loops.program import Buffer
from tilework.ops.definitions import broadcast_load, mapped
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.rules import Rule
from tilework.ops.values import narrow, widen

LOW = PrecisionFacts(safe_low=True)
"""Fine in 16 bits."""
WIDE = PrecisionFacts(keep_float32=True)
"""Large or cancelling results: never below 32 bits (the operators that automatic mixed precision keeps wide)."""
TRANSCENDENTAL = 16
"""Arithmetic operations that a polynomial for a transcendental function takes, about."""


class Elementwise(Operator):
    """An operator whose result element depends on its operands' elements at the same index.

    Subclasses set `function` (and so the element kinds they take), `arity`, `operations` (arithmetic operations an
    element), and implement `values`.
    """

    elementwise = True
    function: str = ""
    arity: int = 1
    operations: int = 1

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        tensors = rule.tensors(self.arity)
        rule.same_dtype(tensors)
        kinds = scalar_function(self.function).kinds
        for position, operand in enumerate(tensors):
            rule.kind(operand, kinds, f"operand {position}")
        shape = rule.broadcast(tensors)
        rule.finish()
        return (TensorType(shape, result_type(self.function, tuple(t.dtype for t in tensors))),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        return mapped(
            self.name, operands, results, symbols,
            lambda index: self.scalar([broadcast_load(operand, index) for operand in operands], attributes),
        )  # fmt: skip

    def scalar(self, operands: Sequence[Expression], attributes: Mapping[str, Attribute]) -> Expression:
        """The result element from the operands' elements."""
        return call(self.function, *operands)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (result,) = results
        with np.errstate(all="ignore"):
            found = self.evaluate(operands, dtype_of(operands[0]), attributes)
        return (narrow(found, result.dtype),)

    def evaluate(self, operands: Sequence[Array], dtype: DType, attributes: Mapping[str, Any]) -> Array:
        """The values from operands of type `dtype`; the caller narrows them to the result's type."""
        return self.values(*(widen(operand) for operand in operands))

    def values(self, *operands: Array) -> Array:
        """The function in numpy. Floating operands come as float64 (narrowing rounds once), 4-bit ones as int64."""
        raise AssertionError(f"{self.name} has neither `values` nor `evaluate`")

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        moved = super().counts(operands, results, attributes)
        return Counts(
            sum((t.size for t in results if isinstance(t, TensorType)), moved.flops) * self.operations, moved.bytes
        )


class Unary(Elementwise):
    """One operand."""

    def values(self, *operands: Array) -> Array:
        (x,) = operands
        return self.of(x)

    @abstractmethod
    def of(self, x: Array) -> Array:
        """The function of one array."""


class Binary(Elementwise):
    """Two operands of one element type."""

    arity = 2

    def values(self, *operands: Array) -> Array:
        x, y = operands
        return self.of(x, y)

    @abstractmethod
    def of(self, x: Array, y: Array) -> Array:
        """The function of two arrays that broadcast."""
