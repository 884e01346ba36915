"""The register-pressure predictor against the spills that LLVM's code really has."""

from __future__ import annotations

import re

import pytest

from tests.schedule.programs import chain, load, matrix_product
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.codegen.cpu.llvm import emit_assembly
from tilework.compute.nest import loop_program
from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import dim
from tilework.dtypes import float32
from tilework.loops.expressions import call, constant
from tilework.loops.program import EMPTY, LoopProgram, buffer
from tilework.loops.reducers import reducer
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.schedule.pressure import register_pressure, worst_pressure
from tilework.schedule.schedule import Schedule

V4 = ((8, 3), (1, 3), (4, 2), (24, 1), (28, 1), (31, 1), (7, 4), (6, 4), (10, 3), (9, 3), (15, 2), (14, 2), (5, 5),
      (4, 6), (2, 12), (3, 8), (5, 4))  # fmt: skip
V3 = ((6, 2), (4, 3), (3, 4), (5, 2), (7, 2), (8, 1), (14, 1), (15, 1), (2, 6), (2, 5), (3, 3), (5, 3))


def tiled(program: LoopProgram, name: str, rows: int, vectors: int, *, rows_inside: bool = False) -> Schedule:
    """A tile of `rows` rows and `vectors` vectors of c in registers; `rows_inside` keeps a and streams b."""
    target = machine(name)
    lanes = target.lanes(32)
    schedule = Schedule(program, target, numerics("default"))
    unrolled: list[str] = []
    if vectors > 1:
        schedule = schedule.split("j", lanes * vectors, "j0", "jr").split("jr", lanes, "j1", "j2")
        unrolled = ["j1"]
    else:
        schedule = schedule.split("j", lanes, "j0", "j2")
    if rows > 1:
        schedule = schedule.split("i", rows, "i0", "i1")
        unrolled = [*unrolled, "i1"] if rows_inside else ["i1", *unrolled]
    outer = "i0" if rows > 1 else "i"
    schedule = schedule.reorder("j0", outer, "k", *unrolled, "j2")
    for variable in unrolled:
        schedule = schedule.unroll(variable)
    return schedule.vectorize("j2").cache_write("c", outer, "acc")


def product(name: str, rows: int, vectors: int, *, rows_inside: bool = False) -> Schedule:
    wide = machine(name).lanes(32) * vectors
    return tiled(matrix_product(rows * 2, wide * 2, 64), name, rows, vectors, rows_inside=rows_inside)


def max_plus(name: str, rows: int, vectors: int) -> Schedule:
    """c[i, j] = largest over k of a[i, k] + b[k, j]: the sum needs a register that a multiply-add does not."""
    wide = machine(name).lanes(32) * vectors
    a, b, c = buffer("a", float32, rows * 2, 64), buffer("b", float32, 64, wide * 2), buffer("c", float32, rows * 2,
    wide * 2)  # fmt: skip
    axes = (Axis("i", dim(rows * 2)), Axis("j", dim(wide * 2)), Axis("k", dim(64), "reduction"))
    value = load(a, "i", "k") + load(b, "k", "j")
    start = (constant(float("-inf"), float32),)
    stage = Stage("c", (c,), axes, (value,), None, reducer("maximum", float32), start)
    return tiled(loop_program(Computation("max_plus", (a, b), (c,), (stage,))), name, rows, vectors)


def spills(schedule: Schedule, name: str, instruction: str) -> int:
    """Vector stack references in the part of the code that has most of one instruction."""
    target = machine(name)
    assembly = emit_assembly(emit_kernel(schedule.program, target, schedule.numerics).ir, target)
    hottest = max(re.split(r"\n(?=\.LBB\S+:)", assembly), key=lambda part: part.count(instruction))
    frame = "sb" if re.search(r"movq\s+%rsp, %rbp", assembly) else "s"  # else rbp is a register like any other
    lines = [line for line in hottest.splitlines() if re.search(r"%[yz]mm", line)]
    return sum(1 for line in lines if re.search(rf"\(%r[{frame}]p[,)]", line))


