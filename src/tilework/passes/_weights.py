"""Products with constant weights: which of their dimensions go with those of the result, and of the other operand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Graph, Node, Value
from tilework.ops._attributes import integer_of, integers_of, padding_of

PRODUCTS = ("convolution", "dot_general")


@dataclass(frozen=True, eq=False)
class Weights:
    """The constant operand of a product, read by nobody else.

    `outward` has the dimension of the weights for a dimension of the result, `inward` for one of the other operand
    (for a convolution in groups, as if its weights had an element for every channel). `pads` says whether the other
    operand is read where it has nothing.
    """

    product: Node
    place: int
    array: Array
    data: Value
    outward: Mapping[int, int]
    inward: Mapping[int, int]
    groups: int = 1
    pads: bool = False

    @staticmethod
    def of(graph: Graph, node: Node) -> Weights | None:
        """The weights of a node; None where it is no product of floating numbers with weights of its own.

        Products of 16 bits are none: their sums are kept in 32, and weights rounded anew would lose more than that.
        """
        if node.operator not in PRODUCTS or node.black_box or node.inputs[0] == node.inputs[1]:
            return None
        dtype = node.output.tensor.dtype
        if not dtype.is_floating or dtype.bits < 32:
            return None
        for place in (1, 0) if node.operator == "dot_general" else (1,):
            name = node.inputs[place]
            array = graph.constant_arrays.get(name)
            alone = len(graph.consumers.get(name, ())) == 1 and name not in graph.outputs
            if array is None or not alone or not array.size:
                continue
            data = graph.values[node.inputs[1 - place]]
            made = _convolution if node.operator == "convolution" else _dot
            return made(node, place, array, data)
        return None

    def for_weights(self, numbers: Array, rank: int, places: Mapping[int, int]) -> Array | None:
        """What broadcasts against a tensor of a rank, as it broadcasts against the weights; None where it differs along
        a dimension that they do not have.
        """
        if numbers.size == 1:
            return numbers.reshape(())
        whole = numbers.reshape((1,) * (rank - numbers.ndim) + numbers.shape)
        if any(extent != 1 and d not in places for d, extent in enumerate(whole.shape)):
            return None
        shape = [1] * self.array.ndim
        for d, along in places.items():
            shape[along] = whole.shape[d]
        first = sorted(places, key=lambda d: places[d])
        turned = whole.transpose(*first, *(d for d in range(rank) if d not in places))
        return turned.reshape(shape)

    def for_data(self, numbers: Array) -> Array | None:
        """What broadcasts against the other operand, as it broadcasts against the weights."""
        found = self.for_weights(numbers, self.data.tensor.rank, self.inward)
        if found is None or found.size == 1 or self.groups == 1:
            return found
        features = next(iter(self.outward.values()))
        channels = next(iter(self.inward.values()))
        if found.shape[channels] == 1:
            return found
        # group g has its own channels: [groups x inside] becomes [features, inside]
        inside = found.reshape(self.groups, -1).repeat(self.array.shape[features] // self.groups, axis=0)
        shape = [1] * found.ndim
        shape[features], shape[channels] = inside.shape
        return (inside if features < channels else inside.T).reshape(shape)

    def for_result(self, numbers: Array) -> Array:
        """Sums over what is contracted (kept as 1), as they broadcast against the result."""
        rank = self.product.output.tensor.rank
        shape = [1] * rank
        for d, along in self.outward.items():
            shape[d] = numbers.shape[along]
        first = [self.outward[d] for d in sorted(self.outward)]
        return numbers.transpose(*first, *(d for d in range(numbers.ndim) if d not in first)).reshape(shape)

    @property
    def contracted(self) -> tuple[int, ...]:
        """The dimensions of the weights that the product sums over."""
        return tuple(d for d in range(self.array.ndim) if d not in self.outward.values())


def _convolution(node: Node, place: int, array: Array, data: Value) -> Weights:
    rank = array.ndim
    inputs, kernels, outputs = (
        integers_of(node.attributes, f"{side}_dimensions", tuple(range(rank))) for side in ("input", "kernel", "output")
    )
    padded = any(low != 0 or high != 0 for low, high in padding_of(node.attributes, "padding", rank - 2))
    spread = any(step != 1 for step in integers_of(node.attributes, "lhs_dilation", (1,) * (rank - 2)))
    groups = integer_of(node.attributes, "feature_group_count", 1)
    return Weights(
        node, place, array, data, {outputs[1]: kernels[0]}, {inputs[1]: kernels[1]}, groups, padded or spread
    )


def _dot(node: Node, place: int, array: Array, data: Value) -> Weights | None:
    sides = ("lhs", "rhs") if place == 0 else ("rhs", "lhs")
    batch, other_batch = (integers_of(node.attributes, f"{side}_batching_dimensions") for side in sides)
    inner, other_inner = (integers_of(node.attributes, f"{side}_contracting_dimensions") for side in sides)
    if not inner:
        return None  # no sum, no +0.0 that it starts from
    free = [d for d in range(array.ndim) if d not in {*batch, *inner}]
    first = len(batch) if place == 0 else node.output.tensor.rank - len(free)
    outward = dict(enumerate(batch)) | {first + n: d for n, d in enumerate(free)}
    inward = dict(zip((*other_batch, *other_inner), (*batch, *inner), strict=True))
    return Weights(node, place, array, data, outward, inward)


def scaled(array: Array, by: Array) -> Array:
    """The weights times numbers of float64, rounded once to the type of the weights."""
    found = np.empty_like(array, order="C")
    np.multiply(array, by, out=found, casting="same_kind")
    return found
