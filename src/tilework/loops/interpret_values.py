"""How the interpreter computes single values: operators of numpy scalars where exact, `scalar_values` elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType
from tilework.loops.scalar_values import bitcast_value, cast_value, operation, round_float

_INFIX = {"add": "+", "subtract": "-", "multiply": "*"}
_COMPARE = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_BITS = {"and": "&", "or": "|", "xor": "^"}


def held_type(dtype: DType, precise: bool) -> DType:
    """The type in which values are kept: float64 (complex128) for floating (complex) ones of a precise run."""
    if not precise:
        return dtype
    if dtype.is_floating:
        return dtypes.float64
    return dtypes.complex128 if dtype.kind == "complex" else dtype


def function_text(function: str, dtype: DType, arguments: list[str], pooled: Callable[[object], str]) -> str:
    """The Python text of a function over scalars held in `dtype`."""
    a = arguments[0]
    native = dtype.bits >= 8 and (dtype.is_integer or dtype.name in ("float16", "float32", "float64"))
    if function == "select":
        return f"{arguments[1]} if {a} else {arguments[2]}"
    if function in _INFIX and (native or dtype.is_floating):
        return f"{a} {_INFIX[function]} {arguments[1]}"
    if function == "divide" and dtype.is_floating:
        return f"{a} / {arguments[1]}"
    if function in _COMPARE and native:
        return f"{a} {_COMPARE[function]} {arguments[1]}"
    if function in _BITS and (native or dtype.kind == "boolean"):
        return f"{a} {_BITS[function]} {arguments[1]}"
    if function in ("maximum", "minimum") and native:
        return f"{pooled(_larger if function == 'maximum' else _smaller)}({a}, {arguments[1]})"
    return f"{pooled(operation(function, dtype))}({', '.join(arguments)})"


def _larger(a: Any, b: Any) -> Any:
    if a > b or a != a:  # noqa: PLR0124 - NaN alone differs from itself
        return a
    if b > a or b != b:  # noqa: PLR0124
        return b
    return b if math.copysign(1.0, a) < 0 else a


def _smaller(a: Any, b: Any) -> Any:
    if a < b or a != a:  # noqa: PLR0124
        return a
    if b < a or b != b:  # noqa: PLR0124
        return b
    return a if math.copysign(1.0, a) < 0 else b


def caster(source: DType, target: DType, precise: bool) -> Callable[[Any], Any] | None:
    """What turns a held value of one type into a held value of another; None where it is the same."""
    if precise:
        source, target = held_type(source, True), held_type(target, True)
    if source == target:
        return None
    exact = source.kind in ("boolean", "signed", "unsigned") and source.bits >= 8
    if target in (dtypes.float32, dtypes.float64) and (source.is_floating or exact):
        kind: Callable[[Any], Any] = target.numpy.type
        return kind
    return lambda value: cast_value(value, source, target)


def bitcaster(source: DType, target: DType, precise: bool) -> Callable[[Any], Any]:
    """What rereads the bits of a held value."""

    def run(value: Any) -> Any:
        if precise and source.is_floating:
            value = round_float(value, source)
        bits = bitcast_value(value, source, target)
        return np.float64(bits) if precise and target.is_floating else bits

    return run


def index_maker(dtype: DType, precise: bool) -> Callable[[int], Any]:
    """What turns a Python integer into a value of a type."""
    held = held_type(dtype, precise)
    if held == dtypes.int64:
        return np.int64
    return lambda value: cast_value(np.int64(value), dtypes.int64, held)
