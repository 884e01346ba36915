"""Integer tensors followed symbolically: what ONNX models compute with shapes is done here, at import.

A rule gets the node and its operands as object arrays of `Dim` and returns the result's array, or None where the bounds
of the symbols do not decide it; the node is then imported like any other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dims import Dim, dim, maximum, minimum
from tilework.dtypes import DType
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import LARGEST_KNOWN, DimArray, Operand, dim_array, from_array, from_dims
from tilework.frontends.onnx.shape_movement import MOVEMENT_RULES, Rule, listed_integers, plain_integers
from tilework.frontends.onnx.shape_quotients import evaluate_quotients
from tilework.frontends.onnx.symbols import SymbolTable
from tilework.frontends.onnx.tensors import Array, element_type

LARGEST_FOLDED = 64
"""Elements up to which constants that are no integers are folded here; larger ones are a matter of the passes."""


def evaluate(node: OnnxNode) -> list[Operand] | None:
    """The node's results where its operands are known integers and the rule decides; None otherwise."""
    folded = _fold_numbers(node)
    if folded is not None:
        return [folded]
    quotients = evaluate_quotients(node)
    if quotients is not None:
        return [quotients]
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


# -- made or counted ---------------------------------------------------------------------------------------------------
def _range(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
    if any(operand.size != 1 for operand in operands):
        return None
    start, limit, step = (operand.reshape(-1)[0] for operand in operands)
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
    values = plain_integers(operands[0])
    if values is None:
        return None
    found = np.stack(np.nonzero(np.array(values, dtype=object).reshape(operands[0].shape)))
    return dim_array([dim(int(v)) for v in found.reshape(-1)], found.shape)


def _reduce(function: Callable[[Dim, Dim], Dim], empty: int | None) -> Rule:
    def rule(node: OnnxNode, operands: Sequence[DimArray]) -> DimArray | None:
        data = operands[0]
        axes = listed_integers(node, operands, 1, "axes")
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
    "Range": _range, **MOVEMENT_RULES,
    "NonZero": _nonzero, "ReduceProd": _reduce(operator.mul, 1), "ReduceSum": _reduce(operator.add, 0),
    "ReduceMax": _reduce(maximum, None), "ReduceMin": _reduce(minimum, None),
}  # fmt: skip
