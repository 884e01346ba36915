"""`pad_reflect`: padding with the tensor's own elements, mirrored, repeated from the edge, or wrapped around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, Symbol, dim, maximum, minimum, symbol_bounds
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops._attributes import integers_of
from tilework.ops.definitions import computation, copied
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement, undecided

MODES = ("reflect", "edge", "wrap")


class PadReflect(Movement):
    """`low` elements before and `high` behind, along each dimension, found by `mode` as `numpy.pad` does:

    "reflect" mirrors at the first and last element without repeating it, "edge" repeats it, "wrap" continues at the
    other end. A dimension of extent 0 cannot be padded.
    """

    name = "pad_reflect"

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        (operand,) = rule.tensors(1)
        low = rule.integers("low", operand.rank)
        high = rule.integers("high", operand.rank)
        rule.choice("mode", MODES)
        for place, (before, behind, extent) in enumerate(zip(low, high, operand.shape, strict=True)):
            if before < 0 or behind < 0:
                rule.fault(1225, f"dimension {place}: padding {before}, {behind} must not be negative")
            elif extent == 0 and before + behind:
                rule.fault(1225, f"dimension {place} has no elements to pad with")
        rule.finish()
        shape = (extent + before + behind for extent, before, behind in zip(operand.shape, low, high, strict=True))
        return (TensorType(tuple(shape), operand.dtype),)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        shape = [extent for t in operands if isinstance(t, TensorType) for extent in t.shape]
        padded = zip(shape, integers_of(attributes, "low"), integers_of(attributes, "high"), strict=True)
        return undecided(extent - 1 for extent, low, high in padded if low or high)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (source,) = operands
        (result,) = results
        low, high = integers_of(attributes, "low"), integers_of(attributes, "high")
        parts: list[tuple[_Part, ...]] = [()]
        for extent, before, behind in zip(source.shape, low, high, strict=True):
            along = _parts(str(attributes["mode"]), extent, before, behind, symbols)
            parts = [(*chosen, part) for chosen in parts for part in along]
        stages = [_stage(f"part{number}", source, result, chosen) for number, chosen in enumerate(parts)]
        return computation(self.name, operands, results, stages, symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        (x,) = operands
        around = list(zip(attributes["low"], attributes["high"], strict=True))
        if any(extent == 0 and sum(pair) for extent, pair in zip(x.shape, around, strict=True)):
            raise self.runtime_fault("a dimension without elements cannot be padded with its own")
        mode = attributes["mode"]
        return (np.pad(x, around, mode) if x.ndim else x.copy(),)


@dataclass(frozen=True)
class _Part:
    """`count` result indices from `start` along one dimension; the i-th reads `sign * i + offset`.

    Where `extent` is given that index may lie outside 0 .. extent - 1, and `mode` brings it back.
    """

    start: Dim
    count: Dim
    sign: int
    offset: Dim
    mode: str = ""
    extent: Dim | None = None

    def source(self, i: Dim) -> Dim:
        """The source index of the i-th element of the part."""
        plain = i * self.sign + self.offset
        if self.extent is None:
            return plain
        if self.mode == "edge":
            return maximum(0, minimum(plain, self.extent - 1))
        if self.mode == "wrap":
            return plain % maximum(self.extent, 1)
        period = maximum((self.extent - 1) * 2, 1)
        return minimum(plain % period, (self.extent - 1) * 2 - plain % period)

    def guards(self) -> tuple[Dim, ...]:
        """A symbolic extent may turn out 0, and then nothing can be read."""
        return () if self.extent is None or self.extent.is_constant else (self.extent - 1,)


def _parts(mode: str, extent: Dim, low: int, high: int, symbols: Sequence[Symbol]) -> list[_Part]:
    """Up to three affine parts where the extent is known to suffice, else one that clamps or takes remainders."""
    if low == high == 0:
        return [_Part(Dim(), extent, 1, Dim())]
    least = extent.bounds(symbol_bounds(symbols))[0]
    needed = {"reflect": max(low, high) + 1, "edge": 1, "wrap": max(low, high, 1)}[mode]
    if least < needed:
        return [_Part(Dim(), extent + low + high, 1, dim(-low), mode, extent)]
    before, behind = {
        "reflect": ((-1, dim(low)), (-1, extent - 2)),
        "edge": ((0, Dim()), (0, extent - 1)),
        "wrap": ((1, extent - low), (1, Dim())),
    }[mode]
    found = [
        _Part(Dim(), dim(low), *before),
        _Part(dim(low), extent, 1, Dim()),
        _Part(extent + low, dim(high), *behind),
    ]
    return [part for part in found if part.count != 0]


def _stage(name: str, source: Buffer, result: Buffer, parts: Sequence[_Part]) -> Stage:
    return copied(
        name, result, [part.count for part in parts],
        lambda point: Load(
            source.name, tuple(part.source(i) for part, i in zip(parts, point, strict=True)), source.dtype
        ),
        lambda point: [i + part.start for part, i in zip(parts, point, strict=True)],
        lambda _: [guard for part in parts for guard in part.guards()],
    )  # fmt: skip


OPERATOR = PadReflect()
