# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
"""Transcendental functions of transcendental functions: one kernel computes what one kernel a function computes."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tests.lowering.nests import elementwise
from tests.lowering.test_mathematics import inputs
from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.dtypes import DType
from tilework.loops.expressions import Call, Expression, call, constant, walk
from tilework.loops.functions import FUNCTIONS
from tilework.machine.finder import machine
from tilework.numerics import numerics

NAMES = sorted(f.name for f in FUNCTIONS.values() if f.transcendental)
ANGLES = ("sin", "cos", "tan")
"""Functions with a part that few lanes need."""
GENTLE = ("sin", "cos", "tanh", "erf", "logistic", "atan", "asinh")
"""Functions that make an error no larger."""


@cache
def single(name: str, dtype: DType) -> Native:
    program = elementwise(lambda *x: call(name, *x), (dtype,) * FUNCTIONS[name].arity, dtype, 1)
    return Native(program, "strict")


def one_by_one(expression: Expression, x: Any, dtype: DType) -> Any:
    """The expression with every function in a kernel of its own."""
    done: dict[int, Any] = {}
    for node in walk(expression):
        if isinstance(node, Call):
            operands = [done[id(a)] for a in node.arguments]
            arrays = {f"x{n}": o for n, o in enumerate(operands)} | {"y": np.zeros_like(x)}
            done[id(node)] = single(node.function, dtype).run(arrays).arrays["y"]
        else:
            done[id(node)] = x
    return done[id(expression)]


def draw(rng: np.random.Generator, x: Expression, names: tuple[str, ...] | list[str], count: int) -> Expression:
    """An expression of `count` functions, some of which share operands."""
    known = [x]
    for _ in range(count):
        name = str(rng.choice(names))
        # mostly of the newest, so that chains are long
        operands = [known[-1] if rng.random() < 0.7 else known[rng.integers(len(known))]]
        operands += [known[rng.integers(len(known))] for _ in range(FUNCTIONS[name].arity - 1)]
        known.append(call(name, *operands))
    return known[-1]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_random_nests_are_what_their_functions_are(dtype: DType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = NAMES if seed % 3 else [*ANGLES, *rng.choice(NAMES, 2)]
    lanes = (1, 8, 16, 5)[seed % 4]
    found: list[Expression] = []

    def value(x: Expression) -> Expression:
        found.append(draw(rng, x, names, int(rng.integers(2, 9))))
        return found[-1]

    program = elementwise(value, (dtype,), dtype, lanes)
    x = inputs("sin", dtype, rng, 300)
    have = Native(program, "strict").run({"x0": x, "y": np.zeros_like(x)}).arrays["y"]
    np.testing.assert_array_equal(have, one_by_one(found[-1], x, dtype))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("outer", ANGLES)
@pytest.mark.parametrize("inner", ANGLES)
def test_an_angle_of_an_angle(outer: str, inner: str, dtype: DType) -> None:
    """With fused steps; the inner function's results may be too large for the outer one's short reduction."""
    scale = 1e9 if dtype.bits == 32 else 1e25
    program = elementwise(
        lambda x: call(outer, call(inner, x) * scale) + call(inner, call(outer, x)), (dtype,), dtype, 8
    )
    x = inputs("sin", dtype, np.random.default_rng(3), 200)
    have = Native(program).run({"x0": x, "y": np.zeros_like(x)}).arrays["y"]
    first = one_by_one(call(inner, constant(0, dtype)), x, dtype) * dtype.numpy.type(scale)
    second = one_by_one(call(outer, constant(0, dtype)), x, dtype)
    with np.errstate(invalid="ignore"):
        want = one_by_one(call(outer, constant(0, dtype)), first, dtype) + one_by_one(
            call(inner, constant(0, dtype)), second, dtype
        )
    # A tangent may be anything where its operand is rounded otherwise.
    if "tan" not in (outer, inner):
        np.testing.assert_allclose(have, want, atol=1e-6 if dtype.bits == 32 else 1e-14)
    np.testing.assert_array_equal(np.isnan(have), np.isnan(want))


@pytest.mark.parametrize("seed", range(6))
def test_random_nests_with_fused_steps(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    dtype = dtypes.float64
    found: list[Expression] = []

    def value(x: Expression) -> Expression:
        found.append(draw(rng, x, GENTLE, 7) + draw(rng, x * 3.0, GENTLE, 4))
        return found[-1]

    program = elementwise(value, (dtype,), dtype, 8)
    x = rng.uniform(-50, 50, 400)
    x[::50] = 1e20
    have = Native(program).run({"x0": x, "y": np.zeros_like(x)}).arrays["y"]
    strict = Native(program, "strict").run({"x0": x, "y": np.zeros_like(x)}).arrays["y"]
    near = np.abs(x) < 1e3
    np.testing.assert_allclose(have[near], strict[near], atol=1e-12)
    assert np.isfinite(have).all()


def test_the_work_to_generate_a_chain_grows_with_its_length() -> None:
    def calls(count: int) -> int:
        def value(x: Expression) -> Expression:
            for n in range(count):
                x = call(ANGLES[n % 3], x)
            return x

        program = elementwise(value, (dtypes.float32,), dtypes.float32, 8)
        made = 0

        def count_calls(_frame: object, event: str, _argument: object) -> None:
            nonlocal made
            made += event == "call"

        before = sys.getprofile()
        sys.setprofile(count_calls)
        try:
            emit_kernel(program, machine("x86-64-v3"), numerics("default"))
        finally:
            sys.setprofile(before)
        return made

    assert calls(48) < 6 * calls(12)  # 16 times where every function looks at all before it
