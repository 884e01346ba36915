"""What each scalar function returns: exact values in numpy, element by element.

Arithmetic is that of the operands' own type, rounded once. Transcendental functions of types up to 32 bits are
evaluated in float64 and rounded; those of float64 are numpy's and the C library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy  # noqa: ICN001 - `np` is the untyped view of it below

from tilework import dtypes
from tilework.dtypes import DType
from tilework.errors import LoopProgramError
from tilework.loops.functions import result_type, scalar_function

np: Any = numpy  # operands are of any numeric type, which numpy's overloads cannot say

Value: TypeAlias = Any
"""A numpy scalar or array."""
Operation: TypeAlias = Callable[..., Value]


def scalar_value(function: str, dtype: DType, *arguments: Value) -> Value:
    """`function` applied to operands of type `dtype` (for `select`: the branches' type), element by element.

    Arguments are numbers, numpy scalars or arrays (broadcast); the result is of the function's result type. `cast` and
    `bitcast` are `cast_value` and `bitcast_value`. Raises `LoopProgramError` 1301 where the function does not take
    the type.
    """
    select = function == "select"
    operands = (dtypes.boolean, dtype, dtype) if select else (dtype,) * scalar_function(function).arity
    result_type(function, operands)
    if len(arguments) != len(operands):
        raise LoopProgramError(1301, f"{function} takes {len(operands)} operands, not {len(arguments)}")
    with np.errstate(all="ignore"):
        typed = [np.asarray(a).astype(t.numpy) for a, t in zip(arguments, operands, strict=True)]
        return operation(function, dtype)(*typed)


def operation(function: str, dtype: DType) -> Operation:
    """The numpy code of a function over operands of `dtype` that are already numpy values of that type.

    The caller holds `np.errstate(all="ignore")`: overflow, division by zero and NaN are values, not accidents.
    """
    if function == "select":
        return _select
    compare = _COMPARISONS.get(function)
    if dtype.kind == "complex":
        return compare or _NATIVE[function]
    carrier = carrier_type(dtype)
    if compare is not None:
        return compare if carrier == dtype.numpy else _through(compare, carrier, None)
    if dtype.kind == "boolean":
        return _BOOLEAN[function]
    if dtype.is_integer:
        return _integer_operation(function, dtype, carrier)
    if function in ("is_nan", "is_infinite"):
        return _through(np.isnan if function == "is_nan" else np.isinf, carrier, None)
    if function == "fused_multiply_add":
        return _fused_float64 if dtype == dtypes.float64 else lambda *a: round_float(_fused_narrow(*a), dtype)
    if function in _FLOAT:
        code = _FLOAT[function]
        if carrier == dtype.numpy:
            return lambda *a: np.asarray(code(*a)).astype(carrier, copy=False)[()]
        return _through(code, carrier, dtype.numpy)
    if dtype == dtypes.float64:
        return _TRANSCENDENTAL[function]
    code = _TRANSCENDENTAL[function]
    wide = np.dtype(np.float64)
    return lambda *a: round_float(code(*(np.asarray(x).astype(wide)[()] for x in a)), dtype)


def _select(condition: Value, first: Value, second: Value) -> Value:
    return np.where(condition, first, second).astype(first.dtype)[()]


def carrier_type(dtype: DType) -> numpy.dtype[Any]:
    """The numpy type in which values of `dtype` are computed before they are rounded or wrapped back."""
    if dtype.is_floating and dtype.bits < 32:
        return np.dtype(np.float32)
    if dtype.is_small_integer:
        return np.dtype(np.int8 if dtype.kind == "signed" else np.uint8)
    return dtype.numpy


def _through(code: Operation, carrier: numpy.dtype[Any], result: numpy.dtype[Any] | None) -> Operation:
    def run(*arguments: Value) -> Value:
        value = np.asarray(code(*(np.asarray(a).astype(carrier)[()] for a in arguments)))
        return (value if result is None else value.astype(result))[()]

    return run


# -- conversions -------------------------------------------------------------------------------------------------------
def cast_value(value: Value, source: DType, target: DType) -> Value:
    """Convert: floating to integer truncates (NaN gives 0, values out of range saturate), integers wrap, everything
    else rounds once to nearest even; to bool: whether it is not zero; complex to real drops the imaginary part.
    """
    with np.errstate(all="ignore"):
        array = np.asarray(value)
        if source == target:
            return array[()]
        if source.is_small_integer:
            array = array.astype(np.int8 if source.kind == "signed" else np.uint8)
        if target.kind == "boolean":
            return (array != array.dtype.type(0))[()]
        if source.kind == "complex":
            if target.kind == "complex":
                return array.astype(target.numpy)[()]
            array, source = array.real, dtypes.float32 if source == dtypes.complex64 else dtypes.float64
        if target.kind == "complex":
            return array.astype(np.float64 if source.is_floating and source.bits < 32 else array.dtype).astype(
                target.numpy
            )[()]
        if target.is_integer:
            return wrap(_truncate(array, target) if source.is_floating else array, target)
        if source.is_floating:
            return round_float(array, target)
        if target.bits >= 32:
            return array.astype(target.numpy)[()]
        return round_float(_sticky_integer(array), target)


def bitcast_value(value: Value, source: DType, target: DType) -> Value:
    """The same bits read as another type of the same width (a boolean from bits: whether they are not zero)."""
    array = np.asarray(value)
    if source.bits < 8:
        array = array.astype(np.uint8) & ((1 << source.bits) - 1) if source.is_integer else array.view(np.uint8)
    if target.kind == "boolean":
        return (array.view(np.uint8) != 0)[()]
    if target.is_small_integer:
        return wrap(array, target)
    return np.ascontiguousarray(array).view(target.numpy).reshape(array.shape)[()]


def wrap(value: Value, dtype: DType) -> Value:
    """Integers reduced to the width of an integer type, two's complement."""
    array = np.asarray(value)
    if dtype.is_small_integer:
        half = 1 << (dtype.bits - 1)
        low = array.astype(np.uint8) & (2 * half - 1)
        array = ((low ^ half).astype(np.int8) - half) if dtype.kind == "signed" else low
    return array.astype(dtype.numpy)[()]


def round_float(value: Value, dtype: DType) -> Value:
    """Floating values rounded once, to nearest even, to a floating type (also to those that numpy rounds twice)."""
    array = np.asarray(value)
    if array.dtype == np.float64 and dtype.bits < 32 and dtype != dtypes.float16:
        single = array.astype(np.float32)
        # Round to odd in between: the sticky last bit makes the second rounding the only one.
        back = single.astype(np.float64)
        inexact = (back != array) & np.isfinite(back)
        bits = single.view(np.uint32)
        outward = np.abs(back) > np.abs(array)
        odd = ((bits - outward.astype(np.uint32)) | np.uint32(1)).view(np.float32)
        array = np.where(inexact, odd, single)
    if array.dtype.itemsize == 1:  # the small types of ml_dtypes do not all know each other
        array = array.astype(np.float32)
    return array.astype(dtype.numpy)[()]


def _truncate(array: Value, target: DType) -> Value:
    low, high = dtypes.integer_range(target)
    wide = np.trunc(array.astype(np.float64))
    over, under, none = wide >= float(high) + (0.0 if high < 1 << 53 else 1.0), wide <= float(low), np.isnan(wide)
    whole = np.uint64 if target == dtypes.uint64 else np.int64
    inside = np.where(over | under | none, 0.0, wide).astype(whole)
    return np.where(over, whole(high), np.where(under, whole(low), inside))


def _sticky_integer(array: Value) -> Value:
    """Integers as float64, with the bits that float64 cannot hold gathered in one (round to odd)."""
    if array.dtype.itemsize < 8:
        return array.astype(np.float64)
    kind = array.dtype.type
    big = (array > kind(1 << 53)) | ((array < kind(-(1 << 53))) if array.dtype.kind == "i" else False)
    kept = (array & ~kind(2047)) | np.where(array & kind(2047), kind(2048), kind(0))
    return np.where(big, kept, array).astype(np.float64)


# -- fused multiply-add ------------------------------------------------------------------------------------------------
def _fused_narrow(a: Value, b: Value, c: Value) -> Value:
    """a * b + c of types up to 32 bits as a float64 rounded to odd, so that one more rounding is the only one."""
    x, y, z = (np.asarray(v).astype(np.float64) for v in (a, b, c))
    product = x * y  # exact: twice 24 bits
    total = product + z
    virtual = total - product
    error = (product - (total - virtual)) + (z - virtual)
    even = (np.ascontiguousarray(total).view(np.uint64) & np.uint64(1)).reshape(total.shape) == 0
    adjust = np.isfinite(total) & np.isfinite(error) & (error != 0) & even
    return np.where(adjust, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)[()]


def _fused_one(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        # an infinity or NaN: the product cannot overflow on its own unless a factor is infinite
        if math.isfinite(a) and math.isfinite(b):
            return c
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c)) if a == 0 or b == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _fused_float64(a: Value, b: Value, c: Value) -> Value:
    if np.ndim(a) == np.ndim(b) == np.ndim(c) == 0:
        return np.float64(_fused_one(float(a), float(b), float(c)))
    return np.vectorize(_fused_one, otypes=[np.float64])(a, b, c)


