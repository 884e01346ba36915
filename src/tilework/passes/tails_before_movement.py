"""What follows a product element by element comes before what only moves its results, so that it is stored with them.

    add(reshape(product), bias)  =  reshape(add(product, bias'))

and likewise behind a transpose, or a broadcast (which then repeats what is computed once). The other operands must be
able to go the other way for nothing: one number, a constant, a value moved likewise, or, past a reshape, any value
whose extents can be told apart there.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilework.dims import Dim, dim, product
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Graph, Node, Value
from tilework.ops._attributes import integers_of
from tilework.ops.operator import TypeFaults
from tilework.ops.registry import has_operator, operator
from tilework.passes._growing import Growing

_PRODUCTS = frozenset(("convolution", "dot_general"))
_MOVEMENTS = frozenset(("reshape", "transpose", "broadcast_in_dim"))


@dataclass(frozen=True)
class TailsBeforeMovement:
    """Moves elementwise nodes of the outermost graph before movements that nothing else reads."""

    name: ClassVar[str] = "tails_before_movement"

    def run(self, graph: Graph) -> Graph:
        """The graph with such tails moved; itself where there are none."""
        if not any(node.operator in _PRODUCTS for node in graph.nodes):
            return graph
        grow = Growing(graph)
        behind = _behind_products(graph)
        changed = False
        for node in graph.nodes:
            grow.location = node.location
            movement = _movement(grow, node, behind)
            done = None if movement is None else _moved(grow, node, movement)
            if done is None:
                grow.keep(node)
            else:
                behind.add(done.name)
                changed = True
        return grow.built() if changed else graph


def _plain(node: Node) -> bool:
    return not node.black_box and not node.subgraphs and len(node.outputs) == 1


def _elementwise(node: Node) -> bool:
    return _plain(node) and has_operator(node.operator) and operator(node.operator).elementwise


def _behind_products(graph: Graph) -> set[str]:
    """Values that are a product's results, perhaps moved or gone through elementwise nodes, that one node reads."""
    found: set[str] = set()
    for node in graph.nodes:
        if not _plain(node):
            continue
        follows = _elementwise(node) or node.operator in _MOVEMENTS
        if not (node.operator in _PRODUCTS or (follows and not found.isdisjoint(node.inputs))):
            continue
        name = node.output.name
        if name not in graph.outputs and len(graph.consumers.get(name, ())) == 1:
            found.add(name)
    return found


def _movement(grow: Growing, node: Node, behind: set[str]) -> Node | None:
    """The movement of a product's results that an elementwise node reads, where the node's result is as large."""
    if not _elementwise(node):
        return None
    for name in node.inputs:
        found = grow.producers.get(name)
        if found is None or found.operator not in _MOVEMENTS or not _plain(found) or name not in behind:
            continue
        if found.inputs[0] in behind and node.output.tensor.shape == found.output.tensor.shape:
            return found
    return None


def _moved(grow: Growing, node: Node, movement: Node) -> Value | None:
    """Add the node of what is moved, then the movement; gives what is moved now. None where that cannot be."""
    source = grow.values[movement.inputs[0]]
    back = _Back(grow, movement, source.tensor.shape)
    places = [back.place(name) for name in node.inputs]
    shapes = [place for place in places if place is not None]
    if len(shapes) < len(places):
        return None
    operands = [
        source if name == movement.output.name else back.value(name, shape)
        for name, shape in zip(node.inputs, shapes, strict=True)
    ]
    try:
        (kind,) = operator(node.operator).infer([value.type for value in operands], node.attributes)
        (whole,) = operator(movement.operator).infer([kind], movement.attributes)
    except TypeFaults:
        return None
    if whole != node.output.type:
        return None
    done = grow.apply(node.operator, *operands, like=node.attributes)
    grow.apply(movement.operator, done, like=movement.attributes, as_=node.output)
    return done


@dataclass(frozen=True)
class _Back:
    """Operands of a node behind a movement, as they are before it, where its operand has the shape `before`."""

    grow: Growing
    movement: Node
    before: tuple[Dim, ...]

    def place(self, name: str) -> tuple[Dim, ...] | None:
        """The shape of an operand there; None where it cannot go there for nothing."""
        if name == self.movement.output.name or self._likewise(name) is not None:
            return self.before
        shape, after = self.grow.values[name].tensor.shape, self.movement.output.tensor.shape
        whole = (dim(1),) * (len(after) - len(shape)) + shape
        if all(extent == 1 for extent in whole):
            return ()
        if self.movement.operator == "reshape":
            return _through_reshape(whole, after, self.before)
        if self.movement.operator != "transpose":
            return None
        many = sum(extent != 1 for extent in whole) > 1
        if many and self._array(name) is None:
            return None
        turned = list(whole)
        for extent, d in zip(whole, self._permutation, strict=True):
            turned[d] = extent
        return tuple(turned)

    def value(self, name: str, shape: tuple[Dim, ...]) -> Value:
        """The operand, with the shape that it has there."""
        likewise = self._likewise(name)
        if likewise is not None:
            return self.grow.values[likewise]
        value, array = self.grow.values[name], self._array(name)
        if value.tensor.shape == shape and sum(extent != 1 for extent in shape) <= 1:
            return value
        if array is None:
            return self.grow.apply("reshape", value, shape=shape)
        if shape and self.movement.operator == "transpose":
            array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
            array = array.transpose(np.argsort(self._permutation))
        return self.grow.constant(array.reshape([int(extent) for extent in shape]), f"{name}.moved")

    @property
    def _permutation(self) -> tuple[int, ...]:
        return integers_of(self.movement.attributes, "permutation")

    def _array(self, name: str) -> Array | None:
        return self.grow.graph.constant_arrays.get(name)

    def _likewise(self, name: str) -> str | None:
        """What an operand is before a movement like this one."""
        node = self.grow.producers.get(name)
        if node is None or node.operator != self.movement.operator or not _plain(node):
            return None
        same = dict(node.attributes) == dict(self.movement.attributes)
        there = self.grow.values[node.inputs[0]].tensor.shape
        return node.inputs[0] if same and there == self.before else None


def _through_reshape(shape: tuple[Dim, ...], after: tuple[Dim, ...], before: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """The shape that broadcasts against `before` as `shape` does against its reshape `after`; None if there is none."""
    groups = _groups(before, after)
    if groups is None:
        return None
    found = [dim(1)] * len(before)
    for there, here in groups:
        if all(shape[d] == 1 for d in here):
            continue
        if any(shape[d] != after[d] for d in here):
            return None
        for d in there:
            found[d] = before[d]
    return tuple(found)


def _groups(before: tuple[Dim, ...], after: tuple[Dim, ...]) -> list[tuple[range, range]] | None:
    """The smallest runs of dimensions that one reshape makes of each other, in order."""
    if any(extent == 0 for extent in before):
        return None
    found: list[tuple[range, range]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        ends = [(a, b) for a in range(i, len(before) + 1) for b in range(j, len(after) + 1) if (a, b) != (i, j)]
        ends.sort(key=sum)
        end = next(((a, b) for a, b in ends if product(before[i:a]) == product(after[j:b])), None)
        if end is None:
            return None
        found.append((range(i, end[0]), range(j, end[1])))
        i, j = end
    return found
