"""Every scalar function against an independent calculation, on every type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tilework import dtypes
from tilework.dtypes import DType
from tilework.errors import LoopProgramError, UsageError
from tilework.loops.functions import FUNCTIONS
from tilework.loops.scalar_values import bitcast_value, cast_value, round_float, scalar_value

INTEGERS = [d for d in dtypes.ALL if d.is_integer]
FLOATS = [d for d in dtypes.ALL if d.is_floating]


def wrapped(value: int, dtype: DType) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "signed" and value >> (dtype.bits - 1) else value


def some_integers(dtype: DType) -> list[int]:
    low, high = dtypes.integer_range(dtype)
    return sorted({v for v in (low, low + 1, -1, 0, 1, 2, 3, 5, 7, dtype.bits - 1, high - 1, high) if low <= v <= high})


def integer_oracle(function: str, a: int, b: int, dtype: DType) -> int:
    unsigned = a & ((1 << dtype.bits) - 1)
    out = not 0 <= b < dtype.bits
    quotient = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    match function:
        case "add":
            found = a + b
        case "subtract":
            found = a - b
        case "multiply":
            found = a * b
        case "divide":
            found = quotient
        case "remainder":
            found = 0 if b == 0 else a - quotient * b
        case "floor_remainder":
            found = 0 if b == 0 else a % b
        case "maximum":
            found = max(a, b)
        case "minimum":
            found = min(a, b)
        case "power":
            found = pow(a, b, 1 << dtype.bits) if b >= 0 else (0 if abs(a) != 1 else a if b % 2 else 1)
        case "and":
            found = a & b
        case "or":
            found = a | b
        case "xor":
            found = a ^ b
        case "shift_left":
            found = 0 if out else a << b
        case "shift_right_logical":
            found = 0 if out else unsigned >> b
        case _:
            signed = unsigned - (1 << dtype.bits) if unsigned >> (dtype.bits - 1) else unsigned
            found = (-1 if signed < 0 else 0) if out else signed >> b
    return wrapped(found, dtype)


TWO = (
    "add", "subtract", "multiply", "divide", "remainder", "floor_remainder", "maximum", "minimum", "power", "and", "or",
    "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic",
)  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("function", TWO)
def test_integers_of_two(function: str, dtype: DType) -> None:
    values = some_integers(dtype)
    a = np.array([x for x in values for _ in values], dtype=object)
    b = np.array([y for _ in values for y in values], dtype=object)
    found = scalar_value(function, dtype, a.astype(dtype.numpy), b.astype(dtype.numpy))
    expected = [integer_oracle(function, int(x), int(y), dtype) for x, y in zip(a, b, strict=True)]
    assert [int(v) for v in found] == expected
    one = scalar_value(function, dtype, int(a[3]), int(b[3]))
    assert int(one) == expected[3]
    assert one.shape == ()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_of_one(dtype: DType) -> None:
    values = some_integers(dtype)
    array = np.array(values, dtype=object).astype(dtype.numpy)

    def ones(v: int) -> int:
        return (v & ((1 << dtype.bits) - 1)).bit_count()

    def sign(v: int) -> int:
        return (v > 0) - (v < 0)

    oracles: dict[str, Callable[[int], int]] = {
        "negate": operator.neg,
        "absolute": abs,
        "sign": sign,
        "not": operator.invert,
        "population_count": ones,
    }
    for function, oracle in oracles.items():
        assert [int(v) for v in scalar_value(function, dtype, array)] == [wrapped(oracle(v), dtype) for v in values]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_maximum_and_minimum(dtype: DType) -> None:
    has_negative_zero = not dtype.name.endswith(("fnuz", "fnu"))
    one, two, none = 1.0, 2.0, math.nan
    assert float(scalar_value("maximum", dtype, one, two)) == 2
    assert float(scalar_value("minimum", dtype, one, two)) == 1
    for pair in ((one, none), (none, one)) if dtype != dtypes.float4_e2m1fn else ():  # which has no NaN
        assert math.isnan(float(scalar_value("maximum", dtype, *pair)))
        assert math.isnan(float(scalar_value("minimum", dtype, *pair)))
    if has_negative_zero:
        for pair in ((0.0, -0.0), (-0.0, 0.0)):
            assert math.copysign(1, float(scalar_value("maximum", dtype, *pair))) == 1
            assert math.copysign(1, float(scalar_value("minimum", dtype, *pair))) == -1


def test_fused_multiply_add_rounds_once() -> None:
    random = np.random.default_rng(5)
    for dtype, digits in ((dtypes.float32, 24), (dtypes.float64, 53), (dtypes.float16, 11), (dtypes.bfloat16, 8)):
        a, b = (round_float(random.standard_normal(200), dtype) for _ in range(2))
        product = a.astype(np.float64) * b.astype(np.float64)
        # cancellation, and sums that sit next to the middle between two values
        tiny = np.exp2(-digits - random.integers(0, 40, 200))
        c = round_float(np.where(random.integers(2, size=200) == 1, -product, tiny), dtype)
        found = scalar_value("fused_multiply_add", dtype, a, b, c)
        for x, y, z, value in zip(a, b, c, found, strict=True):
            exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            assert abs(exact - Fraction(float(value))) <= nearest_error(exact, dtype)


def nearest_error(exact: Fraction, dtype: DType) -> Fraction:
    """The distance to the nearest value of the type."""
    near = round_float(np.float64(float(exact)), dtype)
    candidates = [near, np.nextafter(near, near + near.dtype.type(1)), np.nextafter(near, near - near.dtype.type(1))]
    return min(abs(exact - Fraction(float(c))) for c in candidates)


def test_fused_multiply_add_of_special_values() -> None:
    for dtype in (dtypes.float32, dtypes.float64):
        fused = partial(scalar_value, "fused_multiply_add", dtype)
        assert math.isnan(fused(math.inf, 0.0, 1.0))
        assert fused(2.0, 3.0, -math.inf) == -math.inf
        assert math.copysign(1, fused(-0.0, 1.0, -0.0)) == -1
        assert fused(1.0, 1.0, -1.0) == 0


def test_bfloat16_is_rounded_once_from_float64() -> None:
    value = 1 + 2**-8 + 2**-40  # a tie in float32's eyes, above it in truth
    assert float(round_float(np.float64(value), dtypes.bfloat16)) == 1.0078125
    assert float(round_float(np.float64(1 + 2**-8), dtypes.bfloat16)) == 1.0
    assert float(round_float(np.float64(-value), dtypes.bfloat16)) == -1.0078125
    large = (1 << 60) + (1 << 52) + 1
    assert float(cast_value(np.int64(large), dtypes.int64, dtypes.bfloat16)) == float((1 << 60) + (1 << 53))


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floating_to_integer_truncates_and_saturates(source: DType, target: DType) -> None:
    low, high = dtypes.integer_range(target)
    values = round_float(np.array([0.0, 1.5, -1.5, 2.75, 7.5, 100.0, -100.0, 6e4, -6e4, math.nan]), source)
    for value in values:
        number = float(value)
        expected = (
            0 if math.isnan(number) else max(low, min(high, math.trunc(number))) if math.isfinite(number) else None
        )
        found = int(cast_value(value, source, target))
        assert found == (expected if expected is not None else (high if number > 0 else low))
    for limit, expected in ((math.inf, high), (-math.inf, low)):
        if source.name in ("float32", "float64", "float16", "bfloat16"):
            assert int(cast_value(np.asarray(limit).astype(source.numpy), source, target)) == expected


def test_large_floats_saturate_exactly_at_the_ends() -> None:
    for value, expected in ((2.0**63, 2**63 - 1), (-(2.0**63), -(2**63)), (2.0**62, 2**62), (-(2.0**64), -(2**63))):
        assert int(cast_value(np.float64(value), dtypes.float64, dtypes.int64)) == expected
    assert int(cast_value(np.float64(2.0**64), dtypes.float64, dtypes.uint64)) == 2**64 - 1
    assert int(cast_value(np.float64(2.0**63), dtypes.float64, dtypes.uint64)) == 2**63
    assert int(cast_value(np.float64(2147483647.5), dtypes.float64, dtypes.int32)) == 2**31 - 1


@pytest.mark.parametrize("target", dtypes.ALL, ids=str)
@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_casts_give_the_type_and_keep_small_integers(source: DType, target: DType) -> None:
    small = min(source.bits, target.bits) < 8
    numbers = [0, 1] if "boolean" in (source.kind, target.kind) or small else [0, 1, 2, 5, 7]
    if dtypes.float8_e8m0fnu in (source, target):
        numbers = [1, 1]  # powers of two alone
    values = np.array(numbers, np.int8).astype(np.float32 if source.is_floating else np.int8).astype(source.numpy)
    found = cast_value(values, source, target)
    assert found.dtype == target.numpy
    assert [complex(v) for v in found] == [complex(v) for v in values]
    assert cast_value(values[1], source, target).dtype == target.numpy


@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_bitcast_keeps_the_bits(source: DType) -> None:
    for target in dtypes.ALL:
        if target.bits != source.bits or "boolean" in (source.kind, target.kind):
            continue
        values = np.arange(2 if source.bits < 8 else 5, dtype=np.float32).astype(source.numpy)
        back = bitcast_value(bitcast_value(values, source, target), target, source)
        np.testing.assert_array_equal(back.astype(np.complex128), values.astype(np.complex128))
    if source == dtypes.float32:
        assert int(bitcast_value(np.float32(1), source, dtypes.int32)) == 0x3F800000


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits >= 16], ids=str)
def test_transcendental_functions_are_close(dtype: DType) -> None:
    random = np.random.default_rng(2)
    step = {"float64": 2.0**-50, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype.name]
    oracles: dict[str, Callable[[float], float]] = {
        "exp": math.exp, "exp2": lambda v: 2.0**v, "expm1": math.expm1, "tanh": math.tanh, "sin": math.sin,
        "cos": math.cos, "erf": math.erf, "sinh": math.sinh, "asinh": math.asinh, "atan": math.atan,
        "logistic": lambda v: 1 / (1 + math.exp(-v)), "tan": math.tan, "cosh": math.cosh,
    }  # fmt: skip
    values = round_float(random.uniform(-1.2, 1.2, 50), dtype)
    for function, oracle in oracles.items():
        expected = np.array([oracle(float(v)) for v in values])
        np.testing.assert_allclose(scalar_value(function, dtype, values).astype(np.float64), expected, rtol=2 * step)
    positive = np.abs(values) + values.dtype.type(0.5)
    for function, oracle in (("log", math.log), ("log2", math.log2), ("log1p", math.log1p)):
        expected = np.array([oracle(float(v)) for v in positive])
        found = scalar_value(function, dtype, positive).astype(np.float64)
        np.testing.assert_allclose(found, expected, rtol=2 * step, atol=step)
    found = scalar_value("reciprocal_square_root", dtype, positive).astype(np.float64)
    np.testing.assert_allclose(found, [1 / math.sqrt(float(v)) for v in positive], rtol=2 * step)
    assert float(scalar_value("logistic", dtype, -math.inf)) == 0
    assert math.isnan(float(scalar_value("logistic", dtype, math.nan)))


def test_remainders_of_floats() -> None:
    for a, b in ((5.5, 2.0), (-5.5, 2.0), (5.5, -2.0), (-5.5, -2.0), (4.0, -2.0)):
        assert float(scalar_value("remainder", dtypes.float32, a, b)) == math.fmod(a, b)
        assert float(scalar_value("floor_remainder", dtypes.float32, a, b)) == a % b
    assert math.copysign(1, float(scalar_value("floor_remainder", dtypes.float64, 4.0, -2.0))) == -1
    assert math.isnan(float(scalar_value("remainder", dtypes.float32, 1.0, 0.0)))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_takes_its_types_empty_and_broadcast(name: str) -> None:
    function = FUNCTIONS[name]
    for dtype in dtypes.ALL:
        operands = [np.ones((2, 1)).astype(dtype.numpy)] + [np.ones(3).astype(dtype.numpy)] * (function.arity - 1)
        if function.rule == "select":
            operands[0] = operands[0].astype(bool)
        if dtype.kind not in function.kinds and function.rule != "select":
            with pytest.raises(LoopProgramError):
                scalar_value(name, dtype, *operands)
            continue
        found = scalar_value(name, dtype, *operands)
        assert found.shape == ((2, 1) if function.arity == 1 else (2, 3))
        assert found.dtype == (np.bool_ if function.rule in ("compare", "predicate") else dtype.numpy)
        empty = [operand[:0] for operand in operands]
        assert scalar_value(name, dtype, *empty).size == 0


def test_unknown_functions_and_wrong_counts_are_refused() -> None:
    with pytest.raises(UsageError) as unknown:
        scalar_value("square", dtypes.float32, 1.0)
    assert unknown.value.code == 1001
    with pytest.raises(LoopProgramError):
        scalar_value("add", dtypes.float32, 1.0)
