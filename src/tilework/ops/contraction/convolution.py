"""`convolution`: a kernel slid over a tensor, with padding, strides, dilations and groups, in any layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Computation, Stage
from tilework.dims import Dim, Symbol, dim, product
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.program import Buffer
from tilework.loops.reducers import reducer
from tilework.ops._attributes import integers_of, padding, padding_of, permutation, positive, same_dim
from tilework.ops._stages import accumulate_for, always_started, axes, load
from tilework.ops._window import WindowDimension, at_tap, spread
from tilework.ops.contraction._products import check_types, numpy_sum_type, product_type, rounded
from tilework.ops.definitions import computation
from tilework.ops.operator import Array, Counts, Operator, PrecisionFacts
from tilework.ops.rules import Rule


@dataclass(frozen=True)
class Geometry:
    """What the attributes say: where the dimensions of each tensor stand, the window of each spatial one, the groups.

    `input` and `output` list the positions of batch, features and the spatial dimensions; `kernel` of output features,
    input features (of one group) and the spatial dimensions.
    """

    input: tuple[int, ...]
    kernel: tuple[int, ...]
    output: tuple[int, ...]
    windows: tuple[WindowDimension, ...]
    groups: int


class Convolution(Operator):
    """`convolution(lhs, rhs; window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count,
    input_dimensions, kernel_dimensions, output_dimensions)`.

    Left out, strides and dilations are 1, padding 0, one group, and layouts (batch, features, *spatial) and
    (output features, input features / groups, *spatial). Padding may be negative. The kernel is not flipped.
    16-bit floating operands are summed in float32; 8-bit integers (of either sign each) give int32.
    """

    name = "convolution"
    precision = PrecisionFacts(safe_low=True)

    def infer(self, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]) -> tuple[ValueType, ...]:
        rule = Rule(self.name, operands, attributes)
        lhs, rhs, dtype = check_types(rule)
        if lhs.rank != rhs.rank or lhs.rank < 2:
            rule.stop(1223, f"lhs {lhs} and rhs {rhs} must have one rank of at least 2 (batch, features, spatial...)")
        spatial = lhs.rank - 2
        strides = positive(rule, "window_strides", spatial)
        pads = padding(rule, attributes, "padding", spatial)
        base = positive(rule, "lhs_dilation", spatial)
        hole = positive(rule, "rhs_dilation", spatial)
        groups = rule.integer("feature_group_count", 1)
        places = [permutation(rule, f"{side}_dimensions", lhs.rank) for side in ("input", "kernel", "output")]
        placed_input, placed_kernel, placed_output = places
        if groups < 1:
            rule.fault(1225, f"attribute 'feature_group_count' is {groups}, it must be at least 1")
            groups = 1
        features, inner, outer = lhs.shape[placed_input[1]], rhs.shape[placed_kernel[1]], rhs.shape[placed_kernel[0]]
        same_dim(rule, features, inner * groups, f"the features of lhs, and of rhs times {groups} groups,")
        if groups > 1 and (not outer.is_constant or outer.constant % groups):
            rule.fault(1223, f"rhs has {outer} output features, which must be a constant multiple of {groups} groups")
        shape = [Dim()] * lhs.rank
        shape[placed_output[0]], shape[placed_output[1]] = lhs.shape[placed_input[0]], outer
        for n in range(spatial):
            window = WindowDimension(
                lhs.shape[placed_input[n + 2]], rhs.shape[placed_kernel[n + 2]], strides[n], *pads[n], base[n], hole[n]
            )
            shape[placed_output[n + 2]] = window.output
        rule.finish()
        return (TensorType(tuple(shape), dtype),)

    def define(
        self, operands: Sequence[Buffer], results: Sequence[Buffer], attributes: Mapping[str, Attribute],
        symbols: Sequence[Symbol] = (),
    ) -> Computation:  # fmt: skip
        (lhs, rhs), (result,) = operands, results
        geometry = _geometry(lhs.shape, rhs.shape, attributes)
        points = axes(result.name, result.shape)
        inner = axes(result.name, [rhs.shape[d] for d in geometry.kernel[1:]], "k", "reduction")
        batch, feature, *places = (dim(points[d].name) for d in geometry.output)
        channel, *offsets = (dim(axis.name) for axis in inner)
        if geometry.groups > 1:
            per_group = result.shape[geometry.output[1]].constant // geometry.groups
            channel = feature // per_group * rhs.shape[geometry.kernel[1]] + channel
        input_index = {geometry.input[0]: batch, geometry.input[1]: channel}
        kernel_index = {geometry.kernel[0]: feature, geometry.kernel[1]: dim(inner[0].name)}
        guards: list[Dim] = []
        for n, (window, place, offset) in enumerate(zip(geometry.windows, places, offsets, strict=True)):
            input_index[geometry.input[n + 2]], needed = window.point(place, offset)
            kernel_index[geometry.kernel[n + 2]] = offset
            guards.extend(needed)
        wide = product_type(result.dtype)
        rank = len(lhs.shape)
        element = load(lhs, [input_index[d] for d in range(rank)], wide)
        weight = load(rhs, [kernel_index[d] for d in range(rank)], wide)
        total = reducer("sum", wide)
        stage = Stage(
            f"{result.name}.{self.name}", (result,), (*points, *inner), (element * weight,), reducer=total,
            init=total.identity, guards=tuple(guards), accumulate=accumulate_for(result.dtype),
        )  # fmt: skip
        return computation(self.name, operands, results, always_started(stage), symbols)

    def reference(
        self, operands: Sequence[Array], attributes: Mapping[str, Any], results: Sequence[TensorType]
    ) -> tuple[Array, ...]:
        lhs, rhs = operands
        (result,) = results
        geometry = _geometry(tuple(map(dim, lhs.shape)), tuple(map(dim, rhs.shape)), attributes)
        wide = numpy_sum_type(result.dtype)
        images = lhs.transpose(geometry.input).astype(wide)
        kernels = rhs.transpose(geometry.kernel).astype(wide)
        groups, (outer, inner) = geometry.groups, kernels.shape[:2]
        places = tuple(int(window.output) for window in geometry.windows)
        batch, pixels = images.shape[0], int(np.prod(places, dtype=np.int64))
        # An element that meets padding is not multiplied at all: infinity in the kernel times padding is no NaN.
        inside = spread(np.ones(images.shape[2:], np.bool_), geometry.windows, fill=False)
        images = spread(images, geometry.windows, fill=0)
        total: Array = np.zeros((batch, groups, outer // groups, pixels), wide)
        for tap in np.ndindex(*kernels.shape[2:]):
            weights = kernels[(..., *tap)].reshape(groups, outer // groups, inner)
            seen = at_tap(images, geometry.windows, tap).reshape(batch, groups, inner, pixels)
            met = at_tap(inside, geometry.windows, tap).reshape(pixels)
            with np.errstate(all="ignore"):
                total = np.where(met, total + np.matmul(weights, seen), total)
        laid_out = np.moveaxis(total.reshape(batch, outer, *places), range(lhs.ndim), geometry.output)
        return (rounded(laid_out, result.dtype),)

    def counts(
        self, operands: Sequence[ValueType], results: Sequence[ValueType], attributes: Mapping[str, Attribute]
    ) -> Counts:
        traffic = super().counts(operands, results, attributes).bytes
        rhs, result = operands[1], results[0]
        assert isinstance(rhs, TensorType)
        assert isinstance(result, TensorType)
        kernel = integers_of(attributes, "kernel_dimensions", tuple(range(rhs.rank)))
        return Counts(result.size * product(rhs.shape[d] for d in kernel[1:]) * 2, traffic)


def _geometry(lhs: tuple[Dim, ...], rhs: tuple[Dim, ...], attributes: Mapping[str, Any]) -> Geometry:
    in_order = tuple(range(len(lhs)))
    spatial = len(lhs) - 2
    ones = (1,) * spatial
    placed_input, placed_kernel, placed_output = (
        integers_of(attributes, f"{side}_dimensions", in_order) for side in ("input", "kernel", "output")
    )
    strides, base, hole = (
        integers_of(attributes, name, ones) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    pads = padding_of(attributes, "padding", spatial)
    found = tuple(
        WindowDimension(lhs[placed_input[n + 2]], rhs[placed_kernel[n + 2]], strides[n], *pads[n], base[n], hole[n])
        for n in range(spatial)
    )
    groups = int(attributes.get("feature_group_count", 1))
    return Geometry(placed_input, placed_kernel, placed_output, found, groups)


OPERATOR = Convolution()
