"""`broadcast_in_dim`: repeat a tensor along new dimensions and along those of extent 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integers_of
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement


class BroadcastInDim(Movement):
    """Dimension k of the operand becomes dimension `broadcast_dimensions[k]` of `shape`: equal, or literally 1."""

    name = "broadcast_in_dim"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        shape = rule.shape("shape")
        places = rule.axes("broadcast_dimensions", len(shape))
        (operand,) = rule.tensors(1)
        rule.check()
        if len(places) != operand.rank:
            rule.stop(
                1225,
                f"attribute 'broadcast_dimensions' has {len(places)} entries for an operand of rank {operand.rank}",
            )
        for extent, place in zip(operand.shape, places, strict=True):
            if extent not in (1, shape[place]):
                rule.fault(1223, f"extent {extent} cannot become {shape[place]} (dimension {place} of the result)")
        rule.finish()
        return (TensorType(shape, operand.dtype),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (source,) = operands
        pairs = list(zip(source.shape, integers_of(attributes, "broadcast_dimensions"), strict=True))
        return mapped(
            self.name, operands, results, symbols,
            lambda index: Load(
                source.name, tuple(Dim() if extent == 1 else index[place] for extent, place in pairs), source.dtype
            ),
        )  # fmt: skip

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (x,) = operands
        places: tuple[int, ...] = attributes["broadcast_dimensions"]
        shape: tuple[int, ...] = attributes["shape"]
        order = sorted(range(len(places)), key=lambda k: places[k])
        spread = [1] * len(shape)
        for k in order:
            spread[places[k]] = x.shape[k]
        return (np.broadcast_to(x.transpose(order).reshape(spread), shape).copy(),)


OPERATOR = BroadcastInDim()
