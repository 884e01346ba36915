"""`pad`: a value around and between the elements; negative padding crops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol, maximum
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integers_of
from tilework.ops.definitions import computation, copied
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement, dims_of, undecided


class Pad(Movement):
    """The operand with the scalar second operand around it.

    Along each dimension: `interior_padding` (>= 0, left out: 0) between neighbours, then `edge_padding_low` before and
    `edge_padding_high` behind (dims; negative ones crop). A stage fills the result, another writes the operand over it.
    """

    name = "pad"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        operand, value = rule.tensors(2)
        rule.scalar(value, "the value")
        rule.same_dtype((operand, value), "operand and value")
        rank = operand.rank
        low = rule.dims("edge_padding_low", rank)
        high = rule.dims("edge_padding_high", rank)
        interior = rule.integers("interior_padding", rank, (0,) * rank)
        if any(entry < 0 for entry in interior):
            rule.fault(1225, f"attribute 'interior_padding' is {interior}, its entries must be at least 0")
        rule.check()
        shape: list[Dim] = []
        for place, extent in enumerate(operand.shape):
            found = low[place] + _spread(extent, interior[place]) + high[place]
            if found.value is not None and found.value < 0:
                rule.fault(1225, f"dimension {place} of extent {extent} is cropped to {found}")
            shape.append(found)
        rule.finish()
        return (TensorType(tuple(shape), operand.dtype),)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        (result,) = self.infer(operands, attributes)
        return undecided(result.shape if isinstance(result, TensorType) else ())

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        source, value = operands
        (result,) = results
        low, high = dims_of(attributes, "edge_padding_low"), dims_of(attributes, "edge_padding_high")
        interior = integers_of(attributes, "interior_padding", (0,) * len(low))

        def index(point: tuple[Dim, ...]) -> list[Dim]:
            return [i * (1 + gap) + before for i, gap, before in zip(point, interior, low, strict=True)]

        def guards(point: tuple[Dim, ...]) -> list[Dim]:
            found: list[Dim] = []
            for place, at in enumerate(index(point)):
                if not _never_negative(low[place]):
                    found.append(at)
                if not _never_negative(high[place]):
                    found.append(result.shape[place] - 1 - at)
            return found

        fill = copied("fill", result, result.shape, lambda _: Load(value.name, (), value.dtype), lambda point: point)
        inside = copied(
            "inside", result, source.shape, lambda point: Load(source.name, point, source.dtype), index, guards
        )
        return computation(self.name, operands, results, [fill, inside], symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        x, value = operands
        low, high = attributes["edge_padding_low"], attributes["edge_padding_high"]
        interior = attributes.get("interior_padding", (0,) * x.ndim)
        spread = [_spread_length(n, gap) for n, gap in zip(x.shape, interior, strict=True)]
        body: Array = np.full(spread, value, x.dtype)
        body[tuple(slice(None, None, gap + 1) for gap in interior)] = x
        around = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
        padded = np.pad(body, around, constant_values=value) if x.ndim else body
        crop: list[slice] = []
        for a, b, n in zip(low, high, padded.shape, strict=True):
            if n + min(a, 0) + min(b, 0) < 0:
                raise self.runtime_fault(f"padding {a}, {b} crops a dimension of extent {n} below 0")
            crop.append(slice(-min(a, 0), n + min(b, 0)))
        return (padded[tuple(crop)].astype(x.dtype),)


def _spread(extent: Dim, gap: int) -> Dim:
    return extent + maximum(extent - 1, 0) * gap if gap else extent


def _spread_length(extent: int, gap: int) -> int:
    return extent + max(extent - 1, 0) * gap


def _never_negative(padding: Dim) -> bool:
    return padding.value is not None and padding.value >= 0


OPERATOR = Pad()
