"""`no_value`: what stands for a value that cannot be computed, in a branch that is not expected to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tilework import dtypes
from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.errors import RunError
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import constant
from tilework.loops.program import Buffer
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array, Operator
from tilework.ops.rules import Rule
from tilework.ops.values import dtype_attribute


class NoValue(Operator):
    """`no_value(; shape, dtype, reason)`: a tensor of that type, and an error with the reason whenever it is run."""

    name = "no_value"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        rule.tensors(0)
        shape, dtype = rule.shape("shape"), rule.dtype("dtype", dtypes.float32)
        rule.text("reason", "")
        rule.finish()
        return (TensorType(shape, dtype),)

    def refusal(self, attributes: Mapping[str, Attribute]) -> str:
        return str(attributes.get("reason", "")) or "there is no such value"

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        dtype = dtype_attribute(attributes)
        zero = constant(False if dtype.kind == "boolean" else 0, dtype)
        return mapped(self.name, operands, results, symbols, lambda _: zero)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> NoReturn:
        raise RunError(1804, self.refusal(attributes))


OPERATOR = NoValue()
