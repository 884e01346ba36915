"""Products under the general recipe, with caches so small that copies, bands, groups and chunks occur early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tilework import dtypes
from tilework.candidates.region import region_of
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.codegen.cpu.llvm import emit_assembly
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.compute import builder as compute
from tilework.compute.nest import loop_program
from tilework.dims import Dim, IntLike, dim
from tilework.loops.interpret import interpret
from tilework.loops.program import LoopProgram
from tilework.machine.cpu import Cache, CpuMachine
from tilework.machine.finder import machine
from tilework.numerics import Level, numerics
from tilework.ops.builder import GraphBuilder
from tilework.recipes.cpu.vector_nest import vectorised
from tilework.runtime.context import Context, ContextOptions
from tilework.schedule.schedule import Schedule

F = dtypes.float32
Array = np.ndarray[Any, np.dtype[Any]]


def small(level1: int = 1024, level2: int = 4096) -> CpuMachine:
    """This machine with caches of a few lines."""
    return replace(machine("host"), caches=(Cache(1, level1, 8), Cache(2, level2, 8)))


@dataclass(frozen=True)
class Product:
    """`y[b, i, j] = sum of x[b, i, k] w[b, k, j] over k`, each operand in its own order of dimensions."""

    batch: IntLike | None
    rows: IntLike
    depth: IntLike
    columns: IntLike
    turned_x: bool = False
    turned_w: bool = False

    def program(self) -> LoopProgram:
        front: tuple[IntLike, ...] = () if self.batch is None else (self.batch,)
        x_shape = (self.depth, self.rows) if self.turned_x else (self.rows, self.depth)
        w_shape = (self.columns, self.depth) if self.turned_w else (self.depth, self.columns)
        x = compute.placeholder("x", F, *front, *x_shape)
        w = compute.placeholder("w", F, *front, *w_shape)
        k = compute.reduce_axis(self.depth, "k")

        def place(outer: tuple[Dim, ...], row: Dim, column: Dim, turned: bool) -> tuple[Dim, ...]:
            return (*outer, column, row) if turned else (*outer, row, column)

        def element(outer: tuple[Dim, ...], i: Dim, j: Dim) -> compute.Reduction:
            along = dim(k.name)
            return compute.sum(x[place(outer, i, along, self.turned_x)] * w[place(outer, along, j, self.turned_w)], k)

        if self.batch is None:
            y = compute.compute("y", (self.rows, self.columns), lambda i, j: element((), i, j))
        else:
            y = compute.compute("y", (self.batch, self.rows, self.columns), lambda b, i, j: element((b,), i, j))
        return loop_program(compute.computation("product", [x, w], [y]))

    def arrays(self, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
        """Small integers: any order of summation gives the same bits."""
        random = np.random.default_rng(seed)
        rows, depth, columns = (int(dim(extent).evaluate(sizes)) for extent in (self.rows, self.depth, self.columns))
        front = () if self.batch is None else (int(dim(self.batch).evaluate(sizes)),)
        x = random.integers(-3, 4, (*front, *((depth, rows) if self.turned_x else (rows, depth))))
        w = random.integers(-3, 4, (*front, *((columns, depth) if self.turned_w else (depth, columns))))
        y = np.full((*front, rows, columns), np.nan)
        return {"x": x.astype(np.float32), "w": w.astype(np.float32), "y": y.astype(np.float32)}

    def exact(self, arrays: Mapping[str, Array]) -> Array:
        x, w = (arrays[name].astype(np.float64) for name in "xw")
        x = np.swapaxes(x, -1, -2) if self.turned_x else x
        return x @ (np.swapaxes(w, -1, -2) if self.turned_w else w)


def scheduled(product: Product, level: Level = "default", target: CpuMachine | None = None) -> Schedule:
    return vectorised(Schedule(product.program(), target or small(), numerics(level)))


def check(
    product: Product, level: Level, sizes: Sequence[Mapping[str, int]] = ({},), *, checked: bool = False
) -> Schedule:
    schedule = scheduled(product, level)
    native = Native(schedule.program, level, checked=checked)
    for seed, values in enumerate(sizes):
        arrays = product.arrays(values, seed)
        outcome = native.run(arrays, values)
        assert (outcome.status, outcome.error) == (0, 0)
        np.testing.assert_array_equal(outcome.arrays["y"], product.exact(arrays), err_msg=f"{product} at {values}")
    return schedule


def steps(schedule: Schedule) -> str:
    return "; ".join(map(str, schedule.trace))


EXTENTS = (0, 1, 2, 5, 8, 16, 17, 31, 32, 33, 48, 64, 70)


@pytest.mark.parametrize("seed", range(40))
def test_any_product(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, depth, columns = (int(n) for n in random.choice(EXTENTS, 3))
    batch = None if random.random() < 0.6 else int(random.choice((0, 1, 2, 3)))
    product = Product(batch, rows, max(depth, 1), columns, bool(random.integers(2)), bool(random.integers(2)))
    check(product, random.choice(("default", "strict")), checked=bool(random.integers(2)))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("level", ["default", "strict"])
def test_copied_operand(turned: bool, level: Level) -> None:
    """Read often and from afar: copied first, in parallel, in blocks as wide as a tile."""
    found = steps(check(Product(None, 70, 64, 64, turned_w=turned), level))
    assert "cache_read(buffer='w', at=''" in found
    assert "transform_layout(buffer='w.packed'" in found
    assert "parallel(loop='w.packed" in found
    assert "rfactor" not in found


def test_nothing_is_copied_for_few_rows() -> None:
    for rows in (1, 8):
        assert "cache_read" not in steps(check(Product(None, rows, 64, 64), "default"))


def test_nothing_is_copied_that_stays_near() -> None:
    schedule = scheduled(Product(None, 70, 64, 64), target=small(1 << 15, 1 << 20))
    assert "cache_read" not in steps(schedule)
    assert "band" not in steps(schedule)


@pytest.mark.parametrize("level", ["default", "strict"])
def test_long_sums_are_cut(level: Level) -> None:
    """Chunks of a sum go on from the one before: under strict numerics in the same order, so to the same bits."""
    product = Product(None, 70, 200, 40)
    schedule = check(product, level)
    assert ".chunk" in steps(schedule)
    if level == "strict":
        random = np.random.default_rng(0)
        arrays: dict[str, Array] = {
            name: random.standard_normal(shape).astype(np.float32)
            for name, shape in (("x", (70, 200)), ("w", (200, 40)), ("y", (70, 40)))
        }
        arrays["x"][0, 0], arrays["x"][1, 1], arrays["w"][3, 3] = np.nan, np.inf, -np.inf
        plain = {name: array.copy() for name, array in arrays.items()}
        interpret(product.program(), plain)
        found = Native(schedule.program, level).run(arrays).arrays["y"]
        np.testing.assert_array_equal(
            found.view(np.int32)[~np.isnan(found)], plain["y"].view(np.int32)[~np.isnan(found)]
        )
        np.testing.assert_array_equal(np.isnan(found), np.isnan(plain["y"]))


@pytest.mark.parametrize("level", ["default", "strict"])
@pytest.mark.parametrize("rows", [1, 3, 7])
def test_few_rows_of_a_large_operand(rows: int, level: Level) -> None:
    """Read straight on along its rows, a few of them at a time, in slices for the threads."""
    found = steps(check(Product(None, rows, 97, 601), level))
    assert "cache_read" not in found
    assert "slice" in found
    assert "within" in found
    check(Product(3, rows, 97, 601), level)


def test_bands_of_rows() -> None:
    schedule = check(Product(None, 512, 64, 1000), "default")
    assert "band" in steps(schedule)
    assert "group" in steps(schedule)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("level", ["default", "strict"])
def test_any_number_of_threads_gives_the_same_bits(turned: bool, level: Level) -> None:
    random = np.random.default_rng(1)
    builder = GraphBuilder("product")
    x, w = builder.input("x", F, 77, 160), builder.input("w", F, *((161, 160) if turned else (160, 161)))
    y = builder.apply_one(
        "dot_general", x, w, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(1 if turned else 0,)
    )
    graph = builder.build([y])
    given = [
        random.standard_normal(shape).astype(np.float32) for shape in ((77, 160), (161, 160) if turned else (160, 161))
    ]
    found: set[bytes] = set()
    for threads in (1, 2, 3, 8):
        executable = compile_graph(graph, CompileOptions(level), Context(ContextOptions(threads=threads)))
        assert any("cache_read" in region.trace for region in executable.explain().regions)
        found.update(executable(*given)[0].tobytes() for _ in range(5))
    assert len(found) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_symbols(turned: bool) -> None:
    """One kernel for any number of rows, columns and terms."""
    sizes = [
        dict(zip("MKN", each, strict=True)) for each in ((1, 1, 1), (70, 33, 40), (7, 64, 17), (1, 3, 2), (64, 8, 64))
    ]
    check(Product(None, "M", "K", "N", turned_w=turned), "default", sizes)
    check(Product(2, "M", 33, 40, turned_w=turned), "default", [{"M": n} for n in (1, 5, 6, 7, 70)], checked=True)


@pytest.mark.parametrize("name", ["x86-64-v4", "aarch64"])
def test_other_machines(name: str) -> None:
    """Code for machines that are not here."""
    target = replace(machine(name), caches=small().caches)
    for turned in (False, True):
        schedule = scheduled(Product(None, 70, 64, 64, turned_w=turned), target=target)
        assert "w.packed" in steps(schedule)
        assert emit_assembly(emit_kernel(schedule.program, target, schedule.numerics).ir, target)


def test_a_batch_of_one_is_shared_between_threads() -> None:
    """A free batch is fused with what lies inside it, also where a loop of one iteration lies between them."""
    x = compute.placeholder("x", F, "B", 64, 80, 1)
    w = compute.placeholder("w", F, 96, 80)
    k = compute.reduce_axis(80, "k")
    y = compute.compute("y", ("B", 96, 64, 1), lambda b, i, j, u: compute.sum(x[b, j, dim("k"), u] * w[i, dim("k")], k))
    schedule = vectorised(
        Schedule(loop_program(compute.computation("turned", [x, w], [y])), small(), numerics("default"))
    )
    outermost = schedule.setting.enclosing(schedule.setting.statement("y"))[0]
    assert outermost.kind == "parallel"
    assert outermost.extent == 4 * dim("B")


@pytest.mark.parametrize(("high", "wide", "row"), [(900, 161, "i3"), (161, 900, "i3"), (64, 64, "i3"), (900, 3, "i2")])
def test_rows_of_a_tile_are_near_each_other(high: int, wide: int, row: str) -> None:
    """Rows of a tile run along memory, however long the image is in the other direction, if there are enough."""
    builder = GraphBuilder("g")
    image = builder.input("x", F, 1, 32, high, wide)
    weights = builder.constant(np.ones((32, 32, 3, 3), np.float32), "w")
    result = builder.apply_one(
        "convolution", image, weights, window_strides=(1, 1), padding=((1, 1), (1, 1)), feature_group_count=1,
        input_dimensions=(0, 1, 2, 3), kernel_dimensions=(0, 1, 2, 3), output_dimensions=(0, 1, 2, 3),
    )  # fmt: skip
    graph = builder.build([result])
    base = region_of(graph, "r", graph.nodes).definition.program
    schedule = vectorised(Schedule(base, machine("x86-64-v3"), numerics("default"), origin=base), frozenset(("x1",)))
    (split,) = [str(step) for step in schedule.trace if ".row'" in str(step) and "split" in str(step)]
    assert f"loop='v0.{row}'" in split
