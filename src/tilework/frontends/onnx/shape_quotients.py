"""Floating numbers that models make of shapes, followed as quotients: an extent times 0.5, one extent by another.

Exporters write sizes that way (a shape is cast to float, scaled, rounded and cast back), and the scales of a resize.
Quotients are exact, so what is rounded is the number that was meant; factors that are no small power of two's fraction
are not followed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tilework import dtypes
from tilework.dims import ONE, Dim, dim
from tilework.dtypes import DType
from tilework.frontends.onnx.node import OnnxNode
from tilework.frontends.onnx.operand import (
    LARGEST_KNOWN,
    DimArray,
    Operand,
    Quotients,
    dim_array,
    from_array,
    from_dims,
)
from tilework.frontends.onnx.shape_movement import MOVEMENT_RULES
from tilework.frontends.onnx.symbols import SymbolTable
from tilework.frontends.onnx.tensors import element_type

_FINEST = 1 << 10
"""Denominators of constants up to which they are followed."""
_FLOATS = (dtypes.float32, dtypes.float64)
_Pair = tuple[Dim, Dim]


def evaluate_quotients(node: OnnxNode) -> Operand | None:
    """The node's only result where it is made of quotients of symbolic integers; None where it is not."""
    if node.operator == "Cast":
        return _cast(node)
    if not any(operand is not None and operand.quotients is not None for operand in node.operands):
        return None
    given = [None if operand is None else quotients_of(operand) for operand in node.operands]
    if node.operator in MOVEMENT_RULES and len(node.outputs) == 1:
        return _moved(node, given)
    rule = _RULES.get(node.operator)
    known = [entry for entry in given if entry is not None]
    if rule is None or len(known) != len(node.operands) or len(known) not in (1, 2):
        return None
    try:
        parts = np.broadcast_arrays(*(array for q in known for array in (q.numerators, q.denominators)))
    except ValueError:
        return None
    entries: list[_Pair] = []
    for row in zip(*(part.reshape(-1) for part in parts), strict=True):
        found = rule(node.symbols, *row)
        if found is None:
            return None
        entries.append(found)
    shape = parts[0].shape
    over, under = (dim_array([entry[k] for entry in entries], shape) for k in (0, 1))
    return _operand(node.outputs[0], over, under, node.operand(0).dtype)


def quotients_of(operand: Operand) -> Quotients | None:
    """The elements as quotients: followed ones, or a small constant's."""
    if operand.quotients is not None:
        return operand.quotients
    array = operand.array
    if array is None or array.size > LARGEST_KNOWN or operand.dtype not in _FLOATS or not np.isfinite(array).all():
        return None
    exact = [Fraction(float(entry)) for entry in array.reshape(-1)]
    if any(entry.denominator > _FINEST for entry in exact):
        return None
    return Quotients(
        dim_array([dim(entry.numerator) for entry in exact], array.shape),
        dim_array([dim(entry.denominator) for entry in exact], array.shape),
    )


def whole(symbols: SymbolTable, over: Dim, under: Dim, up: bool = False) -> Dim | None:
    """The quotient rounded down or up; a divisor that may be 0 is taken to be positive. None where it never is."""
    if not symbols.require_at_least(under, 1, measured=True):
        return None
    return symbols.simplify(over.ceildiv(under) if up else over // under)


def _cast(node: OnnxNode) -> Operand | None:
    wanted, operand = element_type(node.integer("to")), node.operand(0)
    if operand.quotients is None:
        if operand.dims is None or wanted not in _FLOATS or not operand.dtype.is_integer:
            return None
        ones = dim_array([ONE] * operand.dims.size, operand.dims.shape)
        return _operand(node.outputs[0], operand.dims, ones, wanted)
    over, under = operand.quotients.numerators, operand.quotients.denominators
    if wanted in _FLOATS:
        return _operand(node.outputs[0], over, under, wanted)
    if not wanted.is_integer:
        return None
    entries: list[Dim] = []
    for numerator, denominator in zip(over.reshape(-1), under.reshape(-1), strict=True):
        # casts truncate, which is rounding down where nothing is negative
        found = whole(node.symbols, numerator, denominator) if node.symbols.decide_at_least(numerator, 0) else None
        if found is None:
            return None
        entries.append(found)
    return from_dims(node.outputs[0], dim_array(entries, over.shape), wanted)


def _moved(node: OnnxNode, given: list[Quotients | None]) -> Operand | None:
    """Numerators and denominators are moved alike; other operands (positions, axes) are integers."""
    results: list[DimArray] = []
    for numerators in (True, False):
        parts: list[DimArray] = []
        for operand, quotients in zip(node.operands, given, strict=True):
            found = None if operand is None else operand.known()
            if quotients is not None:
                found = quotients.numerators if numerators else quotients.denominators
            if found is None:
                return None
            parts.append(found)
        result = MOVEMENT_RULES[node.operator](node, parts)
        if result is None or isinstance(result, list):
            return None
        results.append(result)
    return _operand(node.outputs[0], results[0], results[1], node.operand(0).dtype)


def _operand(name: str, over: DimArray, under: DimArray, dtype: DType) -> Operand | None:
    if over.size > LARGEST_KNOWN:
        return None
    pairs = list(zip(over.reshape(-1), under.reshape(-1), strict=True))
    if all(a.is_constant and b.is_constant for a, b in pairs):
        if any(b.constant == 0 for _, b in pairs):
            return None
        return from_array(name, np.array([a.constant / b.constant for a, b in pairs], dtype.numpy).reshape(over.shape))
    shape = tuple(dim(extent) for extent in over.shape)
    return Operand(name, dtype, shape, quotients=Quotients(over, under))


# -- element by element ------------------------------------------------------------------------------------------------
def _times(symbols: SymbolTable, a: Dim, b: Dim, c: Dim, d: Dim) -> _Pair | None:
    return _reduced(a * c, b * d)


def _by(symbols: SymbolTable, a: Dim, b: Dim, c: Dim, d: Dim) -> _Pair | None:
    return _reduced(a * d, b * c) if symbols.decide_at_least(c, 0) else None


def _plus(symbols: SymbolTable, a: Dim, b: Dim, c: Dim, d: Dim) -> _Pair | None:
    return (a + c, b) if b == d else (a * d + c * b, b * d)


def _minus(symbols: SymbolTable, a: Dim, b: Dim, c: Dim, d: Dim) -> _Pair | None:
    return _plus(symbols, a, b, -c, d)


def _reduced(over: Dim, under: Dim) -> _Pair:
    """Without what both have in common, where that is plain to see."""
    if under != 0:
        exact = over // under
        if exact * under == over:
            return exact, ONE
    return over, under


def _same(symbols: SymbolTable, a: Dim, b: Dim) -> _Pair | None:
    return a, b


def _floor(symbols: SymbolTable, a: Dim, b: Dim) -> _Pair | None:
    found = whole(symbols, a, b)
    return None if found is None else (found, ONE)


def _ceil(symbols: SymbolTable, a: Dim, b: Dim) -> _Pair | None:
    found = whole(symbols, a, b, up=True)
    return None if found is None else (found, ONE)


_RULES: dict[str, Callable[..., _Pair | None]] = {
    "Add": _plus, "Ceil": _ceil, "Div": _by, "Floor": _floor, "Identity": _same, "Mul": _times,
    "Sub": _minus,
}  # fmt: skip
