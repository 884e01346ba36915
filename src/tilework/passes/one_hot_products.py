"""Products of one-hot rows and a table are lookups in the table.

    dot(convert(positions == 0 .. K-1), table)   =  take(table and a row of zeros, positions, or K outside 0 .. K-1)

Embeddings are written so where a framework has no lookup that it can differentiate. Of a sum of K products one is a
number of the table times 1 and the others are 0, so the lookup is exact: every number of the table has to be finite,
and a -0.0 of it becomes the 0.0 that the sum gives.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilework.dtypes import DType, int64
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Graph, Node, Value
from tilework.ops._attributes import integers_of
from tilework.passes._growing import Growing

_SIDES = ("lhs", "rhs")


@dataclass(frozen=True)
class OneHotProducts:
    """Rewrites such products in the outermost graph, where the table is a constant."""

    name: ClassVar[str] = "one_hot_products"

    def run(self, graph: Graph) -> Graph:
        """The graph with lookups for them; itself where there are none."""
        found = {node.name: lookup for node in graph.nodes if (lookup := _lookup(graph, node)) is not None}
        if not found:
            return graph
        grow = Growing(graph)
        for node in graph.nodes:
            grow.location = node.location
            if node.name in found:
                found[node.name].emit(grow, node)
            else:
                grow.keep(node)
        return grow.built()


@dataclass(frozen=True)
class _Lookup:
    """A table whose dimension `along` is looked up, and `positions`, of extent 1 in the dimension `hot`."""

    positions: Value
    hot: int
    table: Array
    along: int
    first: bool
    """Whether the positions' dimensions come before the table's in the result."""

    def emit(self, grow: Growing, node: Node) -> None:
        """Add the nodes that take the product's place."""
        count = self.table.shape[self.along]
        positions = self.positions
        shape = positions.tensor.shape
        if count > np.iinfo(str(positions.tensor.dtype)).max:
            positions = grow.apply("convert", positions, dtype=int64)
        kind = positions.tensor.dtype.numpy
        first, end = (grow.constant(np.array(number, kind), f"{node.name}.bound") for number in (0, count))
        above = grow.apply("compare", positions, first, direction="GE")
        below = grow.apply("compare", positions, end, direction="LT")
        places = grow.apply("select", grow.apply("and", above, below), positions, end)
        flat = grow.apply("reshape", places, shape=(*shape[: self.hot], *shape[self.hot + 1 :]))
        rows = np.moveaxis(self.table, self.along, 0 if self.first else -1)
        zeros: Array = np.zeros_like(rows[:1] if self.first else rows[..., :1])
        padded = np.concatenate([rows + zeros.dtype.type(0), zeros], 0 if self.first else -1)
        table = grow.constant(padded, f"{node.name}.table")
        grow.apply("take", table, flat, as_=node.output, dimension=0 if self.first else padded.ndim - 1)


def _lookup(graph: Graph, node: Node) -> _Lookup | None:
    if node.operator != "dot_general" or node.black_box:
        return None
    contracted = [integers_of(node.attributes, f"{side}_contracting_dimensions") for side in _SIDES]
    batched = [integers_of(node.attributes, f"{side}_batching_dimensions") for side in _SIDES]
    if any(len(axes) != 1 for axes in contracted) or any(batched):
        return None
    for place in (0, 1):
        table = graph.constant_arrays.get(node.inputs[1 - place])
        if table is None or not table.size or table.dtype != node.output.tensor.dtype.numpy:
            continue
        if not bool(np.all(np.isfinite(table))):
            continue
        (hot,), (along,) = contracted[place], contracted[1 - place]
        positions = _positions(graph, node.inputs[place], hot)
        if positions is not None:
            return _Lookup(positions, hot, table, along, place == 0)
    return None


def _positions(graph: Graph, name: str, hot: int) -> Value | None:
    """Which element of a value is 1 along a dimension, the others being 0; None where it is no such value."""
    compared = _condition(graph, graph.producers.get(name))
    if compared is None or compared.operator != "compare" or compared.attributes.get("direction") != "EQ":
        return None
    wanted = compared.output.tensor.shape
    for one, other in (compared.inputs, compared.inputs[::-1]):
        numbers, value = graph.constant_arrays.get(other), graph.values[one]
        if numbers is None or not _counts(value.tensor.dtype):
            continue
        line = tuple(numbers.shape[d] if d == hot else 1 for d in range(numbers.ndim))
        if numbers.shape != line or numbers.ndim != len(wanted) or wanted[hot] != numbers.size:
            continue
        if not np.array_equal(numbers.ravel(), np.arange(numbers.size)):
            continue
        if value.tensor.shape == tuple(1 if d == hot else extent for d, extent in enumerate(wanted)):
            return value
    return None


def _condition(graph: Graph, node: Node | None) -> Node | None:
    """What makes the condition that a node gives as 1 and 0, in the same shape."""
    if node is None or node.black_box:
        return None
    if node.operator == "select":
        on, off = (graph.constant_arrays.get(name) for name in node.inputs[1:])
        if on is None or off is None or not (bool(np.all(on == 1)) and bool(np.all(off == 0))):
            return None
    elif node.operator != "convert":
        return None
    found = graph.producers.get(node.inputs[0])
    same = found is not None and len(found.outputs) == 1 and found.output.tensor.shape == node.output.tensor.shape
    return found if same else None


def _counts(dtype: DType) -> bool:
    """Whether int64 holds every number of a type."""
    return dtype.is_integer and (dtype.kind == "signed" or dtype.bits < int64.bits)