@pytest.mark.parametrize(("name", "rows", "vectors"), [("x86-64-v4", *t) for t in V4] + [("x86-64-v3", *t) for t in V3])
def test_tiles_spill_where_it_says(name: str, rows: int, vectors: int) -> None:
    schedule = product(name, rows, vectors)
    found = worst_pressure(schedule.program, machine(name))
    assert found is not None
    assert (found.loop, found.cells, found.exact) == ("k", rows * vectors, True)
    if vectors > 1 and rows > 1:
        assert found.live == rows * vectors + vectors + 1
    assert (spills(schedule, name, "vfmadd") == 0) == found.fits


@pytest.mark.parametrize(("columns", "vectors"), [(14, 2), (15, 2), (9, 3), (10, 3), (7, 4)])
def test_convolutions(columns: int, vectors: int) -> None:
    """A 3 x 3 convolution keeps `columns` pixels of some channels: pixels are broadcast, weights are kept."""
    wide = 16 * vectors
    x, w = buffer("x", float32, 6, columns + 2, 32), buffer("w", float32, 3, 3, 32, wide * 2)
    y = buffer("y", float32, 4, columns, wide * 2)
    reductions = ("p", "q", "c")
    axes = tuple(
        Axis(name, dim(size), "reduction" if name in reductions else "parallel")
        for name, size in (("h", 4), ("i", columns), ("j", wide * 2), ("p", 3), ("q", 3), ("c", 32))
    )
    value = load(x, dim("h") + "p", dim("i") + "q", "c") * load(w, "p", "q", "c", "j")
    stage = Stage("y", (y,), axes, (value,), None, reducer("sum", float32), (constant(0, float32),))
    schedule = Schedule(loop_program(Computation("convolution", (x, w), (y,), (stage,))), machine("x86-64-v4"))
    schedule = schedule.split("j", wide, "j0", "jr").split("jr", 16, "j1", "j2")
    schedule = schedule.reorder("h", "j0", "p", "q", "c", "i", "j1", "j2").unroll("i").unroll("j1").vectorize("j2")
    schedule = schedule.cache_write("y", "j0", "acc")
    found = worst_pressure(schedule.program, machine("x86-64-v4"))
    assert found is not None
    assert (found.loop, found.live) == ("c", columns * vectors + vectors + 1)
    assert (spills(schedule, "x86-64-v4", "vfmadd") == 0) == found.fits


@pytest.mark.parametrize("rows", [(8, 3), (4, 6), (7, 4), (10, 3), (2, 12), (3, 8)])
def test_the_order_of_unrolled_loops_matters(rows: tuple[int, int]) -> None:
    """Past the limit there are always spills; well below it there are none."""
    schedule = product("x86-64-v4", *rows, rows_inside=True)
    found = worst_pressure(schedule.program, machine("x86-64-v4"))
    assert found is not None
    assert found.live == rows[0] * rows[1] + rows[0] + 1
    count = spills(schedule, "x86-64-v4", "vfmadd")
    if not found.fits:
        assert count > 0
    elif found.live <= 30:
        assert count == 0


@pytest.mark.parametrize(
    ("name", "rows", "vectors"),
    [("x86-64-v4", 8, 3), ("x86-64-v4", 9, 3), ("x86-64-v4", 10, 3), ("x86-64-v4", 6, 4), ("x86-64-v3", 4, 2),
     ("x86-64-v3", 6, 2), ("x86-64-v3", 3, 3), ("x86-64-v3", 4, 3), ("x86-64-v3", 5, 3)],
)  # fmt: skip
def test_a_body_that_is_no_multiply_add(name: str, rows: int, vectors: int) -> None:
    schedule = max_plus(name, rows, vectors)
    found = worst_pressure(schedule.program, machine(name))
    assert found is not None
    mask = 0 if name == "x86-64-v4" else 1
    assert found.live == rows * vectors + vectors + 2 + mask
    assert (spills(schedule, name, "vmax") == 0) == found.fits


