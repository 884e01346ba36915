"""`resample`: the elements at evenly spaced positions along each dimension, rounded down and kept inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol, maximum, minimum, symbol_bounds
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integers_of, positive
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement, dims_of, undecided


class Resample(Movement):
    """`resample(operand; shape, starts, steps, divisors)`: along each dimension, result element i is the operand's at

        min(max((i * step + start) // divisor, 0), extent - 1)

    `shape` and `starts` are dims; `steps` (at least 0) and `divisors` (at least 1) are integers, 1 where left out. A
    dimension without elements cannot be sampled. Nearest neighbours, and the taps of interpolations.
    """

    name = "resample"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        shape = rule.shape("shape")
        rule.dims("starts", operand.rank)
        steps = rule.integers("steps", operand.rank, (1,) * operand.rank)
        positive(rule, "divisors", operand.rank)
        if any(step < 0 for step in steps):
            rule.fault(1225, f"attribute 'steps' is {steps}, its entries must be at least 0")
        if len(shape) != operand.rank:
            rule.fault(1225, f"attribute 'shape' has {len(shape)} entries, the operand has rank {operand.rank}")
        for place, (extent, own) in enumerate(zip(shape, operand.shape, strict=False)):
            if own == 0 and extent.is_constant and extent != 0:
                rule.fault(1225, f"dimension {place} has no elements to take {extent} from")
        rule.finish()
        return (TensorType(shape, operand.dtype),)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        own = [extent for t in operands if isinstance(t, TensorType) for extent in t.shape]
        pairs = zip(own, dims_of(attributes, "shape"), strict=True)
        return undecided(maximum(extent - 1, -wanted) for extent, wanted in pairs if extent != wanted)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (source,) = operands
        (result,) = results
        starts = dims_of(attributes, "starts")
        steps, divisors = (integers_of(attributes, name, (1,) * len(starts)) for name in ("steps", "divisors"))
        bounds = symbol_bounds(symbols)

        def inside(place: int, i: Dim) -> Dim:
            """The position, clamped at the ends that it may pass."""

            def position(at: Dim) -> Dim:
                return (at * steps[place] + starts[place]) // divisors[place]

            last = source.shape[place] - 1
            found = position(i)
            if (last - position(result.shape[place] - 1)).bounds(bounds)[0] < 0:
                found = minimum(found, last)
            return maximum(found, 0) if position(Dim()).bounds(bounds)[0] < 0 else found

        return mapped(
            self.name, operands, results, symbols,
            lambda index: Load(source.name, tuple(inside(place, i) for place, i in enumerate(index)), source.dtype),
        )  # fmt: skip

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (x,) = operands
        shape: tuple[int, ...] = attributes["shape"]
        ones = (1,) * x.ndim
        for place, extent in enumerate(x.shape):
            if extent == 0 and shape[place]:
                raise self.runtime_fault(f"dimension {place} has no elements to take {shape[place]} from")
            step, divisor = attributes.get("steps", ones)[place], attributes.get("divisors", ones)[place]
            positions = (np.arange(shape[place]) * step + attributes["starts"][place]) // divisor
            x = np.take(x, np.clip(positions, 0, max(extent - 1, 0)), axis=place)
        return (np.array(x),)


OPERATOR = Resample()
