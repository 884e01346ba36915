"""Operators that move elements without changing them: reshapes, transposes, joins, splits, repeats."""

from __future__ import annotations

from collections.abc import Sequence

from tilework.dims import Dim, dim, maximum, minimum, product
from tilework.frontends.onnx.broadcasting import expanded
from tilework.frontends.onnx.computed_sizes import sizes
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import Operand
from tilework.frontends.onnx.unify import equal, require_divisible
from tilework.graph.graph import Value


def _identity(node: OnnxNode) -> Operand:
    return node.operand(0)


def _reshape(node: OnnxNode) -> Value:
    value = node.value(0)
    wanted = list(node.dims(1, "the shape") if node.opset >= 5 else map(dim, node.integers("shape")))
    checked: list[Dim] = []
    if not node.flag("allowzero"):
        wanted = [_own_for_zero(node, value.tensor.shape, wanted, place) for place in range(len(wanted))]
        checked = _nowhere_zero(node, value.tensor.shape, wanted)
    shape = reshaped(node, value.tensor.shape, wanted, node.flag("allowzero"), checked)
    return node.emit.reshape(node.emit.assumed(value, value.tensor.shape, checked), shape)


def _own_for_zero(node: OnnxNode, shape: Sequence[Dim], wanted: Sequence[Dim], place: int) -> Dim:
    """An extent that data decide, with the input's own for 0; itself where it is never 0, or both are then, or no
    elements would be to fill the input's own (`_nowhere_zero` has that checked).
    """
    extent, own = wanted[place], shape[place] if place < len(shape) else dim(0)
    if not any(map(node.symbols.is_measured, extent.names())) or node.symbols.decide_at_least(extent, 1):
        return extent
    if own == extent or own % extent == 0:
        return extent
    others = [own, *wanted[:place], *wanted[place + 1 :]]
    if product(shape) % extent == 0 and all(node.symbols.decide_at_least(other, 1) for other in others):
        return extent
    return node.symbols.simplify(extent + own * (1 - minimum(extent, 1)))


def _nowhere_zero(node: OnnxNode, shape: Sequence[Dim], wanted: Sequence[Dim]) -> list[Dim]:
    """What is to be checked (>= 0) so that no extent which a model computes turns out to be 0, which means the input's
    own. Bounds of free symbols say so where they can: a call outside them is compiled for its sizes.
    """
    found: list[Dim] = []
    for place, extent in enumerate(wanted):
        own = shape[place] if place < len(shape) else dim(1)
        if extent.is_constant or extent == own or node.symbols.decide_at_least(extent, 1):
            continue
        names = extent.names()
        if not any(map(node.symbols.is_measured, names)):
            parts = [dim(name) for name in sorted(names)] if product(map(dim, sorted(names))) == extent else [extent]
            if all(node.symbols.require_at_least(part, 1) for part in parts):
                continue
        found.append(extent - minimum(own, 1))
    return found


