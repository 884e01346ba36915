"""Floats of at most 8 bits and integers of less: every code, and conversions from and to every other type."""

from __future__ import annotations

import numpy as np
import pytest

from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dtypes import DType, integer_range
from tilework.graph.graph import Array
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.values import convert

SMALL = [d for d in dtypes.ALL if (d.is_floating and d.bits <= 8) or d.is_small_integer]
OTHERS = [
    dtypes.boolean, dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint64, dtypes.float16, dtypes.bfloat16,
    dtypes.float32, dtypes.float64,
]  # fmt: skip


def codes(dtype: DType) -> Array:
    every = np.arange(2**dtype.bits, dtype=np.uint8)
    return every.view(dtype.numpy) if dtype.is_floating else every.astype(np.int8).astype(dtype.numpy)


def numbers(dtype: DType, random: np.random.Generator) -> Array:
    if dtype.kind == "boolean":
        return np.array([False, True])
    if dtype.is_integer:
        return np.arange(-300, 300).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        bits = random.integers(0, 2**32, 3000, dtype=np.uint64).astype(np.uint32).view(np.float32)
        near = random.standard_normal(2000) * np.exp2(random.integers(-20, 20, 2000))
        powers = np.exp2(np.arange(-149.0, 128.0))
        ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 7.5, -7.5, 448.0, 464.0, 465.0, 480.0, 57344.0, 61439.0, 61440.0]
        return np.concatenate([bits, near, powers, powers * 1.5, ends]).astype(dtype.numpy)


def assert_same(found: Array, wanted: Array) -> None:
    assert found.dtype == wanted.dtype
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(a, b)
    kept = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a[kept]), np.signbit(b[kept]))


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_every_code_and_many_numbers(dtype: DType) -> None:
    random = np.random.default_rng(8)
    cases = [(codes(dtype), other) for other in (*OTHERS, *SMALL)] + [
        (numbers(other, random), dtype) for other in OTHERS
    ]
    builder = GraphBuilder("g")
    values = [builder.input(f"x{n}", dtypes.dtype_of(given), given.size) for n, (given, _) in enumerate(cases)]
    made = [
        builder.apply_one("convert", v, dtype=target) if v.tensor.dtype != target else v
        for v, (_, target) in zip(values, cases, strict=True)
    ]
    found = compile_graph(builder.build(made))(*(given for given, _ in cases))
    for (given, target), result in zip(cases, found, strict=True):
        assert_same(result, convert(given, target) if dtypes.dtype_of(given) != target else given)


@pytest.mark.parametrize("checked", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("dtype", [d for d in SMALL if d.is_integer], ids=str)
def test_integers_wrap(dtype: DType, checked: bool) -> None:
    random = np.random.default_rng(4)
    low, high = integer_range(dtype)
    given = {name: random.integers(low, high + 1, 300).astype(np.int8).astype(dtype.numpy) for name in ("x", "y")}
    builder = GraphBuilder("g")
    x, y = (builder.input(name, dtype, 300) for name in given)
    two = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "and", "xor", "shift_left",
           "shift_right_logical", "shift_right_arithmetic")  # fmt: skip
    made = [builder.apply_one(name, x, y) for name in two]
    made += [builder.apply_one(name, x) for name in ("not", "population_count", "sign")]
    made.append(builder.apply_one("bitcast_convert", x, dtype=_other_sign(dtype)))
    made.append(builder.apply_one("reduce", x, dimensions=(0,), reducer="sum", keep_dimensions=False))
    graph = builder.build(made)
    found = compile_graph(graph, CompileOptions(checked=checked))(**given)
    for result, wanted in zip(found, interpret(graph, given), strict=True):
        assert_same(result, wanted)


def _other_sign(dtype: DType) -> DType:
    return dtypes.dtype_named(dtype.name[1:] if dtype.kind == "unsigned" else f"u{dtype.name}")
