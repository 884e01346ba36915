# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
"""Transcendental functions: errors in units in the last place against extended precision, and every special value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tests.lowering.nests import elementwise
from tilework import dtypes
from tilework.dtypes import DType
from tilework.loops.expressions import Expression, call
from tilework.loops.functions import FUNCTIONS
from tilework.loops.scalar_values import scalar_value
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine

Wide = np.longdouble


def _logistic(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def _erf(x: Any) -> Any:
    return np.array([math.erf(float(v)) for v in x], Wide)


REFERENCE: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p,
    "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "erf": _erf,
    "logistic": _logistic, "reciprocal_square_root": lambda x: 1 / np.sqrt(x), "power": np.power, "atan2": np.arctan2,
}  # fmt: skip
# Bounds that the docstrings of `lowering.mathematics` state.
BOUND = {
    "exp": 1.0, "exp2": 1.0, "expm1": 2.0, "log": 1.0, "log2": 2.0, "log1p": 2.0, "tanh": 2.5, "sinh": 2.5, "cosh": 2.0,
    "asinh": 3.0, "acosh": 3.0, "atanh": 3.0, "sin": 1.5, "cos": 1.5, "tan": 3.0, "asin": 2.5, "acos": 2.0, "atan": 2.0,
    "erf": 2.0, "logistic": 3.0, "reciprocal_square_root": 1.5, "power": 1.0, "atan2": 2.0,
}  # fmt: skip
SPAN = {
    "exp": (110, 760), "expm1": (90, 715), "exp2": (155, 1080), "sinh": (92, 712), "cosh": (92, 712), "tanh": (12, 25),
    "logistic": (110, 760), "erf": (4.5, 6.5), "asin": (1, 1), "acos": (1, 1), "atanh": (1, 1), "sin": (3000, 3000),
    "cos": (3000, 3000), "tan": (3000, 3000),
}  # fmt: skip


def test_every_function_has_a_bound() -> None:
    assert set(BOUND) == set(REFERENCE) == {f.name for f in FUNCTIONS.values() if f.transcendental}


def inputs(name: str, dtype: DType, rng: np.random.Generator, count: int = 6000) -> Any:
    """Random bits, the interesting range, around 0, and special values."""
    kind: Any = dtype.numpy.type
    bits: Any = np.uint32 if dtype.bits == 32 else np.uint64
    info = np.finfo(kind)
    span = SPAN.get(name, (100, 100))[dtype.bits == 64]
    special = [
        0, -0.0, 1, -1, 0.5, -0.5, np.inf, -np.inf, np.nan, 2, -2, info.max, info.min, info.tiny, -info.tiny,
        info.smallest_subnormal, -info.smallest_subnormal, 3, -3, 1e-3, 88.7, -88.7, 0.1, 2.0**15, 2.0**29, 1e22,
        np.pi, np.pi / 2, np.nextafter(kind(1), kind(2)), np.nextafter(kind(1), kind(0)),
    ]  # fmt: skip
    return np.concatenate(
        [
            rng.integers(0, int(np.iinfo(bits).max), count, dtype=bits, endpoint=True).view(kind),
            (rng.uniform(-1, 1, count) * span).astype(kind),
            rng.uniform(-2, 2, count).astype(kind),
            np.array(special, kind),
        ]
    )


def errors(have: Any, exact: Any, dtype: DType) -> tuple[Any, Any]:
    """Errors in units in the last place of finite results, and where special results differ."""
    kind: Any = dtype.numpy.type
    want = exact.astype(kind)
    special = ~np.isfinite(want) | ~np.isfinite(have)
    unit = np.maximum(np.spacing(np.abs(want)), np.finfo(kind).smallest_subnormal)
    error = np.where(special, 0, np.abs((have.astype(Wide) - exact) / unit.astype(Wide)))
    wrong = special & ~((have == want) | (np.isnan(have) & np.isnan(want)))
    signs = (np.signbit(have) != np.signbit(want)) & ~np.isnan(want)
    return error, wrong | signs


def check(
    name: str,
    dtype: DType,
    operands: list[Any],
    lanes: int,
    level: str = "default",
    on: CpuMachine | None = None,
    bound: float | None = None,
) -> None:
    program = elementwise(lambda *x: call(name, *x), (dtype,) * len(operands), dtype, lanes)
    arrays = {f"x{n}": x for n, x in enumerate(operands)} | {"y": np.zeros_like(operands[0])}
    have = Native(program, level, on=on).run(arrays).arrays["y"]
    with np.errstate(all="ignore"):
        exact = REFERENCE[name](*(x.astype(Wide) for x in operands))
        error, wrong = errors(have, exact, dtype)
    assert not wrong.any(), [(x[wrong][:5], have[wrong][:5]) for x in operands]
    # math.erf itself is good to about one unit
    slack = 1.0 if name == "erf" and dtype.bits == 64 else 0.0
    over = error - slack - (bound if bound is not None else bounds(name, operands[0]))
    worst = int(np.argmax(over))
    assert over[worst] <= 0, (error[worst], [x[worst] for x in operands])


def bounds(name: str, x: Any) -> Any:
    """What the docstrings state, for each operand."""
    falls = name == "logistic" and x.dtype == np.float32
    return BOUND[name] + (np.clip(-np.nan_to_num(x), 0, 110) / 25 if falls else 0.0)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("name", sorted(n for n in REFERENCE if FUNCTIONS[n].arity == 1))
def test_one_operand(name: str, dtype: DType) -> None:
    rng = np.random.default_rng(len(name) + dtype.bits)
    check(name, dtype, [inputs(name, dtype, rng)], 16 if dtype.bits == 32 else 8)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("name", ["power", "atan2"])
def test_two_operands(name: str, dtype: DType) -> None:
    rng = np.random.default_rng(len(name) + dtype.bits)
    x, y = rng.permutation(inputs(name, dtype, rng)), rng.permutation(inputs(name, dtype, rng))
    if name == "power":
        half = len(x) // 2
        x[:half] = np.abs(x[:half])
        y[: len(y) // 4] = rng.uniform(-50, 50, len(y) // 4)
        y[len(y) // 4 : half] = rng.integers(-5, 6, half - len(y) // 4)
    check(name, dtype, [x, y], 16 if dtype.bits == 32 else 8)
    special = inputs(name, dtype, rng, 0)
    first, second = np.meshgrid(special, special)
    check(name, dtype, [first.reshape(-1), second.reshape(-1)], 8)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "erf"])
def test_scalar_code_and_strict_numerics(name: str) -> None:
    rng = np.random.default_rng(1)
    for dtype in (dtypes.float32, dtypes.float64):
        check(name, dtype, [inputs(name, dtype, rng, 500)], 0)
        check(name, dtype, [inputs(name, dtype, rng, 500)], 4, "strict")


class _WithoutLookup(CpuMachine):
    """This machine, less its instructions that look elements up in a register."""

    @property
    def lookup_lanes(self) -> int:
        return 0


@pytest.mark.parametrize("name", ["exp", "logistic"])
@pytest.mark.parametrize("lanes", [0, 2, 4, 8, 16, 32])
def test_functions_by_lookup_and_without(name: str, lanes: int) -> None:
    """Every number of lanes gives the same bits; without lookups the bound is closer."""
    rng = np.random.default_rng(lanes)
    operands = inputs(name, dtypes.float32, rng, 3000)
    here = machine("host")
    without = _WithoutLookup(**{f.name: getattr(here, f.name) for f in fields(CpuMachine) if f.init})
    check(name, dtypes.float32, [operands], lanes, on=without, bound={"exp": 1.0, "logistic": 2.5}[name])

    def result(width: int) -> Any:
        # exp looks up only where it sees that no operand is positive
        program = elementwise(lambda x: call(name, call("minimum", x, 0.0)), (dtypes.float32,), dtypes.float32, width)
        return Native(program).run({"x0": operands, "y": np.zeros_like(operands)}).arrays["y"]

    with np.errstate(all="ignore"):
        error, wrong = errors(result(lanes), REFERENCE[name](np.minimum(operands, 0).astype(Wide)), dtypes.float32)
    assert not wrong.any()
    assert (error <= bounds(name, operands)).all()
    np.testing.assert_array_equal(result(lanes), result(0))


def test_the_host_looks_up_where_it_can() -> None:
    here = machine("host")
    program = elementwise(lambda x: call("logistic", x), (dtypes.float32,), dtypes.float32, 32)
    assert ("perm" in Native(program).text.ir) == (here.lookup_lanes > 0)
    assert machine("x86-64-v3").lookup_lanes == 8
    assert machine("x86-64-v4").lookup_lanes == 16
    assert machine("aarch64").lookup_lanes == 0


def test_powers_of_two_are_exact() -> None:
    x = np.arange(-149, 128).astype(np.float32)
    program = elementwise(lambda a: call("exp2", a), (dtypes.float32,), dtypes.float32, 16)
    have = Native(program).run({"x0": x, "y": np.zeros_like(x)}).arrays["y"]
    np.testing.assert_array_equal(have, np.ldexp(np.float32(1), x.astype(np.int32)))
    back = elementwise(lambda a: call("log2", a), (dtypes.float32,), dtypes.float32, 16)
    np.testing.assert_array_equal(Native(back).run({"x0": have, "y": np.zeros_like(x)}).arrays["y"], x)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_small_floats(dtype: DType) -> None:
    every = np.arange(65536, dtype=np.uint16).view(dtype.numpy)
    for name in ("exp", "logistic", "sin"):
        program = elementwise(lambda a, n=name: call(n, a), (dtype,), dtype, 16)
        have = Native(program).run({"x0": every, "y": np.zeros_like(every)}).arrays["y"].astype(np.float32)
        want = np.asarray(scalar_value(name, dtype, every)).astype(np.float32)
        np.testing.assert_array_equal(np.isnan(have), np.isnan(want))
        fine = np.isfinite(want)
        gap = np.abs(have[fine] - want[fine]) > np.abs(want[fine]) * (2.0**-7 if dtype.name == "bfloat16" else 2.0**-10)
        assert gap.sum() <= (gap & (np.abs(want[fine]) < 1e-4)).sum()
        assert (have[fine] != want[fine]).mean() < 0.01


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.is_integer and d.bits >= 8], ids=str)
def test_integer_power(dtype: DType) -> None:
    rng = np.random.default_rng(3)
    low = -6 if dtype.kind == "signed" else 0
    x, y = (rng.integers(low, 12, 400).astype(dtype.numpy) for _ in range(2))
    program = elementwise(lambda a, b: call("power", a, b), (dtype, dtype), dtype, 8)
    have = Native(program).run({"x0": x, "x1": y, "y": np.zeros_like(x)}).arrays["y"]
    np.testing.assert_array_equal(have, scalar_value("power", dtype, x, y))


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 2.5])
def test_literal_exponents(exponent: float) -> None:
    rng = np.random.default_rng(4)
    for dtype in (dtypes.float32, dtypes.float64):
        x = inputs("power", dtype, rng, 500)
        program = elementwise(lambda a: call("power", a, exponent), (dtype,), dtype, 8)
        have = Native(program).run({"x0": x, "y": np.zeros_like(x)}).arrays["y"]
        with np.errstate(all="ignore"):
            error, wrong = errors(have, np.power(x.astype(Wide), Wide(exponent)), dtype)
        assert not wrong.any(), x[wrong][:5]
        assert error.max() <= (1.0 if exponent != 3.0 else 1.5)


def test_a_rare_path_is_entered_only_when_needed() -> None:
    def value(a: Expression) -> Expression:
        return call("sin", a)

    text = Native(elementwise(value, (dtypes.float32,), dtypes.float32, 16)).text.ir
    before, after = text.split("bitcast <16 x i1>", 1)
    assert "ptr @table0" not in before
    assert "ptr @table0" in after
