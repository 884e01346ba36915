"""Floating numbers as integers: truncated, saturated, NaN to 0, in vectors as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dtypes import DType
from tilework.ops.builder import GraphBuilder

FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
INTEGERS = (
    dtypes.int4, dtypes.uint4, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32,
    dtypes.int64,
)  # fmt: skip


def numbers(source: DType, target: DType) -> np.ndarray[Any, Any]:
    """What is hard: the ends of the type and their neighbours, halves, NaN, infinities, zeros of either sign."""
    low, high = dtypes.integer_range(target)
    ends = np.array([low - 1, low - 0.5, low, low + 0.5, high - 0.5, high, high + 0.5, high + 1, high + 2, 2.0 * high])
    with np.errstate(over="ignore"):
        near = ends.astype(source.numpy)
        infinity: Any = np.array(np.inf, source.numpy)
        around: list[Any] = [near, np.nextafter(near, infinity), np.nextafter(near, -infinity)]
        small = np.array([0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, np.nan, np.inf, -np.inf, 3e38, -3e38])
        drawn = np.random.default_rng(0).standard_normal(31) * high / 2
        return np.concatenate([*around, small.astype(source.numpy), drawn.astype(source.numpy)])


def truncated(values: np.ndarray[Any, Any], target: DType) -> list[int]:
    """Exactly, one by one."""
    low, high = dtypes.integer_range(target)
    found: list[int] = []
    for value in values.astype(np.float64).tolist():
        if np.isnan(value):
            found.append(0)
        elif np.isinf(value):
            found.append(high if value > 0 else low)
        else:
            found.append(min(max(int(value), low), high))
    return found


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_every_end(source: DType, target: DType) -> None:
    values = numbers(source, target)
    for count in (1, 7, len(values)):
        b = GraphBuilder("g")
        graph = b.build([b.apply("convert", b.input("x", source, count), dtype=target)])
        for options in (CompileOptions(), CompileOptions(numerics="strict", checked=True)):
            run = compile_graph(graph, options)
            for start in range(0, len(values) - count + 1, max(1, count // 2)):
                part = values[start : start + count]
                (found,) = run(part)
                assert found.astype(object).tolist() == truncated(part, target), part
