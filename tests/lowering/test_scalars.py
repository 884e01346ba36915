# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
"""Every basic function and conversion, on every type, against the values that the loop program defines for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tests.lowering.nests import elementwise, together
from tilework import dtypes
from tilework.dtypes import DType, integer_range
from tilework.loops.expressions import Expression, bitcast, call, cast
from tilework.loops.functions import FUNCTIONS
from tilework.loops.program import LoopProgram
from tilework.loops.scalar_values import bitcast_value, cast_value, scalar_value

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
INTEGERS = tuple(d for d in dtypes.ALL if d.is_integer and d.bits >= 8)
TYPES = (dtypes.boolean, *INTEGERS, *FLOATS)
BASIC = [f for f in FUNCTIONS.values() if not f.transcendental and f.name != "select"]


def edges(dtype: DType, rng: np.random.Generator, count: int = 200) -> Any:
    """Values at the edges of a type, and random ones."""
    if dtype == dtypes.boolean:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_integer:
        low, high = integer_range(dtype)
        some = np.array([low, low + 1, high, high - 1, 0, 1, 2, 3, 7, *([-1, -2] if low else [])], dtype.numpy)
        wide = rng.integers(low, high, count // 2, dtype=dtype.numpy, endpoint=True)
        small = rng.integers(max(low, -9), 9, count - len(wide)).astype(dtype.numpy)
        return np.concatenate([some, wide, small])
    special = [
        0.0,
        -0.0,
        1,
        -1,
        0.5,
        1.5,
        2.5,
        -2.5,
        np.inf,
        -np.inf,
        np.nan,
        3e38,
        -3e38,
        1e-40,
        65504,
        1e-7,
        255.7,
        -129,
    ]
    with np.errstate(over="ignore"):
        return np.concatenate([special, rng.normal(size=count) * 10, rng.integers(-9, 9, count)]).astype(dtype.numpy)


def pairs(dtype: DType, count: int, rng: np.random.Generator) -> list[Any]:
    """Operands: edges against edges."""
    values = edges(dtype, rng, 60)
    grid = (
        np.meshgrid(*[values] * count, indexing="ij") if count <= 2 else [rng.permutation(values) for _ in range(count)]
    )
    return [np.ascontiguousarray(g.reshape(-1)) for g in grid]


def same(have: Any, want: Any, *, zeros: bool) -> None:
    assert have.dtype == want.dtype
    if have.dtype == dtypes.bfloat16.numpy:  # numpy does not see the NaNs of a foreign type
        have, want = have.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(have, want)
    if zeros and have.dtype.kind == "f":
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(have)[known], np.signbit(want)[known])


CASES = [
    (f.name, d)
    for f in BASIC
    for d in TYPES
    if d.kind in f.kinds and not (f.name == "fused_multiply_add" and d.bits == 64)
]


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
@pytest.mark.parametrize("lanes", [0, 8])
def test_function(name: str, lanes: int) -> None:
    rng = np.random.default_rng(len(name) + lanes)
    function = FUNCTIONS[name]
    programs: list[LoopProgram] = []
    arrays: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    for dtype in [d for other, d in CASES if other == name]:
        result = dtypes.boolean if function.rule in ("compare", "predicate") else dtype
        operands = pairs(dtype, function.arity, rng)
        tag = f".{dtype}"
        wanted["y" + tag] = np.asarray(scalar_value(name, dtype, *operands))
        programs.append(elementwise(lambda *x: call(name, *x), (dtype,) * function.arity, result, lanes, tag=tag))
        arrays |= {f"x{n}{tag}": x for n, x in enumerate(operands)}
        arrays["y" + tag] = np.zeros(len(operands[0]), result.numpy)
    have = Native(together(programs), "strict").run(arrays).arrays
    for buffer, want in wanted.items():
        same(have[buffer], want, zeros=True)


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_cast(source: DType) -> None:
    rng = np.random.default_rng(7)
    x = edges(source, rng)
    programs: list[LoopProgram] = []
    arrays: dict[str, Any] = {}
    for target in TYPES:
        tag = f".{target}"
        programs.append(elementwise(lambda a, t=target: cast(a, t), (source,), target, 16, tag=tag))
        arrays |= {f"x0{tag}": x, f"y{tag}": np.zeros(len(x), target.numpy)}
    have = Native(together(programs)).run(arrays).arrays
    for target in TYPES:
        same(have[f"y.{target}"], cast_value(x, source, target), zeros=True)


def test_cast_rounds_once() -> None:
    # Values that a rounding to float32 first would round twice.
    x = np.array([1 + 2**-11 + 2**-30, 1 + 2**-8 + 2**-40, -(1 + 2**-11 + 2**-40), 2049.0000001, 65519.999999, 65520.0])
    for target in (dtypes.float16, dtypes.bfloat16):
        program = elementwise(lambda a, t=target: cast(a, t), (dtypes.float64,), target, 4)
        have = Native(program).run({"x0": x, "y": np.zeros(len(x), target.numpy)}).arrays["y"]
        np.testing.assert_array_equal(have, cast_value(x, dtypes.float64, target))
    big = np.array([(1 << 60) + (1 << 52) + 1, (1 << 60) + (1 << 52), -(1 << 60) - (1 << 52) - 1, 2**63 - 1])
    program = elementwise(lambda a: cast(a, dtypes.bfloat16), (dtypes.int64,), dtypes.bfloat16, 4)
    have = Native(program).run({"x0": big, "y": np.zeros(len(big), dtypes.bfloat16.numpy)}).arrays["y"]
    np.testing.assert_array_equal(have, cast_value(big, dtypes.int64, dtypes.bfloat16))


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_bitcast(source: DType) -> None:
    rng = np.random.default_rng(8)
    x = edges(source, rng)
    if source.is_floating:
        x = x[~np.isnan(x.astype(np.float64))]
    for target in TYPES:
        if target.bits != source.bits or target == source:
            continue
        program = elementwise(lambda a, t=target: bitcast(a, t), (source,), target, 8)
        have = Native(program).run({"x0": x, "y": np.zeros(len(x), target.numpy)}).arrays["y"]
        same(have, bitcast_value(x, source, target), zeros=False)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_select(dtype: DType) -> None:
    rng = np.random.default_rng(9)
    a, b = edges(dtype, rng), edges(dtype, rng)
    c = rng.integers(0, 2, len(a)).astype(bool)
    for lanes in (0, 16):
        program = elementwise(lambda x, y, z: call("select", x, y, z), (dtypes.boolean, dtype, dtype), dtype, lanes)
        have = Native(program).run({"x0": c, "x1": a, "x2": b, "y": np.zeros_like(a)}).arrays["y"]
        same(have, np.where(c, a, b), zeros=True)


def test_contraction_is_a_choice() -> None:
    # (1 + e)^2 - (1 + 2 e) is e^2 with one rounding, 0 with two.
    x = y = np.full(8, 1 + 2.0**-12, np.float32)

    def value(a: Expression, b: Expression) -> Expression:
        return a * b - (1 + 2.0**-11)

    program = elementwise(value, (dtypes.float32, dtypes.float32), dtypes.float32, 8)
    arrays = {"x0": x, "x1": y, "y": np.zeros(8, np.float32)}
    assert (Native(program, "default").run(arrays).arrays["y"] == 2.0**-24).all()
    assert (Native(program, "strict").run(arrays).arrays["y"] == 0).all()


def test_small_floats_round_each_operation_only_when_strict() -> None:
    # 2048 + 1 is no float16: rounded after the sum it is 2048, and the difference 0.
    x = np.full(8, 2048, np.float16)

    def value(a: Expression) -> Expression:
        return (a + 1.0) - a

    program = elementwise(value, (dtypes.float16,), dtypes.float16, 8)
    arrays = {"x0": x, "y": np.zeros(8, np.float16)}
    assert (Native(program, "default").run(arrays).arrays["y"] == 1).all()
    assert (Native(program, "strict").run(arrays).arrays["y"] == 0).all()
