"""`assume`: the same elements under extents that must turn out equal, and other conditions on sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation
from tilework.dims import Dim, Symbol, maximum, minimum
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement, dims_of, undecided


class Assume(Movement):
    """The operand under a type whose extents are other expressions of the same numbers.

    What cannot be proved is checked before it runs: every extent of `shape` equals the operand's, every dim of
    `at_least_zero` (none where left out) is not negative, and the dims of each pair of `one_or_equal` (one pair
    after the other, none where left out) are equal, or one of them is 1. Extents that never are equal are refused.
    """

    name = "assume"
    view = True

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        shape = rule.shape("shape")
        rule.dims("at_least_zero", default=())
        if len(rule.dims("one_or_equal", default=())) % 2:
            rule.fault(1225, "attribute 'one_or_equal' must hold pairs of dims")
        (operand,) = rule.tensors(1)
        if len(shape) != operand.rank:
            rule.stop(1223, f"[{', '.join(map(str, shape))}] has another rank than {operand}")
        for place, (one, other) in enumerate(zip(shape, operand.shape, strict=True)):
            if (one - other).is_constant and one != other:
                rule.fault(1223, f"dimension {place} of {operand} is never {one}")
        rule.finish()
        return (TensorType(shape, operand.dtype),)

    def requirements(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[Dim, ...]:
        found = [extent for t in operands if isinstance(t, TensorType) for extent in t.shape]
        pairs = zip(dims_of(attributes, "shape"), found, strict=True)
        rooms = [room for one, other in pairs for room in (one - other, other - one)]
        rooms += dims_of(attributes, "at_least_zero") if "at_least_zero" in attributes else ()
        rooms += [_room(*pair) for pair in _pairs(attributes)]
        return undecided(rooms)

    def sentence(self, needed: Dim, attributes: Mapping[str, Attribute]) -> str:
        for one, other in _pairs(attributes):
            if needed == _room(one, other):
                fixed, free = (one, other) if one.is_constant else (other, one)
                either = f"{free} = 1, or {free} = {fixed}"
                return either if fixed.is_constant else f"{one} = {other}, or one of them = 1"
        return ""

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        (source,) = operands
        return mapped(self.name, operands, results, symbols, lambda index: Load(source.name, index, source.dtype))

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        shape = tuple(attributes["shape"])
        if operands[0].shape != shape:
            raise self.runtime_fault(f"an operand of shape {operands[0].shape} was assumed to be {shape}")
        return (operands[0].copy(),)


def _pairs(attributes: Mapping[str, Attribute]) -> list[tuple[Dim, Dim]]:
    found = dims_of(attributes, "one_or_equal") if "one_or_equal" in attributes else ()
    return list(zip(found[::2], found[1::2], strict=True))


def _room(one: Dim, other: Dim) -> Dim:
    """0 where two extents are equal or one of them is 1, otherwise negative; no products, which might overflow."""
    return -minimum(*(maximum(gap, -gap) for gap in (one - 1, other - 1, one - other)))


OPERATOR = Assume()
