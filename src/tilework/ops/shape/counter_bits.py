"""`counter_bits`: random bits that are a function of a key and a counter, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation
from tilework.dims import Symbol, product
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.ops import _philox
from tilework.ops.operator import Array, Counts, Operator
from tilework.ops.rules import Rule


class CounterBits(Operator):
    """Operands key uint64[2], counter uint64[1]; result `shape` random elements of `dtype`, uint32 or uint64.

    Without a token: who applies it sees to it that no two applications share a key and counters. The elements are those
    of `random_bits`.
    """

    name = "counter_bits"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        result = _philox.result_type(rule)
        key, counter = rule.tensors(2)
        _philox.check_operands(rule, key, counter)
        rule.finish()
        return (result,)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        return _philox.definition(self.name, operands, results, symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        key, counter = operands
        return (_philox.bits(key, counter, attributes),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        moved = super().counts(operands, results, attributes)
        made = product(extent for kind in results if isinstance(kind, TensorType) for extent in kind.shape)
        return Counts(made * _philox.OPERATIONS, moved.bytes)


OPERATOR = CounterBits()
