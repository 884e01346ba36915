"""Graphs that transpose, with work around it: against the interpreter, with symbols, checked, over thread counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilework
from tests.compiler.checking import check_graph
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.dims import Symbol
from tilework.graph.graph import Graph
from tilework.ops.builder import GraphBuilder
from tilework.runtime.context import ContextOptions

SYMBOL = Symbol("n", 0, 80)
SIZES = ({"n": 0}, {"n": 1}, {"n": 37}, {"n": 64})
TYPES = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int8, dtypes.int64)


def permuting(seed: int) -> Graph:
    """A random permutation of two to four dimensions; something before it, something after it, or nothing."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(2, 5))
    order = [int(d) for d in random.permutation(rank)]
    top = {2: 70, 3: 30, 4: 20}[rank]
    shape: list[Any] = [int(random.integers(1, top)) for _ in range(rank)]
    symbolic = random.random() < 0.4
    if symbolic:
        shape[int(random.integers(rank))] = SYMBOL.name
    dtype = TYPES[int(random.integers(len(TYPES)))]
    builder = GraphBuilder("permuting", [SYMBOL] if symbolic else [])
    x = builder.input("x", dtype, *shape)
    if random.random() < 0.4:
        x = builder.apply_one("negate", x)
    y = builder.apply_one("transpose", x, permutation=tuple(order))
    if random.random() < 0.4:
        other = builder.input("w", dtype, *(shape[d] for d in order))
        y = builder.apply_one("add", y, other)
    if random.random() < 0.3:
        y = builder.apply_one("convert", y, dtype=dtypes.float32)
    return builder.build([y])


def _sizes(graph: Graph) -> tuple[dict[str, int], ...]:
    return SIZES if graph.symbols else ({},)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_permutations(seed: int, checked: bool) -> None:
    graph = permuting(seed)
    check_graph(graph, checked=checked, special=seed % 3 == 2, seed=seed, sizes=_sizes(graph))


@pytest.mark.parametrize("shape", [(700, 900), (1024, 512), (3, 200, 333)])
def test_threads_change_no_bit(shape: tuple[int, ...]) -> None:
    builder = GraphBuilder("threads")
    x = builder.input("x", dtypes.float32, *shape)
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    graph = builder.build([builder.apply_one("transpose", x, permutation=order)])
    given = np.random.default_rng(len(shape)).standard_normal(shape, np.float32)
    for threads in (1, 2, 3, 8):
        with tilework.Context(ContextOptions(threads=threads)) as context:
            found = compile_graph(graph, context=context)(given)[0]
            np.testing.assert_array_equal(found, given.transpose(order))
