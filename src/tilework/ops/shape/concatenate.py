"""`concatenate`: tensors one after another along a dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integer_of, same_dim
from tilework.ops.definitions import computation, copied
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement


class Concatenate(Movement):
    """The operands one after another along `dimension`; their other extents are equal. One stage an operand."""

    name = "concatenate"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        tensors = rule.tensors(1, None)
        first = tensors[0]
        along = rule.axis("dimension", first.rank)
        rule.same_dtype(tensors)
        total = first.shape[along] if first.rank else Dim()
        for position, other in enumerate(tensors[1:], 1):
            if other.rank != first.rank:
                rule.fault(1223, f"operand {position} has rank {other.rank}, operand 0 has rank {first.rank}")
                continue
            for place in range(first.rank):
                if place != along:
                    what = f"dimensions {place} of operands 0 and {position}"
                    same_dim(rule, first.shape[place], other.shape[place], what)
            total = total + other.shape[along] if first.rank else total
        rule.finish()
        return (TensorType((*first.shape[:along], total, *first.shape[along + 1 :]), first.dtype),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (result,) = results
        along = integer_of(attributes, "dimension")
        stages: list[Stage] = []
        offset = Dim()
        for position, source in enumerate(operands):
            stages.append(_part(f"part{position}", source, result, along, offset))
            offset = offset + source.shape[along]
        return computation(self.name, operands, results, stages, symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        return (np.concatenate(list(operands), attributes["dimension"]),)


def _part(name: str, source: Buffer, result: Buffer, along: int, offset: Dim) -> Stage:
    return copied(
        name, result, source.shape,
        lambda point: Load(source.name, point, source.dtype),
        lambda point: [i + offset if place == along else i for place, i in enumerate(point)],
    )  # fmt: skip


OPERATOR = Concatenate()