# -- integers ----------------------------------------------------------------------------------------------------------
def _integer_operation(function: str, dtype: DType, carrier: numpy.dtype[Any]) -> Operation:
    code = _INTEGER[function]
    width = dtype.bits
    mask = carrier.type((1 << width) - 1 if dtype.kind == "unsigned" else -1)

    def run(*arguments: Value) -> Value:
        values = [np.asarray(a).astype(carrier)[()] for a in arguments]
        return wrap(code(values, width, mask), dtype)

    return run


def _divide(values: list[Value], _width: int, _mask: Value) -> Value:
    a, b = values
    one = np.asarray(a).dtype.type(1)
    safe = np.where((b == 0) | (b == -one if a.dtype.kind == "i" else np.False_), one, b)
    quotient = np.floor_divide(a, safe)
    quotient = quotient + np.where((quotient * safe != a) & ((a < 0) != (safe < 0)), one, one - one)
    if a.dtype.kind == "i":
        quotient = np.where(b == -one, -a, quotient)
    return np.where(b == 0, one - one, quotient)


def _remainder(values: list[Value], width: int, mask: Value) -> Value:
    a, b = values
    return np.where(b == 0, a.dtype.type(0), a - _divide(values, width, mask) * b)


def _floor_remainder(values: list[Value], width: int, mask: Value) -> Value:
    rest = _remainder(values, width, mask)
    b = values[1]
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def _integer_power(values: list[Value], _width: int, _mask: Value) -> Value:
    base, exponent = (np.asarray(v) for v in values)
    kind = base.dtype.type
    total, factor, left = np.ones_like(base), base, np.where(exponent < 0, kind(0), exponent)
    while np.any(left):
        total = np.where(left & kind(1), total * factor, total)
        factor, left = factor * factor, left >> kind(1)
    # a negative power is a reciprocal, truncated: only 1 and -1 have one
    if base.dtype.kind == "i":
        unit = np.where(exponent & kind(1), base, kind(1))
        total = np.where(exponent < 0, np.where((base == 1) | (base == -1), unit, kind(0)), total)
    return total


