"""Integer tensors followed symbolically: what ONNX models compute with shapes is done here, at import.

A rule gets the node and its operands as object arrays of `Dim` and returns the result's array, or None where the bounds
of the symbols do not decide it; the node is then imported like any other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim, maximum, minimum, product
from tilework.dtypes import DType
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import LARGEST_KNOWN, DimArray, Operand, dim_array, from_array, from_dims
from tilework.frontends.onnx.symbols import SymbolTable
from tilework.frontends.onnx.tensors import Array, element_type

Rule: TypeAlias = "Callable[[OnnxNode, Sequence[DimArray]], DimArray | list[DimArray] | None]"

LARGEST_FOLDED = 64
"""Elements up to which constants that are no integers are folded here; larger ones are a matter of the passes."""


def evaluate(node: OnnxNode) -> list[Operand] | None:
    """The node's results where its operands are known integers and the rule decides; None otherwise."""
    folded = _fold_numbers(node)
    if folded is not None:
        return [folded]
    rule = _RULES.get(node.operator)
    if rule is None or not node.operands:
        return None
    known: list[DimArray] = []
    for operand in node.operands:
        found = None if operand is None else operand.known()
        if found is None:
            return None
        known.append(found)
    result = rule(node, known)
    if result is None:
        return None
    results = result if isinstance(result, list) else [result]
    return _named(node, results) if all(r.size <= LARGEST_KNOWN for r in results) else None


def _named(node: OnnxNode, results: Sequence[DimArray]) -> list[Operand]:
    dtype = _result_type(node)
    simplify = node.symbols.simplify
    return [
        from_dims(name, dim_array([simplify(entry) for entry in result.reshape(-1)], result.shape), dtype)
        for name, result in zip(node.outputs, results, strict=False)
    ]


def _result_type(node: OnnxNode) -> DType:
    if node.operator == "NonZero":
        return dtypes.int64
    if node.operator == "Cast":
        return element_type(node.integer("to"))
    if node.operator == "Where":
        return node.operand(1).dtype
    return dtypes.boolean if node.operator in _PREDICATES else node.operand(0).dtype


# -- small constants that are no integers (scales of shapes) -----------------------------------------------------------
_NUMBER_RULES: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Floor": np.floor, "Ceil": np.ceil,
    "Sqrt": np.sqrt,
}  # fmt: skip
_FOLDED_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def _fold_numbers(node: OnnxNode) -> Operand | None:
    arrays: list[Array] = []
    for operand in node.operands:
        if operand is None or operand.array is None or operand.array.size > LARGEST_FOLDED:
            return None
        arrays.append(operand.array)
    if not arrays or any(array.dtype.kind not in "fiu" for array in arrays):
        return None
    name = node.outputs[0]
    with np.errstate(all="ignore"):
        if node.operator == "Cast":
            wanted, wide = element_type(node.integer("to")), arrays[0].astype(np.float64)
            if wanted not in _FOLDED_TYPES:
                return None
            # numbers that an integer type does not hold have no one value: left to the operator that defines it
            if wanted.is_integer and not (np.isfinite(wide).all() and (np.abs(wide) < 2**31).all()):
                return None
            return from_array(name, arrays[0].astype(wanted.numpy))
        rule = _NUMBER_RULES.get(node.operator)
        if rule is None or any(array.dtype.kind != "f" for array in arrays):
            return None
        try:
            return from_array(name, np.asarray(rule(*arrays)))
        except (TypeError, ValueError):
            return None


# -- element by element ------------------------------------------------------------------------------------------------
def _elementwise(function: Callable[..., Dim | None], *operands: DimArray) -> DimArray | None:
    """Apply to each element after broadcasting; None as soon as one is undecided."""
    try:
        spread = np.broadcast_arrays(*operands)
    except ValueError:
        raise NodeFault(1119, f"shapes {' and '.join(str(o.shape) for o in operands)} do not broadcast") from None
    if spread[0].size > LARGEST_KNOWN:
        return None
    entries: list[Dim] = []
    for row in zip(*(s.reshape(-1) for s in spread), strict=True):
        found = function(*row)
        if found is None:
            return None
        entries.append(found)
    return dim_array(entries, spread[0].shape)


