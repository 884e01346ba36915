"""Products of one-hot rows and a table: lookups that give the same bits, and what stays a product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import operators
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol
from tilework.dtypes import DType
from tilework.graph.graph import Array, Graph
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify
from tilework.passes.one_hot_products import OneHotProducts

PASS = OneHotProducts()
COUNT = 5


def product(
    table: Array,
    *,
    hot: int = 2,
    along: int = 0,
    left: bool = True,
    positions: DType = dtypes.int32,
    line: Array | None = None,
    of: DType = dtypes.float32,
    chosen: tuple[float, float] | None = None,
) -> Graph:
    """One-hot rows of positions [n, 3] at dimension `hot`, times a table along one of its dimensions.

    `chosen`: what stands for true and false, by a select.
    """
    builder = GraphBuilder("hot", [Symbol("n")])
    shape: list[Any] = ["n", 3]
    shape.insert(hot, 1)
    at = builder.input("at", positions, *shape)
    counted: Array = np.arange(int(table.shape[along]), dtype=np.int64) if line is None else line
    extents = [len(counted) if d == hot else 1 for d in range(3)]
    held: Array = np.reshape(counted, extents).astype(positions.numpy)
    rows = builder.apply_one("compare", at, builder.constant(held), direction="EQ")
    if chosen is None:
        rows = builder.apply_one("convert", rows, dtype=of)
    else:
        rows = builder.apply_one("select", rows, *(builder.constant(np.array(one, of.numpy)) for one in chosen))
    sides = (rows, builder.constant(table)) if left else (builder.constant(table), rows)
    contracted = (hot, along) if left else (along, hot)
    made = builder.apply_one(
        "dot_general", *sides, lhs_contracting_dimensions=contracted[:1], rhs_contracting_dimensions=contracted[1:]
    )
    found = builder.build([made])
    verify(found)
    return found


def numbers(*shape: int, kind: Any = np.float32) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(kind)


def same(graph: Graph, at: Array) -> None:
    """As it is, rewritten, and compiled under every contract: the same bits, the signs of zeros too."""
    found = PASS.run(graph)
    verify(found)
    assert "dot_general" not in operators(found)[-1:]
    assert "take" in operators(found)
    (wanted,) = interpret(graph, [at])
    results = [interpret(found, [at])[0]]
    for level in ("strict", "default"):
        results += compile_graph(graph, CompileOptions(numerics=level))(at)
    for result in results:
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(wanted))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("hot", [0, 1, 2])
@pytest.mark.parametrize("along", [0, 1])
def test_either_side_and_every_dimension(left: bool, hot: int, along: int) -> None:
    table = numbers(*((COUNT, 7) if along == 0 else (7, COUNT)))
    for rows in (0, 1, 4):
        at = np.random.default_rng(rows).integers(-2, COUNT + 2, (rows, 3)).astype(np.int32)
        same(product(table, left=left, hot=hot, along=along), np.expand_dims(at, hot))


@pytest.mark.parametrize("kind", [
    dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.uint32, dtypes.int64,
])  # fmt: skip
@pytest.mark.parametrize("count", [1, 100, 128, 256])
def test_types_of_positions(kind: DType, count: int) -> None:
    limits = np.iinfo(str(kind))
    if count > limits.max + 1:
        return
    inside = np.random.default_rng(0).integers(0, count, (3, 3))
    at = np.concatenate([[[limits.min, limits.max, count - 1]], inside]).astype(kind.numpy)
    same(product(numbers(count, 4), positions=kind), at[:, :, None])


@pytest.mark.parametrize("of", [dtypes.float64, dtypes.float16, dtypes.bfloat16])
def test_types_of_tables(of: DType) -> None:
    table = numbers(COUNT, 9).astype(of.numpy)
    same(product(table, of=of), np.array([[[0], [4], [7]]], np.int32))


def test_zeros_of_either_sign() -> None:
    table = np.array([[-0.0, 0.0, 1e-42, -1e-42]], np.float32)
    same(product(table), np.array([[[0], [1], [-1]]], np.int32))


def test_what_a_select_makes_of_it() -> None:
    at = np.array([[[0], [-1], [4]]], np.int32)
    same(product(numbers(COUNT, 3), chosen=(1, 0)), at)
    for chosen in ((0, 1), (2, 0), (1, -1)):
        graph = product(numbers(COUNT, 3), chosen=chosen)
        assert PASS.run(graph) is graph


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_tables_with_specials_stay(special: float) -> None:
    table = numbers(COUNT, 3)
    table[1, 1] = special
    graph = product(table)
    assert PASS.run(graph) is graph


@pytest.mark.parametrize("line", [np.arange(1, COUNT + 1), np.arange(COUNT)[::-1], np.zeros(COUNT)])
def test_other_numbers_stay(line: Array) -> None:
    graph = product(numbers(COUNT, 3), line=line)
    assert PASS.run(graph) is graph


def test_what_says_several_things_at_once_stays() -> None:
    """Positions along the dimension that is summed: rows are not one-hot."""
    builder = GraphBuilder("several")
    at = builder.input("at", dtypes.int32, 2, COUNT)
    rows = builder.apply_one("compare", at, builder.constant(np.arange(COUNT, dtype=np.int32)[None]), direction="EQ")
    rows = builder.apply_one("convert", rows, dtype=dtypes.float32)
    table = builder.constant(numbers(COUNT, 3))
    made = builder.apply_one(
        "dot_general", rows, table, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,)
    )
    graph = builder.build([made])
    assert PASS.run(graph) is graph