def reshaped(
    node: OnnxNode, shape: tuple[Dim, ...], wanted: Sequence[Dim], zero_is_zero: bool, checked: list[Dim]
) -> tuple[Dim, ...]:
    """A shape with 0 (the input's own extent) and -1 (what is left) replaced; `NodeFault` 1119 or 1121.

    What is to be checked (>= 0) where data decide what -1 is divided by is added to `checked`.
    """
    found = list(wanted)
    if not zero_is_zero:
        for place, extent in enumerate(found):
            if extent == 0:
                if place >= len(shape):
                    raise NodeFault(1119, f"0 at place {place} of a new shape, the input has {len(shape)} dimensions")
                found[place] = shape[place]
    free = [place for place, extent in enumerate(found) if extent == -1]
    if len(free) > 1 or any(e.is_constant and e.constant < -1 for e in found):
        text = ", ".join(map(str, wanted))
        raise NodeFault(1119, f"the new shape [{text}] has more than one -1 or a negative extent")
    total = product(shape)
    if free:
        rest = product(extent for place, extent in enumerate(found) if place != free[0])
        if rest == 0:
            raise NodeFault(1119, "-1 in a new shape beside an extent of 0 has no one value")
        left = _quotient(node, shape, [e for place, e in enumerate(found) if place != free[0]])
        if left * rest != total:
            fixed = total.is_constant and rest.is_constant
            if any(map(node.symbols.is_measured, total.names() | rest.names())):
                left = node.symbols.simplify(total // maximum(rest, 1))
                checked += [rest - 1, rest * left - total]
            else:
                raise NodeFault(1119 if fixed else 1121, f"{total} elements do not divide into {rest}")
        found[free[0]] = left
    else:
        equal(node.symbols, total, product(found), "elements of the old and the new shape")
    return tuple(found)


def _quotient(node: OnnxNode, shape: Sequence[Dim], divisors: Sequence[Dim]) -> Dim:
    """Elements divided by some extents; equal extents cancel first, so that symbols divide exactly."""
    left = list(shape)
    rest: list[Dim] = []
    for divisor in divisors:
        if divisor in left:
            left.remove(divisor)
        else:
            rest.append(divisor)
    total, by = product(left), product(rest)
    if by.is_constant and by.constant <= 0:
        raise NodeFault(1119, f"a new shape has {by} elements beside -1")
    return node.symbols.simplify(total // by)


def _flatten(node: OnnxNode) -> Value:
    value = node.value(0)
    shape = value.tensor.shape
    given = node.integer("axis", 1)
    axis = len(shape) if given == len(shape) else node.axis(given, len(shape)) if shape else 0
    return node.emit.reshape(value, (product(shape[:axis]), product(shape[axis:])))


def _squeeze(node: OnnxNode) -> Value:
    value = node.value(0)
    shape = value.tensor.shape
    if node.opset >= 13:
        given = node.fixed(1, "axes") if node.has(1) else None
    else:
        given = node.integers("axes") if node.given("axes") else None
    axes = tuple(a for a, e in enumerate(shape) if e == 1) if given is None else node.axes(given, len(shape))
    for axis in axes:
        equal(node.symbols, shape[axis], dim(1), f"dimension {axis}, which is to be dropped,")
    # without axes, what drops out is known only with the sizes: free extents are taken to be larger than 1
    larger = [extent - 2 for extent in shape if given is None and not extent.is_constant]
    kept = [dim(1) if axis in axes else extent for axis, extent in enumerate(shape)]
    return node.emit.drop_dims(node.emit.assumed(value, kept, larger), axes)


def _unsqueeze(node: OnnxNode) -> Value:
    value = node.value(0)
    given = node.fixed(1, "axes") if node.opset >= 13 else node.integers("axes")
    return node.emit.expand_dims(value, node.axes(given, value.tensor.rank + len(given)))


def _transpose(node: OnnxNode) -> Value:
    value = node.value(0)
    rank = value.tensor.rank
    permutation = node.integers("perm", tuple(reversed(range(rank))))
    if sorted(permutation) != list(range(rank)):
        raise NodeFault(1108, f"attribute 'perm' is {list(permutation)}, no order of {rank} dimensions")
    return node.emit.transpose(value, permutation)


def _expand(node: OnnxNode) -> Value:
    value = node.value(0)
    wanted = sizes(node, 1, "the shape")
    if any(e.is_constant and e.constant < 0 for e in wanted):
        raise NodeFault(1119, f"the shape [{', '.join(map(str, wanted))}] has a negative extent")
    return expanded(node.emit, value, wanted)


def _tile(node: OnnxNode) -> Value:
    """Each dim gets a new one before it, along which it repeats; the two are then one."""
    value, emit = node.value(0), node.emit
    repeats = sizes(node, 1, "the repeats")
    shape = value.tensor.shape
    if len(repeats) != len(shape) or any(r.is_constant and r.constant < 0 for r in repeats):
        raise NodeFault(1119, f"repeats [{', '.join(map(str, repeats))}] do not fit {value.type}")
    if all(r == 1 for r in repeats):
        return value
    paired = [extent for pair in zip([dim(1)] * len(shape), shape, strict=True) for extent in pair]
    repeated = [extent for pair in zip(repeats, shape, strict=True) for extent in pair]
    spread = emit.broadcast(emit.reshape(value, paired), repeated)
    return emit.reshape(spread, [r * e for r, e in zip(repeats, shape, strict=True)])


def _concat(node: OnnxNode) -> Value:
    values = node.values()
    axis = node.axis(node.integer("axis", 1 if node.opset < 4 else None), values[0].tensor.rank)
    fitted = values[:1]
    for value in values[1:]:
        if value.tensor.rank != values[0].tensor.rank:
            raise NodeFault(1119, f"operands {values[0].type} and {value.type} differ in rank")
        wanted = list(values[0].tensor.shape)
        wanted[axis] = value.tensor.shape[axis]
        for place, (one, other) in enumerate(zip(wanted, value.tensor.shape, strict=True)):
            equal(node.symbols, one, other, f"dimension {place} of the operands")
        fitted.append(node.emit.assumed(value, wanted))
    return node.emit.concatenate(fitted, axis)


def _split(node: OnnxNode) -> tuple[Value, ...]:
    value = node.value(0)
    axis = node.axis(node.integer("axis", 0), value.tensor.rank)
    extent = value.tensor.shape[axis]
    count = len(node.outputs)
    if node.opset >= 13 and node.has(1):
        sizes = list(node.dims(1, "the sizes"))
    elif node.opset < 13 and node.given("split"):
        sizes = list(map(dim, node.integers("split")))
    else:
        sizes = _even_parts(node, extent, count)
    if len(sizes) != count or any(s.is_constant and s.constant < 0 for s in sizes):
        raise NodeFault(1119, f"sizes [{', '.join(map(str, sizes))}] for {count} outputs")
    equal(node.symbols, sum(sizes, dim(0)), extent, f"the sum of the sizes and dimension {axis}")
    wanted = list(value.tensor.shape)
    wanted[axis] = sum(sizes, dim(0))
    value = node.emit.assumed(value, wanted)
    found: list[Value] = []
    start = dim(0)
    for size in sizes:
        found.append(node.emit.slice_axis(value, axis, start, start + size))
        start = start + size
    return tuple(found)


def _even_parts(node: OnnxNode, extent: Dim, count: int) -> list[Dim]:
    """Equal parts; since version 18 the last may be smaller."""
    if node.given("num_outputs") and node.integer("num_outputs") != count:
        raise NodeFault(1108, f"attribute 'num_outputs' is {node.integer('num_outputs')}, there are {count} outputs")
    if extent.is_constant and not node.given("num_outputs"):
        return [require_divisible(extent, count, "the extent to split")] * count
    if extent % count == 0 or not node.given("num_outputs"):
        return [extent // count] * count
    chunk = extent.ceildiv(count)
    parts = [node.symbols.simplify(minimum(chunk, maximum(0, extent - chunk * part))) for part in range(count - 1)]
    return [*parts, node.symbols.simplify(extent - sum(parts, dim(0)))]


def _image(node: OnnxNode, value: Value) -> tuple[Dim, Dim, Dim, Dim, int]:
    if value.tensor.rank != 4:
        raise NodeFault(1119, f"the input {value.type} must have four dimensions")
    block = node.integer("blocksize")
    if not 0 < block < 2**20:
        raise NodeFault(1108, f"attribute 'blocksize' is {block}, it must be positive")
    batch, channels, height, width = value.tensor.shape
    return batch, channels, height, width, block


def _depth_to_space(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    batch, channels, height, width, block = _image(node, value)
    left = require_divisible(channels, block * block, "the number of channels")
    if node.choice("mode", "DCR", ("DCR", "CRD")) == "DCR":
        split = emit.reshape(value, (batch, block, block, left, height, width))
        moved = emit.transpose(split, (0, 3, 4, 1, 5, 2))
    else:
        split = emit.reshape(value, (batch, left, block, block, height, width))
        moved = emit.transpose(split, (0, 1, 4, 2, 5, 3))
    return emit.reshape(moved, (batch, left, height * block, width * block))


def _space_to_depth(node: OnnxNode) -> Value:
    value, emit = node.value(0), node.emit
    batch, channels, height, width, block = _image(node, value)
    rows, columns = require_divisible(height, block, "the height"), require_divisible(width, block, "the width")
    split = emit.reshape(value, (batch, channels, rows, block, columns, block))
    if node.choice("mode", "DCR", ("DCR", "CRD")) == "DCR":
        moved = emit.transpose(split, (0, 3, 5, 1, 2, 4))
    else:
        moved = emit.transpose(split, (0, 1, 3, 5, 2, 4))
    return emit.reshape(moved, (batch, channels * (block * block), rows, columns))


CONVERTERS: dict[str, Converter] = {
    "Concat": _concat, "DepthToSpace": _depth_to_space, "Expand": _expand, "Flatten": _flatten,
    "Identity": _identity, "Reshape": _reshape, "SpaceToDepth": _space_to_depth, "Split": _split, "Squeeze": _squeeze,
    "Tile": _tile, "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
