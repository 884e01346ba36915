"""Reductions under the general recipe: rows, columns, parts, and regions that walk over rows several times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.decisions.fusion import regions
from tilework.dims import IntLike, Symbol
from tilework.graph.graph import Graph, Value
from tilework.loops.interpret import interpret
from tilework.machine.finder import machine
from tilework.numerics import Level, numerics
from tilework.ops.builder import GraphBuilder
from tilework.recipes.cpu.vector_nest import vectorised
from tilework.runtime.context import Context, ContextOptions
from tilework.schedule.schedule import Schedule

F = dtypes.float32
Array = np.ndarray[Any, np.dtype[Any]]


def reduction(
    shape: tuple[IntLike, ...], dimensions: tuple[int, ...], reducer: str = "sum", symbols: tuple[Symbol, ...] = ()
) -> Graph:
    builder = GraphBuilder("reduction", symbols)
    x = builder.input("x", F, *shape)
    return builder.build([builder.apply_one("reduce", x, dimensions=dimensions, reducer=reducer)])


def scheduled(graph: Graph, level: Level = "default", target: str = "host") -> Schedule:
    (region,) = regions(graph)
    return vectorised(Schedule(region.definition.program, machine(target), numerics(level)))


def steps(schedule: Schedule) -> str:
    return "; ".join(map(str, schedule.trace))


def integers(shape: tuple[int, ...], seed: int) -> Array:
    """Small integers: any order of summation gives the same bits."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


EXTENTS = (0, 1, 2, 3, 7, 8, 9, 16, 31, 33, 64, 65, 130)
FUNCTIONS = {"sum": np.sum, "maximum": np.max, "minimum": np.min}


@pytest.mark.parametrize("seed", range(40))
def test_any_reduction(seed: int) -> None:
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 4))
    shape = tuple(int(n) for n in random.choice(EXTENTS, rank))
    dimensions = tuple(d for d in range(rank) if random.random() < 0.5) or (rank - 1,)
    graph = reduction(shape, dimensions)
    schedule = scheduled(graph, random.choice(("default", "strict")))
    x = integers(shape, seed)
    expected = x.sum(dimensions)
    outcome = Native(schedule.program, checked=bool(random.integers(2))).run(
        {"x0": x, "v0": np.full(expected.shape, np.nan, np.float32)}
    )
    assert (outcome.status, outcome.error) == (0, 0)
    np.testing.assert_array_equal(outcome.arrays["v0"], expected)


LONG = (
    ((4096, 96), (0,)),
    ((1000, 1001), (0,)),
    ((300, 40, 70), (0, 1)),
    ((70, 700, 24), (0, 1)),
    ((1 << 20,), (0,)),
    ((999_983,), (0,)),
    ((600, 700), (0, 1)),
)


@pytest.mark.parametrize("reducer", sorted(FUNCTIONS))
@pytest.mark.parametrize(("shape", "dimensions"), LONG)
def test_long_reductions_are_cut(shape: tuple[int, ...], dimensions: tuple[int, ...], reducer: str) -> None:
    schedule = scheduled(reduction(shape, dimensions, reducer))
    assert ".parts" in steps(schedule)
    x = integers(shape, len(shape))
    expected = FUNCTIONS[reducer](x, dimensions)
    arrays = {"x0": x, "v0": np.full(expected.shape, np.nan, np.float32)}
    for checked in (False, True):
        outcome = Native(schedule.program, checked=checked).run(arrays)
        assert (outcome.status, outcome.error) == (0, 0)
        np.testing.assert_array_equal(outcome.arrays["v0"], expected)


@pytest.mark.parametrize("shape", [(128, 100), (129, 1000), (4, 131, 300)])
def test_rows_are_read_two_at_a_time(shape: tuple[int, ...]) -> None:
    """One stream alone does not keep memory busy; an odd row is left over at the end."""
    graph = reduction(shape, (len(shape) - 1,))
    assert ".row'" in steps(scheduled(graph))
    x = integers(shape, 5)
    np.testing.assert_array_equal(run(graph, x), x.sum(-1))


def test_few_rows_are_read_one_at_a_time() -> None:
    assert ".row'" not in steps(scheduled(reduction((32, 1000), (1,))))


def test_strict_numerics_keep_the_order() -> None:
    assert ".parts" not in steps(scheduled(reduction((1 << 20,), (0,)), "strict"))


@pytest.mark.parametrize("shape", [(16, 600), (83, 4099), (3, 40, 513), (512, 256)])
def test_columns_are_added_up_in_their_order(shape: tuple[int, ...]) -> None:
    """So that strict numerics take the same way, and sums are those of whoever adds row after row."""
    graph = reduction(shape, (len(shape) - 2,))
    schedule = scheduled(graph, "strict")
    assert "start='target'" in steps(schedule)
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    expected = np.zeros((*shape[:-2], shape[-1]), np.float32)
    for row in range(shape[-2]):
        expected += x[..., row, :]
    for checked in (False, True):
        outcome = Native(schedule.program, checked=checked).run({"x0": x, "v0": np.full_like(expected, np.nan)})
        assert (outcome.status, outcome.error) == (0, 0)
        assert outcome.arrays["v0"].tobytes() == expected.tobytes()