def test_reductions_into_memory_count_as_cells() -> None:
    schedule = Schedule(matrix_product(8, 64, 32), machine("x86-64-v4"), numerics("default"))
    schedule = schedule.split("j", 16, "j0", "j1").reorder("i", "j0", "k", "j1").vectorize("j1")
    (found,) = register_pressure(schedule.program, machine("x86-64-v4"))
    assert (found.loop, found.cells) == ("k", 1)


def test_scalar_code_and_wide_lanes() -> None:
    (first, second, third) = register_pressure(chain(4, 8), machine("x86-64-v3"))
    assert (first.loop, first.cells) == ("p1", 0)
    assert second.operands == 2  # t is read twice by one instruction, and the product
    assert third.operands == 1  # x is taken from memory
    wide = Schedule(chain(4, 32), machine("x86-64-v3"), numerics("default")).vectorize("p1").vectorize("q1")
    found = register_pressure(wide.program, machine("x86-64-v3"))
    assert found[1].operands == 8  # 32 lanes are four registers


def test_operands_that_the_loop_does_not_move_are_kept() -> None:
    x, y, out = buffer("x", float32, 64, 16), buffer("y", float32, 16), buffer("out", float32, 64, 16)
    stage = Stage(
        "out", (out,), (Axis("i", dim(64)), Axis("j", dim(16))), (load(x, "i", "j") + load(y, "j"),)
    )  # fmt: skip
    schedule = Schedule(loop_program(Computation("bias", (x, y), (out,), (stage,))), machine("x86-64-v4"))
    (found,) = register_pressure(schedule.vectorize("j").program, machine("x86-64-v4"))
    assert (found.loop, found.cells, found.operands) == ("i", 0, 2)


def test_polynomials_are_estimates_and_huge_bodies_are_left_out() -> None:
    x, out = buffer("x", float32, 8192), buffer("out", float32, 8192)
    stage = Stage("out", (out,), (Axis("i", dim(8192)),), (call("exp", load(x, "i")),))
    program = loop_program(Computation("e", (x,), (out,), (stage,)))
    (found,) = register_pressure(program, machine("x86-64-v4"))
    assert not found.exact
    assert found.fits
    unrolled = Schedule(program, machine("x86-64-v4")).split("i", 8192 // 2, "i0", "i1").split("i1", 512, "i1", "i2")
    huge = unrolled.unroll("i1").unroll("i2")
    assert register_pressure(huge.program, machine("x86-64-v4"))[0].loop == "i0"
    assert worst_pressure(LoopProgram("nothing", (), EMPTY), machine("host")) is None


@pytest.mark.parametrize(("side", "fits"), [(4, True), (8, True), (16, False)])
def test_turned_tiles(side: int, fits: bool) -> None:
    """All rows of a tile live until its last column is made."""
    n = 8 * side
    x, y = buffer("x", float32, n, n), buffer("y", float32, n, n)
    stage = Stage("y", (y,), (Axis("i", dim(n)), Axis("j", dim(n))), (load(x, "j", "i"),))
    target = machine("x86-64-v3")
    schedule = Schedule(loop_program(Computation("turn", (x,), (y,), (stage,))), target, numerics("default"))
    schedule = schedule.split("i", side, "i0", "i1").split("j", side, "j0", "j1").reorder("i0", "j0", "i1", "j1")
    schedule = schedule.cache_read("x", "j0", "t", "register").unroll("t.0").vectorize("t.1")
    program = schedule.unroll("i1").vectorize("j1").program
    worst = worst_pressure(program, target)
    assert worst is not None
    assert worst.fits == fits
    assembly = emit_assembly(emit_kernel(program, target, numerics("default")).ir, target)
    spilled = re.search(r"vmov\w+\s+%[xy]mm\d+, -?\d*\(%rsp\)", assembly) is not None
    assert spilled != fits
