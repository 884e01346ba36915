"""Convolutions and their transposes, one to three spatial dimensions (and more)."""

from __future__ import annotations

from tilework.dims import Dim, dim, minimum
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, fixed_extent
from tilework.frontends.onnx.operators.normalizations import per_channel
from tilework.frontends.onnx.unify import equal
from tilework.frontends.onnx.windows import Pads, fitting, read_window, spatial_pads
from tilework.graph.graph import Value


def _kernel(node: OnnxNode, value: Value, weight: Value) -> tuple[int, ...]:
    """The window of the weights, checked against the input and the attribute `kernel_shape`."""
    rank = value.tensor.rank
    if rank < 3 or weight.tensor.rank != rank:
        raise NodeFault(1119, f"input {value.type} and weights {weight.type} must have one rank, 3 or more")
    size = tuple(fixed_extent(extent, "an extent of the weights") for extent in weight.tensor.shape[2:])
    given = node.integers("kernel_shape", size)
    if given != size:
        raise NodeFault(1108, f"attribute 'kernel_shape' is {list(given)}, the weights have {list(size)}")
    if 0 in size:
        raise NodeFault(1119, f"the weights {weight.type} have no elements")
    return size


def _matched(node: OnnxNode, value: Value, weight: Value, axis: int, groups: int) -> tuple[Value, Value]:
    """Input and weights that agree about the channels, of which `axis` of the weights has one group's.

    What either knows is taken to be the other's, and checked.
    """
    own, told = list(value.tensor.shape), list(weight.tensor.shape)
    channels, what = told[axis] * groups, "channels of input and weights"
    equal(node.symbols, own[1], channels, what)
    if own[1].is_constant and not channels.is_constant and own[1] % groups == 0:
        told[axis] = own[1] // groups
        return value, node.emit.assumed(weight, told)
    own[1] = channels
    return node.emit.assumed(value, own), weight


def _groups(node: OnnxNode, channels: Dim, weight: Value) -> int:
    groups = node.integer("group", 1)
    if groups < 1 or channels % groups != 0 or weight.tensor.shape[0] % groups != 0:
        raise NodeFault(1108, f"attribute 'group' is {groups}; {channels} channels and {weight.type} do not divide")
    return groups


def _convolve(
    node: OnnxNode,
    value: Value,
    weight: Value,
    strides: tuple[int, ...],
    padding: Pads,
    groups: int,
    dilations: tuple[int, ...],
    spread: tuple[int, ...],
) -> Value:
    places = tuple(range(value.tensor.rank))
    return node.emit.apply(
        "convolution", value, weight, window_strides=strides, padding=padding, lhs_dilation=spread,
        rhs_dilation=dilations, feature_group_count=groups, input_dimensions=places, kernel_dimensions=places,
        output_dimensions=places,
    )  # fmt: skip


def _add_bias(node: OnnxNode, found: Value, position: int) -> Value:
    if not node.has(position):
        return found
    return node.emit.apply("add", found, per_channel(node.emit, node.value(position), found))


def convolved(node: OnnxNode, value: Value, weight: Value, fill: Value | None = None) -> Value:
    """The convolution that the node's attributes describe, of these operands; `fill`: what padding holds, if not 0."""
    size = _kernel(node, value, weight)
    value, weight = _matched(node, value, weight, 1, max(node.integer("group", 1), 1))
    groups = _groups(node, value.tensor.shape[1], weight)
    window = read_window(node, value.tensor.shape[2:], size)
    value, padding = fitting(node, value, window), window.padding
    if fill is not None and window.is_padded:
        low, high = ([dim(0), dim(0), *(pair[side] for pair in padding)] for side in (0, 1))
        value = node.emit.pad(value, fill, low, high)
        padding = ((dim(0), dim(0)),) * len(size)
    return _convolve(node, value, weight, window.strides, padding, groups, window.dilations, (1,) * len(size))


def _convolution(node: OnnxNode) -> Value:
    return _add_bias(node, convolved(node, node.value(0), node.value(1)), 2)


