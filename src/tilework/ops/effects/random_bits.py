"""`random_bits`: counter-based random numbers in the order of a graph's effects (see `_philox`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation
from tilework.dims import Symbol, product
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, TokenType, ValueType
from tilework.loops.program import Buffer
from tilework.ops import _philox
from tilework.ops.operator import TOKEN, Array, Counts, Operator
from tilework.ops.rules import Rule


class RandomBits(Operator):
    """Operands token, key uint64[2], counter uint64[1]; results token and `shape` random elements of `dtype`.

    Block b is Philox of the 128-bit counter (counter[0] + b, key[1]) under the 64-bit key key[0], low words first. It
    gives four uint32 elements or two uint64 ones, in row-major order. So the same operands give the same bits on any
    machine, and a caller that adds the number of blocks to the counter never sees one twice.
    """

    name = "random_bits"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        result = _philox.result_type(rule)
        key, counter = rule.token_and_tensors(2)
        _philox.check_operands(rule, key, counter)
        rule.finish()
        return TokenType(), result

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
        _, key, counter = operands
        return TOKEN, _philox.bits(key, counter, attributes)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        moved = super().counts(operands, results, attributes)
        made = product(e for t in results if isinstance(t, TensorType) for e in t.shape)
        return Counts(made * _philox.OPERATIONS, moved.bytes)


OPERATOR = RandomBits()
