"""The same bits whatever the number of threads, and call after call: work is split by shape, never by who is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.graph.graph import Graph
from tilework.ops.builder import GraphBuilder
from tilework.runtime.context import ContextOptions

F32 = dtypes.float32
THREADS = (1, 2, 3, 8)


def product(b: GraphBuilder) -> Any:
    """Rows and columns that no tile divides."""
    x, y = b.input("x", F32, 61, 300), b.input("y", F32, 300, 131)
    return b.apply_one("dot_general", x, y, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))


def row(b: GraphBuilder) -> Any:
    """One row: only the columns and the sum are left to be shared."""
    x, y = b.input("x", F32, 1, 3000), b.input("y", F32, 3000, 40)
    return b.apply_one("dot_general", x, y, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))


def image(b: GraphBuilder) -> Any:
    x, w = b.input("x", F32, 2, 13, 20, 19), b.input("w", F32, 24, 13, 3, 3)
    return b.apply_one("convolution", x, w, window_strides=(1, 2), padding=((1, 1), (0, 2)))


def softmax(b: GraphBuilder) -> Any:
    return b.apply_one("softmax", b.input("x", F32, 37, 501), dimension=1)


def whole_sum(b: GraphBuilder) -> Any:
    """Everything to one number."""
    return b.apply_one("reduce", b.input("x", F32, 300, 401), dimensions=(0, 1), reducer="sum")


def column_sums(b: GraphBuilder) -> Any:
    return b.apply_one("reduce", b.input("x", F32, 1003, 67), dimensions=(0,), reducer="sum")


def running_sums(b: GraphBuilder) -> Any:
    return b.apply_one("cumulative", b.input("x", F32, 23, 401), dimension=1, reducer="sum")


def joined_parts(b: GraphBuilder) -> Any:
    """Parts of one piece of memory that end inside a cache line, each written by several threads."""
    x = b.input("x", F32, 131, 97)
    left = b.apply_one("dot_general", x, x, lhs_contracting_dimensions=(0,), rhs_contracting_dimensions=(0,))
    sums = b.apply_one("cumulative", x, dimension=1, reducer="sum")
    return b.apply_one("concatenate", left, sums, b.apply_one("sine", left), dimension=0)


def joined_columns(b: GraphBuilder) -> Any:
    """Boxes of one array whose rows end inside a cache line, each written by several threads."""
    x = b.input("x", F32, 131, 97)
    left = b.apply_one("dot_general", x, x, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(1,))
    sums = b.apply_one("cumulative", x, dimension=1, reducer="sum")
    return b.apply_one("concatenate", left, sums, b.apply_one("sine", left), dimension=1)


CASES = (product, row, image, softmax, whole_sum, column_sums, running_sums, joined_parts, joined_columns)


def _graph(build: Callable[[GraphBuilder], Any]) -> Graph:
    builder = GraphBuilder(build.__name__)
    return builder.build([build(builder)])


def _inputs(graph: Graph) -> list[Any]:
    """Values of very different sizes, so that another order of sums gives other bits."""
    random = np.random.default_rng(7)
    shapes = [tuple(int(d.value or 0) for d in value.tensor.shape) for value in graph.inputs]
    return [(random.standard_normal(s) * 10.0 ** random.integers(-3, 4, s)).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("build", CASES)
def test_threads_change_no_bit(build: Callable[[GraphBuilder], Any]) -> None:
    graph = _graph(build)
    inputs = _inputs(graph)
    found: set[bytes] = set()
    for threads in THREADS:
        with tilework.Context(ContextOptions(threads=threads)) as context:
            found.add(compile_graph(graph, context=context)(*inputs)[0].tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("build", CASES)
def test_a_hundred_calls_change_no_bit(build: Callable[[GraphBuilder], Any]) -> None:
    graph = _graph(build)
    inputs = _inputs(graph)
    with tilework.Context(ContextOptions(threads=3)) as context:
        executable = compile_graph(graph, context=context)
        assert len({executable(*inputs)[0].tobytes() for _ in range(100)}) == 1