def _fold(function: Callable[[Dim, Dim], Dim | None]) -> Rule:
    def rule(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
        total: DimArray | None = operands[0]
        for operand in operands[1:]:
            total = None if total is None else _elementwise(function, total, operand)
        return total

    return rule


def _quotient(symbols: SymbolTable) -> Callable[[Dim, Dim], Dim | None]:
    """Division as ONNX has it, rounded towards zero: the floor where nothing is negative, exact ones always."""

    def divide(left: Dim, right: Dim) -> Dim | None:
        if left.is_constant and right.is_constant:
            if right.constant == 0:
                return None
            return dim(abs(left.constant) // abs(right.constant) * (1 if left.constant * right.constant >= 0 else -1))
        if not symbols.is_positive(right):
            return None
        if left == (left // right) * right:
            return left // right
        return left // right if symbols.decide_at_least(left, 0) else None

    return divide


def _divide(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    return _elementwise(_quotient(node.symbols), *operands)


def _remainder(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    if node.flag("fmod"):
        return None
    symbols = node.symbols

    def remainder(left: Dim, right: Dim) -> Dim | None:
        return left % right if symbols.is_positive(right) else None

    return _elementwise(remainder, *operands)


def _decided(holds: bool | None) -> Dim | None:
    return None if holds is None else dim(int(holds))


def _compare(name: str) -> Rule:
    def rule(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
        symbols = node.symbols

        def at_least(value: Dim, least: int) -> bool | None:
            return symbols.decide_at_least(value, least)

        def decide(left: Dim, right: Dim) -> Dim | None:
            gap = symbols.simplify(left - right)
            match name:
                case "Greater":
                    return _decided(at_least(gap, 1))
                case "GreaterOrEqual":
                    return _decided(at_least(gap, 0))
                case "Less":
                    return _decided(at_least(-gap, 1))
                case "LessOrEqual":
                    return _decided(at_least(-gap, 0))
                case _:
                    if gap.is_constant:
                        return dim(int(gap.constant == 0))
                    apart = at_least(gap, 1) or at_least(-gap, 1)
                    return dim(0) if apart else None

        return _elementwise(decide, *operands)

    return rule


def _where(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    def choose(condition: Dim, one: Dim, other: Dim) -> Dim | None:
        if condition.is_constant:
            return one if condition.constant else other
        return one if one == other else None

    return _elementwise(choose, *operands)


def _logical(function: Callable[[int, int], int]) -> Rule:
    def both(left: Dim, right: Dim) -> Dim | None:
        return dim(function(left.constant, right.constant)) if left.is_constant and right.is_constant else None

    def rule(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
        return _elementwise(both, *operands)

    return rule


def _conjunction(left: int, right: int) -> int:
    return left & right


def _disjunction(left: int, right: int) -> int:
    return left | right


def _difference(left: int, right: int) -> int:
    return left ^ right


def _not(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    def negation(value: Dim) -> Dim | None:
        return dim(1 - value.constant) if value.is_constant else None

    return _elementwise(negation, *operands)


def _cast(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    wanted = element_type(node.integer("to"))
    if wanted.kind == "boolean":
        symbols = node.symbols

        def truth(value: Dim) -> Dim | None:
            if value.is_constant:
                return dim(int(value.constant != 0))
            return dim(1) if symbols.decide_at_least(value, 1) or symbols.decide_at_least(-value, 1) else None

        return _elementwise(truth, *operands)
    return operands[0] if wanted.is_integer else None


def _absolute(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    def magnitude(value: Dim) -> Dim:
        return maximum(value, -value)

    return _elementwise(magnitude, *operands)


def _negate(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    return _elementwise(_minus, *operands)


def _minus(value: Dim) -> Dim:
    return -value


def _identity(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    return operands[0]


# -- moving elements ---------------------------------------------------------------------------------------------------
def _gather(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data, indices = operands
    places = _plain(indices)
    if places is None:
        return None
    axis = node.axis(node.integer("axis", 0), data.ndim)
    extent = data.shape[axis]
    if any(not -extent <= place < extent for place in places):
        raise NodeFault(1119, f"an index of {places} is outside 0..{extent - 1}")
    # numpy hands out a bare element for an index without dimensions: taken as a list and reshaped instead
    found: DimArray = np.take(data, np.array(places, np.int64), axis)
    return found.reshape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))


def _plain(values: DimArray) -> list[int] | None:
    entries: list[Dim] = list(values.reshape(-1))
    return [entry.constant for entry in entries] if all(entry.is_constant for entry in entries) else None


def _listed(node: OnnxNode, operands: Sequence[DimArray], position: int, attribute: str) -> list[int] | None:
    """Plain integers from an input where it is given, else from an attribute."""
    if len(operands) > position:
        return _plain(operands[position])
    return list(node.integers(attribute)) if node.given(attribute) else None


def _slice(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data = operands[0]
    starts, ends = _listed(node, operands, 1, "starts"), _listed(node, operands, 2, "ends")
    if starts is None or ends is None or len(starts) != len(ends):
        return None
    axes = _listed(node, operands, 3, "axes") or list(range(len(starts)))
    steps = _listed(node, operands, 4, "steps") or [1] * len(starts)
    if not len(starts) == len(axes) == len(steps) or 0 in steps:
        return None
    parts = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = node.axis(axis, data.ndim)
        # -1 counted from the end would wrap in Python: ends before the first element are written as None
        stop = None if step < 0 and end < -data.shape[place] else end
        parts[place] = slice(start, stop, step)
    return data[tuple(parts)]


def _concat(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    axis = node.axis(node.integer("axis"), operands[0].ndim)
    try:
        return np.concatenate(list(operands), axis)
    except ValueError:
        raise NodeFault(1119, f"shapes {[o.shape for o in operands]} do not concatenate") from None


def _unsqueeze(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    axes = _listed(node, operands, 1, "axes")
    if axes is None:
        return None
    return np.expand_dims(operands[0], node.axes(axes, operands[0].ndim + len(axes)))


def _squeeze(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data = operands[0]
    axes = _listed(node, operands, 1, "axes")
    chosen = [a for a, s in enumerate(data.shape) if s == 1] if axes is None else node.axes(axes, data.ndim)
    if any(data.shape[axis] != 1 for axis in chosen):
        raise NodeFault(1119, f"dimensions {list(chosen)} of shape {data.shape} are not all 1")
    return data.reshape([s for a, s in enumerate(data.shape) if a not in chosen])


def _reshape(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    shape = _listed(node, operands, 1, "shape")
    if shape is None or node.flag("allowzero"):
        return None
    data = operands[0]
    if any(extent == 0 and place >= data.ndim for place, extent in enumerate(shape)):
        return None
    wanted = [data.shape[place] if extent == 0 else extent for place, extent in enumerate(shape)]
    try:
        return data.reshape(wanted)
    except ValueError:
        raise NodeFault(1119, f"shape {data.shape} does not reshape to {shape}") from None


def _transpose(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    data = operands[0]
    permutation = node.integers("perm", tuple(reversed(range(data.ndim))))
    return data.transpose(permutation) if sorted(permutation) == list(range(data.ndim)) else None


def _expand(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    shape = _plain(operands[1])
    if shape is None or any(extent < 0 for extent in shape) or product(shape).constant > LARGEST_KNOWN:
        return None
    try:
        return np.broadcast_to(operands[0], np.broadcast_shapes(operands[0].shape, tuple(shape)))
    except ValueError:
        raise NodeFault(1119, f"shape {operands[0].shape} does not expand to {shape}") from None


def _tile(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    repeats = _plain(operands[1])
    data = operands[0]
    if repeats is None or len(repeats) != data.ndim or any(r < 0 or r > LARGEST_KNOWN for r in repeats):
        return None
    return np.tile(data, repeats) if data.size * product(repeats).constant <= LARGEST_KNOWN else None


def _split(node: OnnxNode, operands: Sequence[DimArray]) -> list[DimArray] | None:
    data = operands[0]
    axis = node.axis(node.integer("axis", 0), data.ndim)
    sizes = _listed(node, operands, 1, "split")
    count = len(node.outputs)
    if sizes is None:
        chunk = -(-data.shape[axis] // count)
        sizes = [min(chunk, data.shape[axis] - chunk * part) for part in range(count)]
    if sum(sizes) != data.shape[axis] or len(sizes) != count or min(sizes, default=0) < 0:
        return None
    return list(np.split(data, np.cumsum(sizes)[:-1].tolist(), axis))


def _range(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    start, limit, step = (o.reshape(-1)[0] for o in operands if o.size == 1)
    count = symbolic_range_length(start, limit, step)
    if count is None or not count.is_constant or count.constant > LARGEST_KNOWN:
        return None
    return dim_array([start + step * place for place in range(count.constant)], (count.constant,))


def symbolic_range_length(start: Dim, limit: Dim, step: Dim) -> Dim | None:
    """Elements of ONNX's Range: max(0, ceil((limit - start) / step)); None where the step is symbolic or 0."""
    if not step.is_constant or step == 0:
        return None
    gap, magnitude = (limit - start, step.constant) if step.constant > 0 else (start - limit, -step.constant)
    return maximum(0, gap.ceildiv(magnitude))


def _nonzero(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    values = _plain(operands[0])
    if values is None:
        return None
    found = np.stack(np.nonzero(np.array(values, dtype=object).reshape(operands[0].shape)))
    return dim_array([dim(int(v)) for v in found.reshape(-1)], found.shape)


def _reduce(function: Callable[[Dim, Dim], Dim], empty: int | None) -> Rule:
    def rule(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
        data = operands[0]
        axes = _listed(node, operands, 1, "axes")
        if not axes:
            if node.flag("noop_with_empty_axes"):
                return data
            axes = list(range(data.ndim))
        chosen = node.axes(axes, data.ndim)
        if empty is None and data.size == 0:
            return None
        for axis in reversed(chosen):
            parts: list[DimArray] = [np.take(data, [place], axis) for place in range(data.shape[axis])]
            shape = tuple(1 if a == axis else s for a, s in enumerate(data.shape))
            total: DimArray = dim_array([dim(empty or 0)] * math.prod(shape), shape) if not parts else parts[0]
            for part in parts[1:]:
                pairs = zip(total.reshape(-1), part.reshape(-1), strict=True)
                total = dim_array([function(one, other) for one, other in pairs], shape)
            data = total
        if node.flag("keepdims", True):
            return data
        return data.reshape([extent for axis, extent in enumerate(data.shape) if axis not in chosen])

    return rule


_PREDICATES = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "And", "Or", "Xor"})

_RULES: dict[str, Rule] = {
    "Add": _fold(operator.add), "Sub": _fold(operator.sub), "Mul": _fold(operator.mul), "Sum": _fold(operator.add),
    "Div": _divide, "Mod": _remainder, "Neg": _negate,
    "Abs": _absolute, "Max": _fold(maximum), "Min": _fold(minimum), "Where": _where, "Cast": _cast,
    "Equal": _compare("Equal"), "Greater": _compare("Greater"), "GreaterOrEqual": _compare("GreaterOrEqual"),
    "Less": _compare("Less"), "LessOrEqual": _compare("LessOrEqual"), "Not": _not, "And": _logical(_conjunction),
    "Or": _logical(_disjunction), "Xor": _logical(_difference), "Identity": _identity,
    "Gather": _gather, "Slice": _slice, "Concat": _concat, "Unsqueeze": _unsqueeze, "Squeeze": _squeeze,
    "Reshape": _reshape, "Transpose": _transpose, "Expand": _expand, "Tile": _tile, "Split": _split, "Range": _range,
    "NonZero": _nonzero, "ReduceProd": _reduce(operator.mul, 1), "ReduceSum": _reduce(operator.add, 0),
    "ReduceMax": _reduce(maximum, None), "ReduceMin": _reduce(minimum, None),
}  # fmt: skip