def _transposed(node: OnnxNode) -> Value:
    """A convolution over the input spread by the strides, with the weights turned round."""
    value, weight, emit = node.value(0), node.value(1), node.emit
    size = _kernel(node, value, weight)
    rank = len(size)
    value, weight = _matched(node, value, weight, 0, 1)
    groups = _transposed_groups(node, weight)
    strides, dilations = node.positives("strides", rank), node.positives("dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    spatial = value.tensor.shape[2:]
    padding = tuple(
        (dim(span - 1) - low, dim(span - 1) - high - _beyond_empty(node, extent, stride))
        for extent, stride, span, (low, high) in zip(
            spatial, strides, reach, _cut(node, spatial, strides, reach), strict=True
        )
    )
    inputs, outputs = (fixed_extent(extent, "a channel count") for extent in weight.tensor.shape[:2])
    split = emit.reshape(weight, (groups, inputs // groups, outputs, *size))
    turned = emit.transpose(split, (0, 2, 1, *range(3, 3 + rank)))
    kernel = emit.reshape(turned, (groups * outputs, inputs // groups, *size))
    kernel = emit.reverse(kernel, tuple(axis + 2 for axis, extent in enumerate(size) if extent > 1))
    found = _convolve(node, value, kernel, (1,) * rank, padding, groups, dilations, strides)
    return _add_bias(node, found, 2)


def _beyond_empty(node: OnnxNode, extent: Dim, stride: int) -> Dim:
    """How much larger an input of no elements is when spread (0) than ONNX's formula has it: 1 - stride."""
    if stride == 1 or (not any(map(node.symbols.is_measured, extent.names())) and extent != 0):
        if stride > 1:
            node.symbols.require_at_least(extent, 1)
        return dim(0)
    return node.symbols.simplify((stride - 1) * (1 - minimum(extent, 1)))


def _transposed_groups(node: OnnxNode, weight: Value) -> int:
    groups = node.integer("group", 1)
    channels = weight.tensor.shape[0]
    if groups < 1 or channels % groups != 0:
        raise NodeFault(1108, f"attribute 'group' is {groups}, it must divide the {channels} channels")
    return groups


def _cut(node: OnnxNode, spatial: tuple[Dim, ...], strides: tuple[int, ...], reach: list[int]) -> list[tuple[Dim, Dim]]:
    """What is cut from each side of the full result; less than nothing where output padding adds to it."""
    rank = len(reach)
    extra = node.integers("output_padding", (0,) * rank)
    if len(extra) != rank or any(not 0 <= e < 2**31 for e in extra):
        raise NodeFault(1108, f"attribute 'output_padding' is {list(extra)}; {rank} entries of 0 or more are needed")
    automatic = node.choice("auto_pad", "NOTSET", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    wanted: tuple[Dim, ...] | None = None
    if node.given("output_shape"):
        given = node.integers("output_shape")
        # exporters of old give the whole shape
        if len(given) not in (rank, rank + 2) or any(not 0 < e < 2**31 for e in given):
            listed = f"{list(given[:8])}{'...' * (len(given) > 8)}"
            raise NodeFault(1108, f"attribute 'output_shape' is {listed}; {rank} positive entries are needed")
        wanted = tuple(map(dim, given[-rank:]))
    elif automatic in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(extent * stride for extent, stride in zip(spatial, strides, strict=True))
    if wanted is None:
        pads = spatial_pads(node, rank) if automatic == "NOTSET" else [(0, 0)] * rank
        return [(dim(low), dim(high - more)) for (low, high), more in zip(pads, extra, strict=True)]
    found: list[tuple[Dim, Dim]] = []
    for axis, extent in enumerate(spatial):
        total = strides[axis] * (extent - 1) + extra[axis] + reach[axis] - wanted[axis]
        half = node.symbols.simplify(total // 2)
        low, high = (half, total - half) if automatic == "SAME_UPPER" else (total - half, half)
        found.append((low, high - extra[axis]))
    return found


CONVERTERS: dict[str, Converter] = {"Conv": _convolution, "ConvTranspose": _transposed}
