"""`reshape`: the same elements in the same row-major order, in another shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.compute.notation import Computation
from tilework.dims import ONE, Dim, Symbol, product, symbol_bounds
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Load
from tilework.loops.program import Buffer
from tilework.ops.definitions import mapped
from tilework.ops.operator import Array
from tilework.ops.rules import Rule
from tilework.ops.shape._base import Movement


class Reshape(Movement):
    """The same elements in the same row-major order, in the `shape` given; sizes must be equal as expressions."""

    name = "reshape"
    view = True

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        shape = rule.shape("shape")
        (operand,) = rule.tensors(1)
        size = product(shape)
        if size != operand.size:
            text = f"[{', '.join(map(str, shape))}] has {size} elements, {operand} has {operand.size}"
            symbolic = (
                "" if size.is_constant and operand.size.is_constant else "; symbolic sizes must be the same expression"
            )
            rule.fault(1223, text + symbolic)
        rule.finish()
        return (TensorType(shape, operand.dtype),)

    def define(
        self,
        operands: Sequence[Buffer],
        results: Sequence[Buffer],
        attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:
        source, target = operands[0], results[0]
        return mapped(
            self.name, operands, results, symbols,
            lambda index: Load(source.name, source_index(source.shape, target.shape, index, symbols), source.dtype),
        )  # fmt: skip

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        return (operands[0].reshape(attributes["shape"]),)


def source_index(
    source: Sequence[Dim], target: Sequence[Dim], index: Sequence[Dim], symbols: Sequence[Symbol]
) -> tuple[Dim, ...]:
    """The index in a source shape of the element at `index` of a target shape of the same size.

    Dimensions are matched in groups of equal size, so that kept dimensions keep their index, and only a group that is
    split or merged goes through its flat index. An empty shape has no element: any index will do.
    """
    if any(extent == 0 for extent in (*source, *target)):
        return tuple(Dim() for _ in source)
    bounds = symbol_bounds(symbols)
    for entry, extent in zip(index, target, strict=True):
        low, high = (extent - 1).bounds(bounds)
        bounds.update({name: (0, max(high, 0, low)) for name in entry.names() if entry == Dim((((name,), 1),))})
    found: list[Dim] = [Dim()] * len(source)
    for (first, last), (begin, end) in _groups(source, target):
        flat = Dim()
        for place in range(begin, end):
            flat = flat * target[place] + index[place]
        step = ONE
        for place in reversed(range(first, last)):
            if source[place] == 1:
                continue
            entry = flat // step
            outermost = all(source[before] == 1 for before in range(first, place))
            found[place] = (entry if outermost else entry % source[place]).simplify(bounds)
            step = step * source[place]
    return tuple(found)


def _groups(source: Sequence[Dim], target: Sequence[Dim]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Ranges of dimensions, from left to right, whose sizes are equal and cannot be cut finer."""
    sizes: dict[Dim, int] = {}
    size = ONE
    for place, extent in enumerate(target):
        size = size * extent
        if extent != 1:
            sizes[size] = place + 1
    groups: list[tuple[tuple[int, int], tuple[int, int]]] = []
    first, begin, size = 0, 0, ONE
    for place, extent in enumerate(source):
        size = size * extent
        if extent != 1 and size in sizes and sizes[size] > begin:
            groups.append(((first, place + 1), (begin, sizes[size])))
            first, begin = place + 1, sizes[size]
    return groups


OPERATOR = Reshape()