@pytest.mark.parametrize("level", ["default", "strict"])
@pytest.mark.parametrize("columns", [1, 5, 300, 1000])
def test_the_largest_of_columns_and_where_it_is(columns: int, level: Level) -> None:
    """Reductions with two results, along another axis than the last, of a free number of columns."""
    free = Symbol("n", 1)
    builder = GraphBuilder("places", (free,))
    x = builder.input("x", F, 21, "n")
    graph = builder.build([builder.apply_one("arg_reduce", x, dimension=0, direction="maximum")])
    given = integers((21, columns), columns)
    (found,) = compile_graph(graph, CompileOptions(numerics=level))(given)
    np.testing.assert_array_equal(np.asarray(found), given.argmax(0))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(64, 8192), (700, 8200), (40, 600)])
def test_columns_of_narrow_numbers_are_rounded_once(shape: tuple[int, int], dtype: dtypes.DType) -> None:
    builder = GraphBuilder("columns")
    x = builder.input("x", dtype, *shape)
    graph = builder.build([builder.apply_one("reduce", x, dimensions=(0,), reducer="sum")])
    given = np.random.default_rng(1).random(shape).astype(dtype.numpy)
    exact = given.astype(np.float64).sum(0)
    found = run(graph, given).astype(np.float64)
    half_a_place = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype.name]
    np.testing.assert_allclose(found, exact, rtol=half_a_place * 1.01)


@pytest.mark.parametrize("level", ["default", "strict"])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
@pytest.mark.parametrize("shape", [("M", "N"), ("A", "M", "N"), ("A", "M", 100), (3, "M", "N"), ("A", 5000, "N")])
def test_free_columns_of_narrow_numbers_are_rounded_once(
    shape: tuple[IntLike, ...], dtype: dtypes.DType, level: Level
) -> None:
    """Also where the start stands by itself, as the axis that is summed may be empty."""
    sizes = {"A": 3, "M": 5000, "N": 100}
    symbols = tuple(Symbol(name) for name in sizes if name in shape)
    builder = GraphBuilder("columns", symbols)
    x = builder.input("x", dtype, *shape)
    graph = builder.build([builder.apply_one("reduce", x, dimensions=(len(shape) - 2,), reducer="sum")])
    compiled = compile_graph(graph, CompileOptions(numerics=level))
    for rows in (5000, 83, 0):
        if rows != 5000 and "M" not in shape:
            continue
        given: Array = np.ones([rows if n == "M" else sizes.get(str(n)) or int(n) for n in shape], dtype.numpy)
        (found,) = compiled(given)
        assert set(np.asarray(found).astype(np.float64).ravel()) == {float(np.asarray(rows).astype(dtype.numpy))}


@pytest.mark.parametrize("target", ["x86-64-v4", "aarch64"])
@pytest.mark.parametrize(("shape", "dimensions"), [((80, 600), (0,)), ((80, 600), (1,)), ((40, 9, 33), (0, 2))])
def test_other_machines(shape: tuple[int, ...], dimensions: tuple[int, ...], target: str) -> None:
    schedule = scheduled(reduction(shape, dimensions), target=target)
    x = integers(shape, 3)
    expected = x.sum(dimensions)
    arrays = {"x0": x, "v0": np.full_like(expected, np.nan)}
    interpret(schedule.program, arrays)
    np.testing.assert_array_equal(arrays["v0"], expected)


def run(graph: Graph, *arrays: Array, threads: int = 1, checked: bool = False) -> Array:
    context = Context(ContextOptions(threads=threads))
    (result,) = compile_graph(graph, CompileOptions(checked=checked), context)(*arrays)
    context.close()
    return np.array(result)


def test_a_free_number_of_rows() -> None:
    rows = Symbol("n", 1)
    graph = reduction(("n", 600), (0,), symbols=(rows,))
    for count in (1, 7, 64, 1000):
        x = integers((count, 600), count)
        np.testing.assert_array_equal(run(graph, x), x.sum(0))


# -- several walks over a row ------------------------------------------------------------------------------------------
def normalised(
    shape: tuple[IntLike, ...], symbols: tuple[Symbol, ...] = (), added: tuple[IntLike, ...] | None = None
) -> Graph:
    """Each row, plus an input of the shape `added`, less its mean, by its standard deviation."""
    builder = GraphBuilder("normalised", symbols)
    x = builder.input("x", F, *shape)
    if added is not None:
        x = builder.apply_one("add", x, builder.input("b", F, *added))
    length = builder.constant(np.array(float(int(shape[-1])), np.float32))
    last = (len(shape) - 1,)

    def mean(value: Value) -> Value:
        total = builder.apply_one("reduce", value, dimensions=last, reducer="sum", keep_dimensions=True)
        return builder.apply_one("divide", total, length)

    apart = builder.apply_one("subtract", x, mean(x))
    root = builder.apply_one("sqrt", mean(builder.apply_one("multiply", apart, apart)))
    return builder.build([builder.apply_one("divide", apart, root)])