def _shift(values: list[Value], width: int, mask: Value, direction: str) -> Value:
    a, b = values
    kind = np.asarray(a).dtype.type
    out = (b < 0) | (b >= width)
    step = np.where(out, kind(0), b)
    if direction == "arithmetic":
        unsigned = a.dtype.kind == "u"
        sign = (a >> kind(width - 1)) & kind(1) if unsigned else None
        if not unsigned:
            return np.where(out, np.where(a < 0, kind(-1), kind(0)), a >> step)
        filled = ~(mask >> step) & mask
        return np.where(out, np.where(sign, mask, kind(0)), np.where(sign, (a >> step) | filled, a >> step))
    if direction == "left":
        return np.where(out, kind(0), np.left_shift(a, step))
    unsigned_type = np.dtype(f"u{np.asarray(a).dtype.itemsize}")
    bits = np.asarray(a).astype(unsigned_type) & unsigned_type.type((1 << width) - 1)
    return np.where(out, unsigned_type.type(0), bits >> np.asarray(step).astype(unsigned_type))


def _population_count(values: list[Value], width: int, _mask: Value) -> Value:
    (a,) = values
    unsigned_type = np.dtype(f"u{np.asarray(a).dtype.itemsize}")
    return np.bitwise_count(np.asarray(a).astype(unsigned_type) & unsigned_type.type((1 << width) - 1))


