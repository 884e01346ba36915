"""Every elementwise operator: definition against numpy on every element type it takes, edge values included."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.ops.checking import check, counted, faults, interpreted, reference, same
from tilework import dtypes
from tilework.dims import dim
from tilework.dtypes import DType
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, TokenType, tensor
from tilework.loops.expressions import Expression, call
from tilework.ops.elementwise._base import Elementwise
from tilework.ops.operator import Array, TypeFaults
from tilework.ops.registry import operator
from tilework.variants import list_variants

NAMES = [name.removesuffix("_") for name in list_variants("tilework.ops.elementwise")]
SPECIAL = {"compare", "select", "clamp", "convert", "bitcast_convert"}
PLAIN = [name for name in NAMES if name not in SPECIAL]
MOST = 2**64 - 1


def arity(name: str) -> int:
    found = operator(name)
    assert isinstance(found, Elementwise)
    return found.arity


def takes(name: str, dtype: DType) -> bool:
    try:
        operator(name).infer([tensor(dtype, 2)] * arity(name), {})
    except TypeFaults:
        return False
    return True


def edges(dtype: DType) -> Array:
    """Values where things go wrong."""
    if dtype.kind == "boolean":
        return np.array([False, True])
    if dtype.is_integer:
        low, high = dtypes.integer_range(dtype)
        numbers = {low, low + 1, 0, 1, 2, 3, 5, 7, high - 1, high, high // 3, *({-1, -2, -3, -7} if low else ())}
        if dtype.kind == "unsigned":
            return np.array(sorted(numbers), np.uint64).astype(dtype.numpy)
        return np.array(sorted(numbers), np.int64).astype(dtype.numpy)
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, 1e-3, 30.0, -30.0, 100.0, -1000.0]
    numbers += [math.inf, -math.inf, math.nan]
    if dtype.name in ("float16", "float32", "float64"):
        about = np.finfo(dtype.name)
        numbers += [about.smallest_subnormal, -about.smallest_subnormal, about.tiny, about.max, -about.max, about.eps]
        numbers += [about.tiny / 2, 1 + about.eps]
    real: Array = np.array(numbers, np.float64)
    if dtype.kind == "complex":
        return (real[:12] + 1j * real[1:13]).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        return real.astype(dtype.numpy)


def precision(dtype: DType) -> float:
    widths = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e5m2": 2}
    return 4 * 2.0 ** -widths.get(dtype.name, 52 if dtype.name == "complex128" else 23)


def pairs(x: Array) -> list[Array]:
    return [np.repeat(x, x.size), np.tile(x, x.size)]


CASES = [(name, dtype) for name in PLAIN for dtype in dtypes.ALL if "fnuz" not in dtype.name and takes(name, dtype)]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_definition_and_numpy_agree_on_edge_values(name: str, dtype: DType) -> None:
    x = edges(dtype)
    operands = [x] if arity(name) == 1 else pairs(x)
    wanted = reference(name, operands)
    found = interpreted(name, operands)
    exact = dtype.is_integer or dtype.kind == "boolean"
    if dtype.kind == "complex":
        np.testing.assert_allclose(found, wanted, rtol=precision(dtype))
    else:
        same(found, wanted, 0.0 if exact else precision(dtype))
    if wanted.dtype == dtype.numpy and dtype.is_floating:
        numbers = ~np.isnan(wanted.astype(np.float64))
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 0, 3), (1, 5, 1), (3, 2)])
def test_shapes_and_symbols(name: str, shape: tuple[int, ...]) -> None:
    dtype = next(d for d in (dtypes.float64, dtypes.int32, dtypes.boolean) if takes(name, d))
    generator = np.random.default_rng(len(name) + len(shape))
    operands = [np.asarray(generator.uniform(-2, 2, shape)).astype(dtype.numpy) for _ in range(arity(name))]
    symbols = [f"n{place}" for place in range(len(shape))]
    check(name, operands, [symbols] * len(operands), precision(dtype) if dtype.is_floating else 0.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (4,)), ((1,), (0,)), ((5, 1, 2), (3, 1)), ((1, 1), (1,))],
)
def test_broadcasting(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    generator = np.random.default_rng(5)
    x, y = (generator.integers(-9, 9, s).astype(np.float32) for s in (first, second))
    shapes = [[f"n{len(s) - k}" if d != 1 else 1 for k, d in enumerate(s)] for s in (first, second)]
    found = check("subtract", [x, y], shapes)
    np.testing.assert_array_equal(found, x - y)


ONE: dict[str, Callable[[float], float]] = {
    "exponential": math.exp, "exponential_minus_one": math.expm1, "log": math.log, "log_plus_one": math.log1p,
    "tanh": math.tanh, "sine": math.sin, "cosine": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh, "asinh": math.asinh, "erf": math.erf, "atanh": math.atanh,
    "acosh": lambda x: math.acosh(1 + x), "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "floor": math.floor,
    "ceil": math.ceil, "truncate": math.trunc, "round_nearest_even": round, "negate": lambda x: -x, "abs": math.fabs,
    "logistic": lambda x: 1 / (1 + math.exp(-x)), "sign": lambda x: (x > 0) - (x < 0),
    "is_nan": math.isnan, "is_inf": math.isinf,
}  # fmt: skip
TWO: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y, "remainder": math.fmod, "floor_remainder": lambda x, y: x % y,
    "maximum": lambda x, y: max(y, x), "minimum": lambda x, y: min(y, x), "power": math.pow,
    "atan2": math.atan2,
}  # fmt: skip


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_values_are_those_of_the_python_functions(name: str) -> None:
    generator = np.random.default_rng(len(name))
    x, y = generator.uniform(0.01, 0.99, 50), generator.uniform(0.01, 0.99, 50)
    if name in ONE:
        found = reference(name, [1 + x if name == "acosh" else x])
        wanted = [ONE[name](float(a)) for a in x]
    else:
        found = reference(name, [x, y])
        wanted = [TWO[name](float(a), float(b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=1e-14)


def test_every_elementwise_operator_has_a_test_of_its_values() -> None:
    bitwise = {
        "and",
        "or",
        "xor",
        "not",
        "population_count",
        "shift_left",
        "shift_right_logical",
        "shift_right_arithmetic",
    }
    assert set(NAMES) == set(ONE) | set(TWO) | SPECIAL | bitwise


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.is_integer], ids=str)
def test_integers_wrap_and_never_trap(dtype: DType) -> None:
    low, high = dtypes.integer_range(dtype)
    x, y = pairs(edges(dtype))
    numbers = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]

    def wrapped(value: int) -> int:
        return (value - low) % (high - low + 1) + low

    def shift(a: int, b: int, code: Callable[[int, int], int], beyond: int) -> int:
        return code(a, b) if 0 <= b < dtype.bits else beyond

    def pattern(a: int) -> int:
        return a % 2**dtype.bits

    def signed(a: int) -> int:
        return (a + 2 ** (dtype.bits - 1)) % 2**dtype.bits - 2 ** (dtype.bits - 1)

    def power(a: int, b: int) -> int:
        if b < 0:
            return (a if b % 2 else 1) if a in (1, -1) else 0
        modulus: int = 2**dtype.bits
        return pow(a, b, modulus)

    expected: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "remainder": lambda a, b: 0 if b == 0 else (abs(a) % abs(b)) * (-1 if a < 0 else 1),
        "floor_remainder": lambda a, b: 0 if b == 0 else a % b,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "shift_left": lambda a, b: shift(a, b, lambda p, q: p << q, 0),
        "shift_right_logical": lambda a, b: shift(pattern(a), b, lambda p, q: p >> q, 0),
        "shift_right_arithmetic": lambda a, b: shift(signed(a), b, lambda p, q: p >> q, -1 if signed(a) < 0 else 0),
        "power": power,
    }  # fmt: skip
    for name, code in expected.items():
        wanted = [wrapped(code(a, b)) for a, b in numbers]
        assert [int(v) for v in reference(name, [x, y])] == wanted, name
    assert [int(v) for v in reference("population_count", [x])] == [wrapped(pattern(a).bit_count()) for a, _ in numbers]
    assert [int(v) for v in reference("not", [x])] == [wrapped(~a) for a, _ in numbers]


def test_signed_zeros_survive() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    for name in ("negate", "sign", "floor", "sqrt", "sine", "exponential_minus_one", "tanh", "truncate"):
        np.testing.assert_array_equal(
            np.signbit(reference(name, [zeros])), np.signbit(interpreted(name, [zeros])), name
        )
    assert list(np.signbit(reference("negate", [zeros]))) == [True, False]
    assert list(np.signbit(reference("abs", [zeros]))) == [False, False]


# -- those with attributes or mixed operands ---------------------------------------------------------------------------
@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
@pytest.mark.parametrize(
    "dtype", [dtypes.float32, dtypes.int64, dtypes.uint64, dtypes.boolean, dtypes.bfloat16], ids=str
)
def test_compare(direction: str, dtype: DType) -> None:
    found = check("compare", pairs(edges(dtype)), direction=direction)
    assert found.dtype == np.bool_
    if dtype == dtypes.float32:
        few = np.array([np.nan, 1], np.float32)
        with_nan = reference("compare", [few, few], direction=direction)
        assert list(with_nan) == [direction == "NE", direction in ("EQ", "LE", "GE")]


def test_select_and_clamp() -> None:
    generator = np.random.default_rng(1)
    predicate = generator.integers(0, 2, (3, 1)).astype(np.bool_)
    both = generator.integers(-9, 9, (2, 3, 4)).astype(np.int32)
    x: Array = both[0]
    y: Array = both[1]
    found = check("select", [predicate, x, y], [("n", 1), ("n", "m"), ("n", "m")])
    np.testing.assert_array_equal(found, np.where(predicate, x, y))
    low, high = np.array(-1, np.float32), np.array(2, np.float32)
    values = np.array([-5, -1, 0, 2, 7, np.inf, -np.inf, np.nan], np.float32)
    found = check("clamp", [low, values, high], [(), ("n",), ()])
    np.testing.assert_array_equal(found, np.array([-1, -1, 0, 2, 2, 2, -1, np.nan], np.float32))
    assert reference("clamp", [np.array(5, np.int8), np.array([0], np.int8), np.array(3, np.int8)]) == [3]
    assert faults("select", [tensor(dtypes.int32, 2), tensor(dtypes.int32, 2), tensor(dtypes.int64, 3)]) == [
        1222,
        1222,
        1223,
    ]


@pytest.mark.parametrize("target", dtypes.ALL, ids=str)
@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
def test_convert(source: DType, target: DType) -> None:
    x = edges(source)
    wanted = reference("convert", [x], dtype=target)
    found = interpreted("convert", [x], dtype=target)
    if target.kind == "complex":
        np.testing.assert_array_equal(found, wanted)
    else:
        same(found, wanted)


def test_convert_saturates_and_truncates() -> None:
    x = np.array([-1e20, -129, -1.7, -0.0, 1.7, 300, 1e20, np.nan, np.inf, -np.inf], np.float32)
    assert reference("convert", [x], dtype=dtypes.int8).tolist() == [-128, -128, -1, 0, 1, 127, 127, 0, 127, -128]
    assert reference("convert", [x], dtype=dtypes.uint64).tolist() == [0, 0, 0, 0, 1, 300, MOST, 0, MOST, 0]
    assert reference("convert", [np.array([-1, 256, 300], np.int64)], dtype=dtypes.uint8).tolist() == [255, 0, 44]
    assert reference("convert", [np.array([2**53 + 2.0, 1 + 2**-24], np.float64)], dtype=dtypes.float32).tolist() == [
        2.0**53,
        1.0,
    ]
    assert reference("convert", [np.array([np.nan, 0.5, -0.0], np.float32)], dtype=dtypes.boolean).tolist() == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (a, b)
        for a in dtypes.ALL
        for b in dtypes.ALL
        if a.bits == b.bits and not {a.kind, b.kind} & {"boolean", "complex"}
    ],
    ids=str,
)
def test_bitcast(source: DType, target: DType) -> None:
    x = edges(source)
    wanted = reference("bitcast_convert", [x], dtype=target)
    np.testing.assert_array_equal(_bits(interpreted("bitcast_convert", [x], dtype=target)), _bits(wanted))
    if source.bits > 4:
        np.testing.assert_array_equal(_bits(wanted), _bits(x))
    assert operator("bitcast_convert").view


def _bits(array: Array) -> Array:
    return np.frombuffer(array.tobytes(), np.uint8)


# -- type rules --------------------------------------------------------------------------------------------------------
def test_faults_are_found_all_at_once() -> None:
    f32, i32 = tensor(dtypes.float32, 2, 3), tensor(dtypes.int32, 4)
    assert faults("add", [f32]) == [1220]
    assert faults("add", [f32, TokenType()]) == [1221]
    assert faults("add", [f32, i32]) == [1222, 1223]
    assert faults("add", [f32, i32], axis=1) == [1222, 1223, 1224]
    assert faults("tanh", [i32]) == [1222]
    assert faults("and", [f32, f32]) == [1222, 1222]
    assert faults("compare", [f32, i32], direction="BELOW") == [1225, 1222, 1223]
    assert faults("compare", [f32, f32]) == [1224]
    assert faults("convert", [f32], dtype="float32") == [1224]
    assert faults("bitcast_convert", [f32], dtype=dtypes.int64) == [1225]
    assert faults("not", [f32]) == [1222]


def test_two_symbols_are_two_dimensions() -> None:
    with pytest.raises(TypeFaults, match="same expression or literally 1"):
        operator("add").infer([tensor(dtypes.float32, "N"), tensor(dtypes.float32, "M")], {})
    with pytest.raises(TypeFaults, match="N and 4 differ"):
        operator("add").infer([tensor(dtypes.float32, "N"), tensor(dtypes.float32, 4)], {})
    joined = operator("add").infer([tensor(dtypes.float32, 1, dim("N") * 2), tensor(dtypes.float32, "M", 1)], {})
    assert joined == (tensor(dtypes.float32, "M", dim("N") * 2),)


def test_counts() -> None:
    x = tensor(dtypes.float32, "N", 4)
    found = counted("add", [x, tensor(dtypes.float32, 4)])
    assert found.flops == dim("N") * 4
    assert found.bytes == dim("N") * 32 + 16
    assert counted("exponential", [x]).flops == dim("N") * 64


# -- a checker that never caught anything is no checker ----------------------------------------------------------------
class _Planted(Elementwise):
    """x + y by its reference, x - y by its definition."""

    name = "add"
    function = "add"
    arity = 2

    def scalar(self, operands: Sequence[Expression], attributes: Mapping[str, Attribute]) -> Expression:
        return call("subtract", *operands)

    def values(self, *operands: Array) -> Array:
        return operands[0] + operands[1]


def test_a_planted_wrong_definition_is_caught() -> None:
    x = np.array([1, 2, 3], np.float32)
    kinds = [TensorType((dim(3),), dtypes.float32)]
    (wanted,) = _Planted().reference([x, x], {}, kinds)
    with pytest.raises(AssertionError):
        same(interpreted(_Planted(), [x, x]), wanted)


def test_a_planted_wrong_scalar_function_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilework.loops import scalar_values

    x = edges(dtypes.float32)
    check("round_nearest_even", [x])

    def half_up(value: Any) -> Any:
        return np.trunc(value + 0.5)

    table: dict[str, Any] = {**scalar_values._FLOAT, "round_even": half_up}
    monkeypatch.setattr(scalar_values, "_FLOAT", table)
    with pytest.raises(AssertionError):
        check("round_nearest_even", [x])