def test_reductions_of_rows_join() -> None:
    (region,) = regions(normalised((48, 100)))
    assert region.operators.count("reduce") == 2
    text = str(scheduled(normalised((48, 100))).program)
    assert "shape=(dim('48'), dim('1'))" not in text  # means of one row at a time


@pytest.mark.parametrize("added", [(1, 100), (1, 48, 100), (3, 1, 100)])
def test_what_is_added_to_every_row_leaves_the_walks_together(added: tuple[int, ...]) -> None:
    """It is used for several rows, as an operand of a product is; the rows are used once."""
    shape = (48, 100) if len(added) == 2 else (3, 48, 100)
    graph = normalised(shape, added=added)
    text = str(scheduled(graph).program)
    assert text.count("kind='parallel'") == 1
    x, b = (np.random.default_rng(s).standard_normal(each, np.float32) for s, each in enumerate((shape, added)))
    wide = x.astype(np.float64) + b
    wide -= wide.mean(-1, keepdims=True)
    for checked in (False, True):
        (found,) = compile_graph(graph, CompileOptions(checked=checked))(x, b)
        np.testing.assert_allclose(found, wide / np.sqrt((wide**2).mean(-1, keepdims=True)), 1e-4, 1e-5)


def test_long_rows_do_not_join() -> None:
    assert len(regions(normalised((4, 1 << 17)))) > 1


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 33, 768, 1000])
def test_normalised_rows(columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((9, columns), np.float32)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64) - x.astype(np.float64).mean(1, keepdims=True)
        expected = wide / np.sqrt((wide**2).mean(1, keepdims=True))
    for checked in (False, True):
        found = run(normalised((9, columns)), x, checked=checked)
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def softmax(shape: tuple[IntLike, ...], dimension: int, symbols: tuple[Symbol, ...] = ()) -> Graph:
    builder = GraphBuilder("softmax", symbols)
    return builder.build([builder.apply_one("softmax", builder.input("x", F, *shape), dimension=dimension)])


def shares(x: Array, dimension: int) -> Array:
    with np.errstate(all="ignore"):
        wide = np.exp(x.astype(np.float64) - x.max(dimension, keepdims=True, initial=-np.inf).astype(np.float64))
        return wide / wide.sum(dimension, keepdims=True)


def test_a_row_of_exponentials_is_kept() -> None:
    text = str(scheduled(softmax((64, 1000), 1)).program)
    assert "'v0.powers', shape=(dim('1'), dim('1000'))" in text
    assert text.count("function='exp'") == 1


@pytest.mark.parametrize("dimension", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 1, 1), (2, 70, 33), (4, 3, 1000), (2, 0, 3), (0, 2, 3)])
def test_softmax_along_any_dimension(shape: tuple[int, ...], dimension: int) -> None:
    x = np.random.default_rng(dimension).standard_normal(shape, np.float32) * 20
    for checked in (False, True):
        found = run(softmax(shape, dimension), x, checked=checked)
        np.testing.assert_allclose(found, shares(x, dimension), 1e-5, 1e-30)


def test_softmax_of_rows_of_any_length() -> None:
    graph = softmax(("n", "m"), 1, (Symbol("n", 1), Symbol("m", 1)))
    for rows, columns in ((1, 1), (3, 7), (70, 33), (5, 5000)):
        x = np.random.default_rng(rows).standard_normal((rows, columns), np.float32)
        np.testing.assert_allclose(run(graph, x), shares(x, 1), 1e-5)


def test_softmax_of_special_rows() -> None:
    inf, nan = np.inf, np.nan
    x = np.full((8, 21), -0.0, np.float32)
    x[1, 3], x[2, 20], x[3], x[4, :20], x[5, 0] = nan, inf, -inf, -inf, -inf
    x[6] = nan
    x[7, 8], x[7, 9] = nan, 3.0
    found = run(softmax((8, 21), 1), x)
    np.testing.assert_array_equal(np.isnan(found).all(1), [False, True, True, True, False, False, True, True])
    np.testing.assert_allclose(found[[0, 4, 5]], shares(x, 1)[[0, 4, 5]], 1e-6)


@pytest.mark.parametrize("shape", [(2048, 600), (50, 1000)])
def test_the_same_bits_for_any_number_of_threads(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    for graph in (reduction(shape, (0,)), reduction(shape, (0, 1)), reduction(shape, (1,)), softmax(shape, 1)):
        first = run(graph, x)
        for threads in (2, 3, 8):
            np.testing.assert_array_equal(run(graph, x, threads=threads), first)
