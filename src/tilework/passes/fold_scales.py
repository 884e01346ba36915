"""Scales and shifts by constants around a product go into its weights and one bias: folded batch normalisation.

    (sum(w * x) + t) * s + u     =  sum((w * s) * x) + (t * s + u)         s, t, u: one number per output channel
    sum(w * (x * s + t))         =  sum((w * s) * x) + sum(w * t)          s, t: one number per input channel

The second needs a convolution that reads nothing outside its input, unless there is no t.

Not value-exact: a result differs as it may where a sum runs in another order. NaN and infinities among the operands
give what they gave: every number involved is finite, and no weight becomes infinite or 0. What may differ is a sum of
finite numbers that overflows on its way, within `FAR` of the largest number, and what a weight that becomes subnormal
loses: less than 2^-149 times an input. A scale of 0 is a scale (0 * infinity stays NaN). Zeros keep their sign: a scale
that is not positive is folded only with a shift.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Graph, Node
from tilework.passes._growing import Growing
from tilework.passes._weights import Weights, scaled

FAR = 2.0**32
"""The largest scale that is folded, and one by the smallest but 0."""


@dataclass(frozen=True)
class _Affine:
    """x * scale + shift, float64; `shift` is None where nothing is added. `nodes` compute it, in order."""

    scale: Array
    shift: Array | None
    nodes: tuple[Node, ...] = ()

    def usable(self) -> bool:
        """Whether specials and the signs of zeros stay what they are."""
        size = np.abs(self.scale)
        if not bool(np.all((size == 0) | ((size >= 1 / FAR) & (size <= FAR)))):
            return False
        if self.shift is not None and not bool(np.all(np.isfinite(self.shift))):
            return False
        signed = self.shift is None or bool(np.any((self.shift == 0) & np.signbit(self.shift)))
        return not signed or bool(np.all(self.scale > 0))


@dataclass(frozen=True)
class FoldScales:
    """Folds around the products of the outermost graph whose weights are constants and have no other reader.

    No part of the default pipeline: left out where numerics do not let sums be regrouped. Constants have to be folded
    before.
    """

    name: ClassVar[str] = "fold_scales"

    def run(self, graph: Graph) -> Graph:
        """The graph with scales and shifts folded; itself where there are none."""
        folds: dict[str, _Fold] = {}
        taken: set[str] = set()
        for node in graph.nodes:
            with np.errstate(all="ignore"):
                found = _fold(graph, node, taken)
            if found is not None:
                folds[node.name] = found
                taken.update(one.name for one in (*found.before, *found.after))
        return _rewritten(graph, folds) if folds else graph


@dataclass(frozen=True)
class _Fold:
    """A product of `data` and `array` plus `bias` (broadcasting against it), in place of `before`, it, and `after`."""

    weights: Weights
    data: str
    array: Array
    bias: Array | None
    before: tuple[Node, ...]
    after: tuple[Node, ...]

    @property
    def called(self) -> str:
        """The name of the weights as they were."""
        return self.weights.product.inputs[self.weights.place]


def _fold(graph: Graph, node: Node, taken: set[str]) -> _Fold | None:
    weights = Weights.of(graph, node)
    if weights is None:
        return None
    before, after = _read(graph, weights, taken), _tail(graph, weights)
    if before is None and after is None:
        return None
    by: Array = np.ones(())
    bias: Array | None = None
    if before is not None:
        into = weights.for_data(before.scale)
        assert into is not None
        by = into
        if before.shift is not None:
            bias = _summed(weights, before.shift)
    if after is not None:
        into = weights.for_weights(after.scale, node.output.tensor.rank, weights.outward)
        assert into is not None
        by = by * into
        bias = None if bias is None else bias * after.scale
        if after.shift is not None:
            bias = after.shift if bias is None else bias + after.shift
    array = scaled(weights.array, by)
    if bias is not None:
        bias = bias.astype(array.dtype)
    if not _keeps(weights.array, array, by) or not (bias is None or bool(np.all(np.isfinite(bias)))):
        return None
    data = weights.data.name if before is None else _operand(graph, before.nodes[0])
    return _Fold(
        weights, data, array, bias, () if before is None else before.nodes, () if after is None else after.nodes
    )


def _summed(weights: Weights, shift: Array) -> Array:
    """The product of a shift that stands at every element of the other operand."""
    add = weights.for_data(shift)
    assert add is not None
    total: Array = np.asarray(np.sum(weights.array * add, axis=weights.contracted, keepdims=True, dtype=np.float64))
    return weights.for_result(total)


def _keeps(old: Array, new: Array, by: Array) -> bool:
    """Whether weights are finite, before and after, and none is gone (infinity times it was no NaN)."""
    finite = bool(np.all(np.isfinite(old)) and np.all(np.isfinite(new)))
    return finite and bool(np.all((new != 0) | (old == 0) | (by == 0)))


def _rewritten(graph: Graph, folds: dict[str, _Fold]) -> Graph:
    grow = Growing(graph)
    gone = {node.name for fold in folds.values() for node in (*fold.before, *fold.after[:-1])}
    biased = {(fold.after or (fold.weights.product,))[-1].name: fold for fold in folds.values()}
    products: dict[str, str] = {}
    for node in graph.nodes:
        grow.location = node.location
        if node.name in folds:
            fold = folds[node.name]
            into = (fold.after or (node,))[-1].output
            held = grow.constant(fold.array, f"{fold.called}.folded")
            operands = [grow.values[fold.data], held][:: 1 if fold.weights.place == 1 else -1]
            made = grow.apply(node.operator, *operands, as_=into if fold.bias is None else None, like=node.attributes)
            products[node.name] = made.name
        if node.name in biased:
            fold = biased[node.name]
            if fold.bias is not None:
                bias = grow.constant(fold.bias, f"{fold.called}.bias")
                grow.apply("add", grow.values[products[fold.weights.product.name]], bias, as_=node.output)
        elif node.name not in gone and node.name not in folds:
            grow.keep(node)
    return grow.built()


# -- finding them ------------------------------------------------------------------------------------------------------
def _tail(graph: Graph, weights: Weights) -> _Affine | None:
    """What the product's results go through, one after the other, as long as it is a scale or shift per channel."""
    rank = weights.product.output.tensor.rank

    def fits(numbers: Array) -> bool:
        return weights.for_weights(numbers, rank, weights.outward) is not None

    found = _Affine(np.ones(()), None)
    best: _Affine | None = None
    value, scales, shifts = weights.product.output, False, 0
    while (reader := _only_reader(graph, value.name)) is not None:
        step = _step(graph, reader, value.name)
        if step is None or not fits(step.scale) or (step.shift is not None and not fits(step.shift)):
            break
        found = _then(found, step)
        scales = scales or bool(np.any(step.scale != 1))
        shifts += step.shift is not None
        if found.usable() and (scales or shifts > 1):
            best = found
        value = reader.output
    return best


