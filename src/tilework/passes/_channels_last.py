"""Values with their channels last beside the graph's own, and operators applied to those instead.

Sums of products of narrow numbers want what they sum next to each other in memory: the channels of an image. So a value
[batch, channels, spatial...] may have a twin [batch, spatial..., channels], and what is computed of it element by
element, or window by window, is computed of the twin. The value itself is the twin transposed, which nobody computes
where nobody reads it.
"""

from __future__ import annotations

from tilework.dims import Dim, dim
from tilework.graph.graph import Array, Attribute, Node, Value
from tilework.ops.registry import operator
from tilework.passes._dequantised import Matcher
from tilework.passes._growing import Growing

_BY_DIMENSION = {
    "reduce_window": ("window_dimensions", "window_strides", "padding", "base_dilations", "window_dilations"),
    "pad": ("edge_padding_low", "edge_padding_high", "interior_padding"),
}
"""Attributes with an entry for each dimension of the first operand."""


def order(rank: int) -> tuple[int, ...]:
    """The permutation that puts dimension 1 last."""
    return (0, *range(2, rank), 1)


def turned(array: Array, rank: int) -> Array:
    """An array that broadcasts against tensors of a rank, as it broadcasts against their twins."""
    if array.size == 1:
        return array.reshape(())
    return array.reshape((1,) * (rank - array.ndim) + array.shape).transpose(order(rank))


class ChannelsLast:
    """The twins of a graph that grows, by the names of the values they belong to."""

    def __init__(self, graph: Growing, match: Matcher) -> None:
        self._graph = graph
        self._match = match
        self._twins: dict[str, Value] = {}

    def has(self, name: str) -> bool:
        """Whether a value has a twin."""
        return name in self._twins

    def of(self, value: Value) -> Value:
        """The twin of a value, made where there is none yet."""
        if value.name not in self._twins:
            permutation = order(value.tensor.rank)
            self._twins[value.name] = self._graph.apply("transpose", value, permutation=permutation)
        return self._twins[value.name]

    def known(self, value: Value, twin: Value) -> None:
        """Say that a value has a twin."""
        self._twins[value.name] = twin

    def put(self, twin: Value, into: Value) -> None:
        """A value of the graph, computed by its twin."""
        self._twins[into.name] = twin
        places = order(twin.tensor.rank)
        back = tuple(places.index(d) for d in range(len(places)))
        self._graph.apply("transpose", twin, permutation=back, as_=into)

    def carried(self, node: Node) -> Value | None:
        """The node's result of its operands' twins; None where it is no such node, or none of them has one."""
        if node.black_box or node.subgraphs or len(node.outputs) != 1:
            return None
        if not any(name in self._twins for name in node.inputs):
            return None
        if operator(node.operator).elementwise:
            return self._elementwise(node)
        rank = node.output.tensor.rank
        value = self._graph.values[node.inputs[0]]
        if node.operator in _BY_DIMENSION and self.has(value.name):
            moved = dict(node.attributes)
            for name in _BY_DIMENSION[node.operator]:
                entries = moved.get(name)
                if isinstance(entries, tuple) and len(entries) == rank:
                    moved[name] = tuple(entries[d] for d in order(rank))
            others = [self._graph.values[name] for name in node.inputs[1:]]
            return self._graph.apply(node.operator, self.of(value), *others, like=moved)
        if node.operator == "concatenate":
            values = [self._graph.values[name] for name in node.inputs]
            place: Attribute = node.attributes["dimension"]
            if all(self.has(one.name) for one in values) and isinstance(place, (int, Dim)):
                along = order(rank).index(int(place))
                return self._graph.apply("concatenate", *(self.of(one) for one in values), dimension=along)
        return None

    def _elementwise(self, node: Node) -> Value | None:
        """Operands that are repeated, or constant, are turned too; any other one must have a twin."""
        whole = node.output.tensor
        found: list[Value] = []
        for name in node.inputs:
            value = self._graph.values[name]
            constant = self._match.constant(name)
            if value.tensor.rank == 0:
                found.append(value)
            elif self.has(name) and value.tensor.rank == whole.rank:
                found.append(self.of(value))
            elif constant is not None:
                found.append(self._graph.constant(turned(constant, whole.rank), f"{name}.turned"))
            elif value.tensor.shape != whole.shape:
                shape = (*[dim(1)] * (whole.rank - value.tensor.rank), *value.tensor.shape)
                wide = value if value.tensor.rank == whole.rank else self._graph.apply("reshape", value, shape=shape)
                found.append(self.of(wide))
            else:
                return None
        return self._graph.apply(node.operator, *found, like=node.attributes)
