"""`assert_true`: stop the run where a condition does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation
from tilework.dims import Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, TokenType, ValueType
from tilework.loops.program import Buffer
from tilework.ops.operator import TOKEN, Array, Operator
from tilework.ops.rules import Rule


class AssertTrue(Operator):
    """Operands token and predicate (any shape); result token. A false element ends the run with `message`."""

    name = "assert_true"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        rule.text("message")
        (predicate,) = rule.token_and_tensors(1)
        rule.kind(predicate, ("boolean",), "the predicate")
        rule.finish()
        return (TokenType(),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        raise self.undefined("it ends the run")

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        if not operands[1].all():
            raise self.runtime_fault(str(attributes["message"]))
        return (TOKEN,)


OPERATOR = AssertTrue()
