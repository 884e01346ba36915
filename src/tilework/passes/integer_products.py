"""Products of dequantised numbers as products of the integers: exact sums of 32 bits, times one factor.

Models are quantised by writing q stands for (q - zero point) * scale around every operator. A matrix product or a
convolution of two such values, with constant scales, is the sum of the integers' products times both scales:

    sum((a - p) * sa * (b - q) * sb) = sa * sb * (sum(a * b) - p * sum(b) - q * sum(a) + p * q * count)

Biases that are integers in units of sa * sb join the sum, and a division by the next scale joins the factor, so that
what is left before the next quantisation is one multiplication. This is the arithmetic of ONNX Runtime's quantised
operators (`QLinearConv`, `QLinearMatMul`, `QGemm`), and more exact than the graph as it is written.

Convolutions are computed with channels last, and so is what follows them element by element or window by window. The
maxima of windows are taken of the integers, and a value that is quantised as it was before is what it was before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from tilework.dims import dim, product
from tilework.dtypes import float32, int32, integer_range
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Array, Attribute, Graph, Node, Value
from tilework.ops._attributes import integers_of, padding_of
from tilework.passes._channels_last import ChannelsLast, order, turned
from tilework.passes._dequantised import Dequantised, Matcher
from tilework.passes._growing import Growing
from tilework.passes._product_sides import Side, along, fits, placed

_PRODUCTS = ("convolution", "dot_general")
_ROUNDING = 2.5e-7
"""How far a bias's scale may be from the product of the scales, as a share: two roundings of float32."""


@dataclass(frozen=True)
class _Sum:
    """(total + offset) * factor, then at least 0 if `floor`. `offset` (int32) and `factor` broadcast against the value
    that this is; `total` is its twin with channels last if `last`.
    """

    total: Value
    offset: Array
    factor: Array
    floor: bool = False
    last: bool = False


@dataclass(frozen=True)
class IntegerProducts:
    """Rewrites products of dequantised 8-bit integers in the outermost graph.

    Not value-exact: what was rounded with every product is rounded once. Hence no part of the default pipeline, and
    left out where numerics do not let sums be regrouped.
    """

    name: ClassVar[str] = "integer_products"

    def run(self, graph: Graph) -> Graph:
        """The graph with such products summed as integers; itself where there are none."""
        if not any(node.operator in _PRODUCTS for node in graph.nodes):
            return graph
        found = _Rewriter(graph)
        for node in graph.nodes:
            found.visit(node)
        return found.growing.built() if found.changed else graph


