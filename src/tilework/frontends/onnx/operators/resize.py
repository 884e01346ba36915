"""Resize and Upsample: every dimension resized on its own, by nearest neighbours, linearly or with cubics."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim, minimum
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.formula import Formula, Term, counting, extent
from tilework.frontends.onnx.interpolation import (
    Axis,
    Computed,
    Coordinates,
    Kernel,
    Spaced,
    accumulated,
    cubic_kernel,
    interpolated,
    linear_kernel,
    narrowed,
    nearest,
    stretched_kernel,
)
from tilework.frontends.onnx.node import OnnxNode, element, finite
from tilework.frontends.onnx.operand import Quotients
from tilework.frontends.onnx.shape_quotients import whole
from tilework.graph.graph import Array, Value

_LARGEST_RATIO = 1 << 20
"""Numerators and denominators of scales up to which coordinates are computed in integers."""
_TRANSFORMATIONS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class _Target:
    """A dimension of `own` elements that gets `extent`.

    `ratio`: by how much it is scaled, where that is one number for every size. `scale`: the same as a number in the
    graph, where it is not. `is_exact`: the extent is the scaled one, not what rounding down left of it.
    """

    place: int
    own: Dim
    extent: Dim
    ratio: Fraction | None
    scale: Formula | None
    is_exact: bool
    region: tuple[Term, Term] | None = None


def _resize(node: OnnxNode) -> Value:
    if node.opset < 11:
        return _scaled(node, node.text("mode", "nearest"), _numbers(node, 1, "the scales"))
    value = node.value(0)
    rank = value.tensor.rank
    places = [node.axis(given, rank) for given in node.integers("axes", tuple(range(rank)))]
    if len(set(places)) != len(places):
        raise NodeFault(1108, f"attribute 'axes' is {places}, it names a dimension twice")
    sized = node.has(3) and node.operand(3).shape != (dim(0),)
    if sized == (node.has(2) and node.operand(2).shape != (dim(0),)):
        raise NodeFault(1117, "exactly one of 'scales' and 'sizes' must be given")
    how = node.choice("coordinate_transformation_mode", "half_pixel", _TRANSFORMATIONS)
    targets = _by_sizes(node, value, places) if sized else _by_scales(node, value, places)
    for target in targets:
        if target.own == 0 and target.extent != 0:
            raise NodeFault(1119, f"dimension {target.place} has no elements to make {target.extent} of")
    if how == "tf_crop_and_resize":
        targets = _with_regions(node, targets)
    moved = [target for target in sorted(targets, key=lambda t: t.place) if not _stays(target)]
    axes = [(target, Axis(target.place, target.extent, _coordinates(node, target, how))) for target in moved]
    mode = node.choice("mode", "nearest", ("nearest", "linear", "cubic"))
    if mode == "nearest":
        if node.flag("antialias"):
            raise NodeFault(1108, "attribute 'antialias' is for the modes 'linear' and 'cubic'")
        rounding = node.choice("nearest_mode", "round_prefer_floor", _ROUNDINGS)
        for _, axis in axes:
            value = nearest(node.emit, value, axis, rounding)
    else:
        value = _interpolated(node, value, [(axis, _kernel(node, target, mode)) for target, axis in axes], mode)
    return _extrapolated(node, value, axes) if how == "tf_crop_and_resize" else value


def _upsample(node: OnnxNode) -> Value:
    """Resize as it was before version 11: coordinates are i / scale, nearest ones rounded down."""
    if node.opset >= 9:
        scales = _numbers(node, 1, "the scales")
    else:
        scales = np.asarray(node.numbers("scales"), np.float32)
    if (scales < 1).any():
        raise NodeFault(1108, f"scales {scales.tolist()}: Upsample's must be at least 1")
    return _scaled(node, node.text("mode", "nearest"), scales)


def _scaled(node: OnnxNode, mode: str, scales: Array) -> Value:
    """Version 10 does not say how it rounds: as in ONNX Runtime, down where a dimension grows, up where it shrinks."""
    value = node.value(0)
    if mode not in ("nearest", "linear", "bilinear"):
        raise NodeFault(1123, f"attribute 'mode' is {mode!r}; supported: nearest, linear")
    targets = [t for t in _scaled_targets(node, value, list(range(value.tensor.rank)), scales) if not _stays(t)]
    axes = [Axis(target.place, target.extent, _coordinates(node, target, "asymmetric")) for target in targets]
    if mode != "nearest":
        return _interpolated(node, value, [(axis, linear_kernel(False)) for axis in axes], mode)
    for target, axis in zip(targets, axes, strict=True):
        value = nearest(node.emit, value, axis, "ceil" if target.ratio is None or target.ratio < 1 else "floor")
    return value


# -- sizes -------------------------------------------------------------------------------------------------------------
def _numbers(node: OnnxNode, position: int, what: str) -> Array:
    found = node.array(position, what)
    if found.ndim != 1 or not np.isfinite(found.astype(np.float64)).all():
        raise NodeFault(1119, f"{what} must be a list of finite numbers, it is {node.operand(position)}")
    return found


def _by_scales(node: OnnxNode, value: Value, places: list[int]) -> list[_Target]:
    operand = node.operand(2)
    if operand.array is None and operand.quotients is not None:
        return _by_quotients(node, value, places, operand.quotients)
    return _scaled_targets(node, value, places, _numbers(node, 2, "the scales"))


def _scaled_targets(node: OnnxNode, value: Value, places: list[int], scales: Array) -> list[_Target]:
    if len(scales) != len(places):
        raise NodeFault(1119, f"{len(scales)} scales for {len(places)} dimensions")
    found: list[_Target] = []
    for place, given in zip(places, np.asarray(scales, np.float32), strict=True):
        if not 0 < given < np.inf:
            raise NodeFault(1119, f"a scale is {given}, it must be positive and finite")
        own, ratio = value.tensor.shape[place], _ratio(given)
        if own.is_constant:
            with np.errstate(over="ignore"):
                extent = given * np.float32(own.constant)
            if np.isinf(extent):
                raise NodeFault(1124, f"dimension {place} of {value.type} scaled by {given}")
            scaled = dim(int(extent))
        else:
            scaled = node.symbols.simplify(own * ratio.numerator // ratio.denominator)
        exact = own * ratio.numerator == scaled * ratio.denominator
        number = Formula(node.emit, node.emit.scalar(float(given), dtypes.float32))
        found.append(_Target(place, own, scaled, _small(ratio), number, exact))
    return found


def _by_quotients(node: OnnxNode, value: Value, places: list[int], scales: Quotients) -> list[_Target]:
    """Scales that are made of extents, an extent wanted by one that there is for example."""
    if scales.numerators.shape != (len(places),):
        raise NodeFault(1119, f"the scales {node.operand(2)} are for {len(places)} dimensions")
    found: list[_Target] = []
    for place, over, under in zip(places, scales.numerators, scales.denominators, strict=True):
        own = value.tensor.shape[place]
        scaled = whole(node.symbols, own * over, under)
        if scaled is None:
            raise NodeFault(1116, f"whether the scale ({over}) / ({under}) is positive is not known")
        exact = own * over == scaled * under
        ratio = _quotient(over, under)
        found.append(_Target(place, own, scaled, ratio, _number(node, over, under), exact))
    return found


def _ratio(scale: np.float32) -> Fraction:
    """The number that somebody wrote down before it was rounded: the simplest one that rounds to it."""
    exact = Fraction(float(scale))
    simple = exact.limit_denominator(4096)
    return simple if simple > 0 and np.float32(simple.numerator / simple.denominator) == scale else exact


def _small(ratio: Fraction | None) -> Fraction | None:
    large = ratio is None or max(ratio.numerator, ratio.denominator) > _LARGEST_RATIO
    return None if large else ratio


def _by_sizes(node: OnnxNode, value: Value, places: list[int]) -> list[_Target]:
    sizes = node.dims(3, "the sizes")
    if len(sizes) != len(places):
        raise NodeFault(1119, f"{len(sizes)} sizes for {len(places)} dimensions")
    if any(size.is_constant and size.constant < 0 for size in sizes):
        raise NodeFault(1119, f"sizes [{', '.join(map(str, sizes))}] must not be negative")
    pairs = [(value.tensor.shape[place], size) for place, size in zip(places, sizes, strict=True)]
    policy = "stretch"
    if node.opset >= 18:
        policy = node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    if policy != "stretch":
        return _in_proportion(node, places, pairs, policy == "not_larger")
    return [
        _Target(place, own, size, _quotient(size, own), _number(node, size, own), True)
        for place, (own, size) in zip(places, pairs, strict=True)
    ]


def _quotient(size: Dim, own: Dim) -> Fraction | None:
    """The scale of a dimension, where it is the same for all values of its symbols."""
    if size.is_constant and own.is_constant:
        return _small(Fraction(size.constant, own.constant)) if own != 0 and size != 0 else None
    if own != 0 and size != 0:
        larger, smaller = size // own, own // size
        if larger.is_constant and own * larger == size:
            return Fraction(larger.constant)
        if smaller.is_constant and size * smaller == own:
            return Fraction(1, smaller.constant)
    return None


def _number(node: OnnxNode, size: Dim, own: Dim) -> Formula:
    return extent(node.emit, size, dtypes.float32) / extent(node.emit, own, dtypes.float32)


def _in_proportion(node: OnnxNode, places: list[int], pairs: list[tuple[Dim, Dim]], least: bool) -> list[_Target]:
    """One scale for all: the least (or the largest) that the sizes ask for; extents are rounded, halves up."""
    if any(own == 0 for own, _ in pairs):
        raise NodeFault(1119, "a dimension without elements has no proportion")
    ratio: Fraction | None = None
    scale: Formula | None = None
    if all(own.is_constant and size.is_constant for own, size in pairs):
        ratios = [Fraction(size.constant, own.constant) for own, size in pairs]
        ratio = min(ratios) if least else max(ratios)
    for own, size in pairs:
        one = _number(node, size, own)
        scale = one if scale is None else scale.minimum(one) if least else scale.maximum(one)
    found: list[_Target] = []
    for place, (own, _) in zip(places, pairs, strict=True):
        if ratio is not None:
            scaled = dim(math.floor(ratio * own.constant + Fraction(1, 2)))
        else:  # rounding keeps the order, so the least scaled extent is the extent scaled by the least
            every = [-((size * own * 2 + other) // (other * 2)) for other, size in pairs]
            scaled = minimum(*(-one for one in every)) if least else -minimum(*every)
        exact = ratio is not None and ratio * own.constant == scaled.constant
        found.append(_Target(place, own, node.symbols.simplify(scaled), _small(ratio or None), scale, exact))
    return found


def _with_regions(node: OnnxNode, targets: list[_Target]) -> list[_Target]:
    """The part of each dimension that is looked at, from 0 (its first element) to 1 (its last)."""
    if not node.has(1) or node.operand(1).shape == (dim(0),):
        raise NodeFault(1117, "input 1 ('roi') is missing, 'tf_crop_and_resize' needs it")
    operand, count = node.operand(1), len(targets)
    if operand.shape != (dim(2 * count),):
        raise NodeFault(1119, f"'roi' is {operand}, it must be a list of {2 * count} numbers")
    ends: list[Term]
    if operand.array is not None:
        ends = [float(entry) for entry in operand.array.astype(np.float32)]
    else:
        whole = Formula(node.emit, node.value(1)).to(dtypes.float32)
        ends = [Formula(node.emit, node.emit.slice_axis(whole.value, 0, k, k + 1)) for k in range(2 * count)]
    return [
        _Target(t.place, t.own, t.extent, t.ratio, t.scale, t.is_exact, (ends[k], ends[count + k]))
        for k, t in enumerate(targets)
    ]


def _stays(target: _Target) -> bool:
    """Whether every coordinate is its own index."""
    whole = target.region is None or target.region == (0.0, 1.0)
    return whole and target.own == target.extent and target.ratio == 1


# -- coordinates -------------------------------------------------------------------------------------------------------
def _coordinates(node: OnnxNode, target: _Target, how: str) -> Coordinates:
    if target.ratio is not None and how != "tf_crop_and_resize":
        found = _spaced(node, target, target.ratio, how)
        if found is not None:
            return found
    return Computed(_computed(node, target, how))


def _spaced(node: OnnxNode, target: _Target, ratio: Fraction, how: str) -> Spaced | None:
    """The coordinates as multiples of the index, None where they are not for all values of symbols."""
    own, size = target.own, target.extent
    up, down = ratio.numerator, ratio.denominator
    match how:
        case "asymmetric":
            return Spaced(down, dim(0), up)
        case "tf_half_pixel_for_nn":
            return Spaced(2 * down, dim(down), 2 * up)
        case "half_pixel_symmetric":
            missing = dim(0) if target.is_exact else own * up - size * down
            return Spaced(2 * down, missing + (down - up), 2 * up)
        case "align_corners":
            return _aligned(target, ratio)
        case _:
            if how == "pytorch_half_pixel":
                several = node.symbols.decide_at_least(size, 2)
                if several is not True:
                    return Spaced(0, dim(0), 1) if several is False else None
            return Spaced(2 * down, dim(down - up), 2 * up)


def _aligned(target: _Target, ratio: Fraction) -> Spaced | None:
    """First and last elements lie on each other.

    Where scales are given, the extent that they make is not rounded: so ONNX's own cases have it. (ONNX Runtime takes
    the extent that there is.)
    """
    if not target.own.is_constant:
        return None
    width = ratio * target.own.constant
    if width <= 1:
        return Spaced(0, dim(0), 1)
    step = (target.own.constant - 1) / (width - 1)
    return Spaced(step.numerator, dim(0), step.denominator)


def _computed(node: OnnxNode, target: _Target, how: str) -> Formula:
    """The coordinates in float32, operation by operation as ONNX Runtime computes them."""
    emit, scale = node.emit, target.scale
    assert scale is not None
    index = counting(emit, target.extent).to(dtypes.float32)
    own, size = (extent(emit, value, dtypes.float32) for value in (target.own, target.extent))
    several = size > 1
    match how:
        case "asymmetric":
            return index / scale
        case "tf_half_pixel_for_nn":
            return (index + 0.5) / scale
        case "align_corners":
            width = size if target.is_exact else own * scale
            return (width > 1).select(index * (own - 1) / (width - 1), 0.0)
        case "half_pixel_symmetric":
            offset = own / 2 * (1 - size / (scale * own))
            return offset + ((index + 0.5) / scale - 0.5)
        case "tf_crop_and_resize":
            assert target.region is not None
            start, end = target.region
            moving = start * (own - 1) + index * (end - start) * (own - 1) / (size - 1)
            return several.select(moving, (own - 1) * (start + end) * 0.5)
        case _:
            plain = (index + 0.5) / scale - 0.5
            return several.select(plain, 0.0) if how == "pytorch_half_pixel" else plain


# -- values ------------------------------------------------------------------------------------------------------------
def _kernel(node: OnnxNode, target: _Target, mode: str) -> Kernel:
    inside = node.flag("exclude_outside")
    cubic = finite(node.number("cubic_coeff_a", -0.75), "attribute 'cubic_coeff_a'") if mode == "cubic" else None
    if node.opset >= 18 and node.flag("antialias"):
        if target.ratio is None:
            raise NodeFault(1116, f"the scale of dimension {target.place} must be a constant for 'antialias'")
        if target.ratio < 1:
            return stretched_kernel(float(target.ratio), cubic, inside)
    return linear_kernel(inside) if cubic is None else cubic_kernel(cubic, inside)


def _interpolated(node: OnnxNode, value: Value, axes: list[tuple[Axis, Kernel]], mode: str) -> Value:
    kind = element(value)
    if not (kind.is_integer or kind.is_floating):
        raise NodeFault(1123, f"mode {mode!r} of {kind} is not supported")
    found = node.emit.convert(value, accumulated(kind)) if axes else value
    for axis, kernel in axes:
        found = interpolated(node.emit, found, axis, kernel)
    # ONNX Runtime truncates integers (it has no cubics of them), onnx.reference rounds them
    return narrowed(Formula(node.emit, found), kind, truncated=mode != "cubic") if axes else value


def _extrapolated(node: OnnxNode, value: Value, axes: list[tuple[_Target, Axis]]) -> Value:
    """A value of its own where a coordinate lies outside the input."""
    outside: Formula | None = None
    for target, axis in axes:
        if isinstance(axis.coordinates, Computed):
            at = axis.coordinates.at
            here = (at < 0) | (at > extent(node.emit, target.own - 1, dtypes.float32))
            here = here.along(axis.place, value.tensor.rank)
            outside = here if outside is None else outside | here
    if outside is None:
        return value
    fill = node.number("extrapolation_value", 0.0)
    return outside.select(fill, Formula(node.emit, value)).value


CONVERTERS: dict[str, Converter] = {"Resize": _resize, "Upsample": _upsample}