_INTEGER: dict[str, Callable[[list[Value], int, Value], Value]] = {
    "add": lambda v, _w, _m: v[0] + v[1],
    "subtract": lambda v, _w, _m: v[0] - v[1],
    "multiply": lambda v, _w, _m: v[0] * v[1],
    "divide": _divide,
    "remainder": _remainder,
    "floor_remainder": _floor_remainder,
    "maximum": lambda v, _w, _m: np.maximum(v[0], v[1]),
    "minimum": lambda v, _w, _m: np.minimum(v[0], v[1]),
    "power": _integer_power,
    "negate": lambda v, _w, _m: np.asarray(v[0]).dtype.type(0) - v[0],
    "absolute": lambda v, _w, _m: np.where(v[0] < 0, np.asarray(v[0]).dtype.type(0) - v[0], v[0]),
    "sign": lambda v, _w, _m: np.sign(v[0]),
    "and": lambda v, _w, _m: v[0] & v[1],
    "or": lambda v, _w, _m: v[0] | v[1],
    "xor": lambda v, _w, _m: v[0] ^ v[1],
    "not": lambda v, _w, _m: ~v[0],
    "shift_left": lambda v, w, m: _shift(v, w, m, "left"),
    "shift_right_logical": lambda v, w, m: _shift(v, w, m, "logical"),
    "shift_right_arithmetic": lambda v, w, m: _shift(v, w, m, "arithmetic"),
    "population_count": _population_count,
}


# -- floating and complex ----------------------------------------------------------------------------------------------
def _maximum(a: Value, b: Value) -> Value:
    """NaN where either is; +0.0 is above -0.0."""
    larger = np.where(a == b, np.where(np.signbit(a), b, a), np.where(a > b, a, b))
    return np.where(a != a, a, np.where(b != b, b, larger))  # noqa: PLR0124 - true of NaN alone


def _minimum(a: Value, b: Value) -> Value:
    smaller = np.where(a == b, np.where(np.signbit(a), a, b), np.where(a < b, a, b))
    return np.where(a != a, a, np.where(b != b, b, smaller))  # noqa: PLR0124 - true of NaN alone


def _float_floor_remainder(a: Value, b: Value) -> Value:
    rest = np.fmod(a, b)
    moved = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return np.where(moved == 0, np.copysign(moved, b), moved)


def _elementwise(code: Callable[[float], float]) -> Operation:
    def one(x: float) -> float:
        return code(float(x))

    many = np.vectorize(one, otypes=[np.float64])

    def run(x: Value) -> Value:
        return many(x)[()] if np.size(x) else np.zeros(np.shape(x))

    return run


def _reciprocal_square_root(x: Value) -> Value:
    return 1 / np.sqrt(x)


def _sign(x: Value) -> Value:
    return np.where(x == 0, x, np.sign(x))  # a zero keeps its sign


def _logistic(x: Value) -> Value:
    small = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1 / (1 + small), np.where(x != x, x, small / (1 + small)))[()]  # noqa: PLR0124


_NATIVE: dict[str, Operation] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
_FLOAT: dict[str, Operation] = {
    **_NATIVE,
    "remainder": np.fmod,
    "floor_remainder": _float_floor_remainder,
    "maximum": _maximum,
    "minimum": _minimum,
    "negate": np.negative,
    "absolute": np.abs,
    "sign": _sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round_even": np.rint,
    "truncate": np.trunc,
    "square_root": np.sqrt,
    "copy_sign": np.copysign,
}
_TRANSCENDENTAL: dict[str, Operation] = {
    "power": np.float_power,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p,
    "tanh": np.tanh, "logistic": _logistic, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "erf": _elementwise(math.erf), "atan2": np.arctan2,
    "reciprocal_square_root": _reciprocal_square_root,
}  # fmt: skip
_BOOLEAN: dict[str, Operation] = {
    "maximum": np.logical_or, "minimum": np.logical_and, "and": np.logical_and, "or": np.logical_or,
    "xor": np.logical_xor, "not": np.logical_not,
}  # fmt: skip
_COMPARISONS: dict[str, Operation] = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