class _Rewriter:
    def __init__(self, graph: Graph) -> None:
        self.growing = Growing(graph)
        self.changed = False
        self.sums: dict[str, _Sum] = {}
        self._selected: dict[str, Dequantised] = {}
        """Maxima of dequantised values, as the maxima of the integers."""
        self._match = Matcher(graph)
        self._twins = ChannelsLast(self.growing, self._match)

    def visit(self, node: Node) -> None:
        """Add a node, or what takes its place."""
        self.growing.location = node.location
        plain = not node.black_box and not node.subgraphs
        found = self._sum(node) if plain else None
        self.changed = self.changed or found is not None
        if found is not None:
            self.sums[node.output.name] = found
            if node.operator != "maximum":
                self._emit(found, node.output)
                return
        integers = self._integers(node) if plain and node.operator == "convolution" else None
        if integers is not None:
            self.changed = True
            self._twins.put(integers, node.output)
            return
        same = self._unchanged(node) if plain else None
        if same is not None:
            if self._twins.has(same.name):
                self._twins.put(self._twins.of(same), node.output)
            else:
                self.growing.apply("reshape", same, shape=node.output.tensor.shape, as_=node.output)
            return
        if plain and node.operator == "reduce_window":
            self._select(node)
        twin = self._twins.carried(node)
        if twin is None:
            self.growing.keep(node)
        else:
            self._twins.put(twin, node.output)

    def _sum(self, node: Node) -> _Sum | None:
        if node.operator == "convolution":
            return self._convolution(node)
        if node.operator == "dot_general":
            return self._dot(node)
        if node.operator == "reduce":
            return self._reduced(node)
        if node.operator == "add":
            return self._with_bias(node)
        if node.operator == "divide":
            return self._divided(node)
        if node.operator == "maximum":
            return self._at_least_zero(node)
        return None

    def _emit(self, found: _Sum, into: Value) -> None:
        grow, total, rank = self.growing, found.total, into.tensor.rank
        offset, factor = (turned(a, rank) if found.last else a for a in (found.offset, found.factor))
        if np.any(offset):
            total = grow.apply("add", total, grow.constant(offset, f"{into.name}.offset"))
        wide = grow.apply("convert", total, dtype=float32)
        by = grow.constant(factor, f"{into.name}.factor")
        if not found.floor and not found.last:
            grow.apply("multiply", wide, by, as_=into)
            return
        scaled = grow.apply("multiply", wide, by)
        if found.floor:
            low = grow.constant(np.zeros((), np.float32), f"{into.name}.floor")
            scaled = grow.apply("maximum", scaled, low, as_=None if found.last else into)
        if found.last:
            self._twins.put(scaled, into)

    # -- what stays in integers ----------------------------------------------------------------------------------------
    def _dequantised(self, name: str) -> Dequantised | None:
        return self._selected.get(name) or self._match.dequantised(name)

    def _select(self, node: Node) -> None:
        """Remember the maxima of windows as those of the integers, where no window lies in the padding."""
        side = self._dequantised(node.inputs[0])
        if side is None or node.attributes.get("reducer") != "maximum":
            return
        if side.scale.size != 1 or side.zero.size != 1 or side.value.tensor.dtype.bits != 8:
            return
        rank = node.output.tensor.rank
        ones = (1,) * rank
        size = integers_of(node.attributes, "window_dimensions")
        holes = integers_of(node.attributes, "window_dilations", ones)
        spread = integers_of(node.attributes, "base_dilations", ones)
        pads = padding_of(node.attributes, "padding", rank)
        for n, (low, high) in enumerate(pads):
            reach = (size[n] - 1) * holes[n]
            alone = holes[n] == 1 and all(end.is_constant and int(end) <= reach for end in (low, high))
            if spread[n] != 1 or not (alone or (low == 0 and high == 0)):
                return
        value = side.value
        made = None
        if self._twins.has(value.name):
            stand_in = Node(node.name, node.operator, (value.name,), node.outputs, node.attributes)
            made = self._twins.carried(stand_in)
        narrow = self.growing.apply("reduce_window", value, like=node.attributes)
        if made is not None:
            self._twins.known(narrow, made)
        self._selected[node.output.name] = replace(side, value=narrow)

    def _unchanged(self, node: Node) -> Value | None:
        """The integers that a quantisation gives back: those that were dequantised with the same parameters."""
        found = self._match.requantised(node)
        side = None if found is None else self._dequantised(found[0])
        if found is None or side is None or side.scale.size != 1 or side.zero.size != 1 or found[1].size != 1:
            return None
        same = side.value.type == node.output.type and float(side.zero.reshape(())) == found[2]
        # (i * s) / s rounds to i: two roundings move it by less than 1/2, unless i * s is no normal number
        scale = float(found[1].reshape(()))
        usable = side.scale.reshape(()) == found[1].reshape(()) and 1e-30 < scale < 1e30
        return side.value if same and usable else None

    # -- what joins a sum ----------------------------------------------------------------------------------------------
    def _with_bias(self, node: Node) -> _Sum | None:
        """A bias in units of the factor."""
        for name, other in (node.inputs, node.inputs[::-1]):
            found = self.sums.get(name)
            if found is None or found.floor or node.output.type != self.growing.values[name].type:
                continue
            bias = self._bias(other)
            if bias is None or bias[0].ndim > node.output.tensor.rank:
                continue
            numbers, scale = bias
            if bool(np.all(np.abs(scale - found.factor) <= _ROUNDING * found.factor)):
                return replace(found, offset=found.offset + numbers)
        return None

    def _bias(self, name: str) -> tuple[Array, Array] | None:
        """Integers and their scale, both constant, perhaps reshaped."""
        node = self.growing.graph.producers.get(name)
        if node is not None and node.operator == "reshape":
            inner = self._bias(node.inputs[0])
            shape = node.output.tensor.shape
            if inner is None or not all(extent.is_constant for extent in shape):
                return None
            numbers, scale = np.broadcast_arrays(*inner)
            return numbers.reshape([int(e) for e in shape]), scale.reshape([int(e) for e in shape])
        found = self._dequantised(name)
        array = None if found is None else self._match.constant(found.value.name)
        if found is None or array is None:
            return None
        wide = array.astype(np.int64) - found.zero
        if wide.size == 0 or np.abs(wide).max() >= 2**31:
            return None
        return wide.astype(np.int32), found.scale

    def _divided(self, node: Node) -> _Sum | None:
        found, by = self.sums.get(node.inputs[0]), self._match.positive(node.inputs[1])
        if found is None or by is None or by.ndim > node.output.tensor.rank:
            return None
        if node.output.type != self.growing.values[node.inputs[0]].type:
            return None
        with np.errstate(all="ignore"):
            factor = found.factor / by
        usable = bool(np.all(np.isfinite(factor) & (factor >= np.finfo(np.float32).tiny)))
        return replace(found, factor=factor) if usable else None

    def _at_least_zero(self, node: Node) -> _Sum | None:
        for name, other in (node.inputs, node.inputs[::-1]):
            found, low = self.sums.get(name), self._match.constant(other)
            if found is not None and low is not None and node.output.type == self.growing.values[name].type:
                return replace(found, floor=True) if low.size and not np.any(low) else None
        return None

    def _reduced(self, node: Node) -> _Sum | None:
        """A sum of dequantised numbers: the sum of the integers, less the zero point for each of them."""
        side = self._dequantised(node.inputs[0])
        if side is None or node.attributes["reducer"] != "sum" or side.value.tensor.dtype.bits > 16:
            return None
        count = product(side.value.tensor.shape[d] for d in integers_of(node.attributes, "dimensions"))
        if side.scale.size != 1 or side.zero.size != 1 or not count.is_constant or int(count) * 2**17 >= 2**31:
            return None
        value, last, attributes = side.value, False, dict(node.attributes)
        rank = value.tensor.rank
        if self._twins.has(value.name) and node.output.tensor.rank == rank:
            places = integers_of(node.attributes, "dimensions")
            value, last = self._twins.of(value), True
            attributes["dimensions"] = tuple(sorted(order(rank).index(d) for d in places))
        wide = self.growing.apply("convert", value, dtype=int32)
        total = self.growing.apply("reduce", wide, like=attributes)
        offset = side.zero.reshape(()).astype(np.int32) * np.int32(-int(count))
        return _Sum(total, offset, side.scale.reshape(()), last=last)

    # -- products ------------------------------------------------------------------------------------------------------
    def _sides(self, node: Node) -> tuple[Dequantised, Dequantised] | None:
        """Both operands of a product, each of 8-bit integers; constants without their zero point where that fits."""
        found: list[Dequantised] = []
        for name in node.inputs:
            one = self._dequantised(name)
            if one is None or one.value.tensor.dtype.bits != 8:
                return None
            found.append(self._centred(one))
        return found[0], found[1]

    def _centred(self, side: Dequantised) -> Dequantised:
        array = self._match.constant(side.value.name)
        if array is None or not np.any(side.zero):
            return side
        low, high = integer_range(self.growing.values[side.value.name].tensor.dtype)
        if side.zero.min() < low or side.zero.max() > high:
            return side
        moved = array.astype(np.int16) - side.zero.astype(np.int16)
        if moved.shape != array.shape or moved.size == 0 or moved.min() < -128 or moved.max() > 127:
            return side
        held = self.growing.constant(moved.astype(np.int8), f"{side.value.name}.centred")
        return Dequantised(held, np.zeros((), np.int32), side.scale)

    def _convolution(self, node: Node) -> _Sum | None:
        sides = self._sides(node)
        if sides is None:
            return None
        image, kernel = sides
        weights = self._array(kernel.value)
        rank = kernel.value.tensor.rank
        places = tuple(range(rank))
        inputs, kernels, outputs = (
            integers_of(node.attributes, f"{side}_dimensions", places) for side in ("input", "kernel", "output")
        )
        if weights is None or np.any(kernel.zero) or image.scale.size != 1 or image.zero.size != 1:
            return None
        taps = tuple(kernels[1:])
        scale = along(kernel.scale, rank, kernels[0])
        if scale is None or not fits(product(kernel.value.tensor.shape[d] for d in taps)):
            return None
        offset, zero, last = np.zeros((), np.int32), image.zero.reshape(()), inputs == kernels == outputs == places
        if zero != 0:
            low, high = integer_range(image.value.tensor.dtype)
            if not low <= zero <= high:
                return None
            total = weights.astype(np.int64).sum(taps) * -int(zero)
            offset = placed(total.astype(np.int32), rank, outputs[1])
        if last:
            found = self._with_channels_last(node, image.value, weights, zero)
        else:
            value, attributes = image.value, dict(node.attributes)
            if zero != 0:
                value = self._padded(value, zero, inputs, attributes)
            found = self.growing.apply("convolution", value, kernel.value, like=attributes)
        factor = image.scale.reshape(()) * scale
        return _Sum(found, offset, placed(factor, rank, outputs[1]) if factor.ndim else factor, last=last)

    def _integers(self, node: Node) -> Value | None:
        """A convolution of 8-bit integers with weights that are known, with channels last."""
        image, kernel = (self.growing.values[name] for name in node.inputs)
        weights, places = self._match.constant(kernel.name), tuple(range(image.tensor.rank))
        named = [integers_of(node.attributes, f"{side}_dimensions", places) for side in ("input", "kernel", "output")]
        if weights is None or any(dimensions != places for dimensions in named):
            return None
        if not all(value.tensor.dtype.is_integer and value.tensor.dtype.bits == 8 for value in (image, kernel)):
            return None
        return self._with_channels_last(node, image, weights, np.zeros((), np.int32))

    def _with_channels_last(self, node: Node, image: Value, weights: Array, zero: Array) -> Value:
        rank, attributes = image.tensor.rank, dict(node.attributes)
        inputs = tuple(order(rank).index(d) for d in range(rank))
        attributes.update((f"{side}_dimensions", inputs) for side in ("input", "kernel", "output"))
        kernel = self.growing.constant(weights.transpose(order(rank)), f"{node.output.name}.weights")
        value = self._padded(self._twins.of(image), zero, inputs, attributes)
        return self.growing.apply("convolution", value, kernel, like=attributes)

    def _padded(self, value: Value, zero: Array, inputs: tuple[int, ...], attributes: dict[str, Attribute]) -> Value:
        """The image with its zero point where a convolution has nothing; the attributes lose what is done by that."""
        rank = value.tensor.rank
        low, high, inside = [dim(0)] * rank, [dim(0)] * rank, [0] * rank
        spread = integers_of(attributes, "lhs_dilation", (1,) * (rank - 2))
        for n, (before, after) in enumerate(padding_of(attributes, "padding", rank - 2)):
            low[inputs[n + 2]], high[inputs[n + 2]], inside[inputs[n + 2]] = before, after, spread[n] - 1
        attributes["padding"] = ((dim(0), dim(0)),) * (rank - 2)
        attributes.pop("lhs_dilation", None)
        if all(entry == 0 for entry in (*low, *high, *inside)):
            return value
        fill = self.growing.constant(zero.astype(value.tensor.dtype.numpy), f"{value.name}.fill")
        return self.growing.apply(
            "pad", value, fill, edge_padding_low=tuple(low), edge_padding_high=tuple(high),
            interior_padding=tuple(inside),
        )  # fmt: skip

    def _dot(self, node: Node) -> _Sum | None:
        sides = self._sides(node)
        if sides is None:
            return None
        roles = [Side.of(node, name, side) for name, side in zip(("lhs", "rhs"), sides, strict=True)]
        contracted = [side.value.tensor.shape[d] for d in roles[0].contracting for side in sides[:1]]
        depth = product(contracted)
        if not contracted or not fits(depth) or any(np.size(side.zero) != 1 for side in sides):
            return None
        scales = [role.moved(role.side.scale, roles) for role in roles]
        if scales[0] is None or scales[1] is None:
            return None
        total = self.growing.apply("dot_general", sides[0].value, sides[1].value, like=node.attributes)
        offset: Array = np.zeros((), np.int64)
        zeros = [int(side.zero.reshape(())) for side in sides]
        for zero, other in zip(zeros, roles[::-1], strict=True):
            if not zero:
                continue
            held = self._array(other.side.value)
            if held is not None:
                sums = held.astype(np.int64).sum(other.contracting, keepdims=True)
                moved = other.moved(sums, roles)
                assert moved is not None
                offset = offset - zero * moved
            else:
                total = self._less(total, zero, other, roles)
        offset = offset + zeros[0] * zeros[1] * int(depth)
        return _Sum(total, offset.astype(np.int32), scales[0] * scales[1])

    def _less(self, total: Value, zero: int, other: Side, roles: list[Side]) -> Value:
        """The total less a zero point times the sums of the other operand."""
        grow = self.growing
        wide = grow.apply("convert", other.side.value, dtype=int32)
        sums = grow.apply("reduce", wide, dimensions=other.contracting, reducer="sum", keep_dimensions=False)
        kept = [d for d in range(wide.tensor.rank) if d not in other.contracting]
        order = tuple(kept.index(d) for d in (*other.batch, *other.free))
        if order != tuple(range(len(order))):
            sums = grow.apply("transpose", sums, permutation=order)
        sums = grow.apply("reshape", sums, shape=other.spread(list(sums.tensor.shape), dim(1), roles))
        times = grow.apply("multiply", sums, grow.constant(np.array(zero, np.int32), "zero_point"))
        return grow.apply("subtract", total, times)

    def _array(self, value: Value) -> Array | None:
        found = self._match.constant(value.name)
        if found is None:
            found = next((c.array for c in self.growing.constants if c.name == value.name), None)
        return found
