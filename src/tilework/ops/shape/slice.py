"""`slice`: the elements from a start to a limit, every so many, along each dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integers_of, positive
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement, dims_of, undecided


class Slice(Movement):
    """Elements start, start + stride, ... below the limit of each dimension; 0 <= start <= limit <= extent.

    `start_indices` and `limit_indices` may be symbolic; `strides` are positive integers (1 where left out).
    """

    name = "slice"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        starts = rule.dims("start_indices", operand.rank)
        limits = rule.dims("limit_indices", operand.rank)
        strides = positive(rule, "strides", operand.rank)
        rule.check()
        for place, (start, limit, extent) in enumerate(zip(starts, limits, operand.shape, strict=True)):
            for low, high, what in (
                (0, start, "starts below 0"),
                (start, limit, "ends before it starts"),
                (limit, extent, "ends beyond the extent"),
            ):
                room = (high - low).value
                if room is not None and room < 0:
                    rule.fault(1225, f"dimension {place}: {start}:{limit} of {extent} {what}")
        rule.finish()
        shape = [(limit - start).ceildiv(stride) for start, limit, stride in zip(starts, limits, strides, strict=True)]
        return (TensorType(tuple(shape), operand.dtype),)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        shape = [extent for t in operands if isinstance(t, TensorType) for extent in t.shape]
        starts, limits = dims_of(attributes, "start_indices"), dims_of(attributes, "limit_indices")
        within = zip(starts, limits, shape, strict=True)
        return undecided(room for start, limit, extent in within for room in (start, limit - start, extent - limit))

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (source,) = operands
        starts = dims_of(attributes, "start_indices")
        strides = integers_of(attributes, "strides", (1,) * len(starts))
        return mapped(
            self.name, operands, results, symbols,
            lambda index: Load(
                source.name,
                tuple(i * step + start for i, start, step in zip(index, starts, strides, strict=True)),
                source.dtype,
            ),
        )  # fmt: skip

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        starts: tuple[int, ...] = attributes["start_indices"]
        limits: tuple[int, ...] = attributes["limit_indices"]
        strides: tuple[int, ...] = attributes.get("strides", (1,) * len(starts))
        for start, limit, extent in zip(starts, limits, operands[0].shape, strict=True):
            if not 0 <= start <= limit <= extent:
                raise self.runtime_fault(f"{start}:{limit} is no range of a dimension of extent {extent}")
        return (operands[0][tuple(map(slice, starts, limits, strides))].copy(),)


OPERATOR = Slice()