def _read(graph: Graph, weights: Weights, taken: set[str]) -> _Affine | None:
    """What makes the other operand: x * s, x / s, or that + t; not (x + t) * s, whose first step may be exact."""
    nodes: list[Node] = []
    name = weights.data.name
    for kinds in (("add",), ("multiply", "divide")):
        node = graph.producers.get(name)
        if node is None or _only_reader(graph, name) is None or node.name in taken:
            break
        if node.operator not in kinds:
            continue
        other = _operand(graph, node)
        if not other:
            break
        nodes.insert(0, node)
        name = other
    if not nodes or nodes[0].operator == "add":
        return None
    found = _Affine(np.ones(()), None)
    for node in nodes:
        step = _step(graph, node, name)
        if step is None:
            return None
        found = _then(found, step)
        name = node.output.name
    if weights.for_data(found.scale) is None or not found.usable():
        return None
    if found.shift is not None and (weights.pads or weights.for_data(found.shift) is None):
        return None
    return found


def _only_reader(graph: Graph, name: str) -> Node | None:
    """The node that alone reads a value, once, with no subgraphs; None otherwise, and for outputs of the graph."""
    readers = graph.consumers.get(name, ())
    if len(readers) != 1 or name in graph.outputs:
        return None
    (reader,) = readers
    plain = not reader.subgraphs and not reader.black_box and len(reader.outputs) == 1
    return reader if plain and reader.inputs.count(name) == 1 else None


def _operand(graph: Graph, node: Node) -> str:
    """The operand that is no constant, of a node that has one of either kind; nothing if it has not."""
    other = [name for name in node.inputs if name not in graph.constant_arrays]
    return other[0] if len(other) == 1 and len(node.inputs) == 2 and not node.black_box else ""


def _step(graph: Graph, node: Node, name: str) -> _Affine | None:
    """What one node does to a value, if that is a scale or shift by a constant that keeps its type."""
    make = _STEPS.get(node.operator)
    if make is None or node.black_box or len(node.inputs) != 2 or node.output.type != graph.values[name].type:
        return None
    array = graph.constant_arrays.get(node.inputs[1 - node.inputs.index(name)])
    if array is None or not array.size:
        return None
    found = make(array.astype(np.float64), node.inputs[0] == name)
    return None if found is None else _Affine(*found, (node,))


def _then(first: _Affine, second: _Affine) -> _Affine:
    """One after the other."""
    shift = None if first.shift is None else first.shift * second.scale
    if second.shift is not None:
        shift = second.shift if shift is None else shift + second.shift
    return _Affine(first.scale * second.scale, shift, (*first.nodes, *second.nodes))


_STEPS: dict[str, Callable[[Array, bool], tuple[Array, Array | None] | None]] = {
    "multiply": lambda by, _: (by, None),
    "divide": lambda by, left: (1 / by, None) if left else None,
    "add": lambda by, _: (np.ones(()), by),
    "subtract": lambda by, left: (np.ones(()), -by) if left else (-np.ones(()), by),
}
"""Scale and shift by a constant that is the right operand, if the value is the left one (else the other way round)."""
