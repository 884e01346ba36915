"""Maps that read along another dimension than they write, under the general recipe: every permutation, element type
and way (tiles where they lie, blocks of their own), with sizes known and unknown.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.codegen.cpu.llvm import emit_assembly
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol, dim
from tilework.dtypes import DType
from tilework.loops.expressions import Expression, Load, call, cast
from tilework.loops.interpret import interpret
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram, Node, Storage, walk
from tilework.machine.cpu import Cache, CpuMachine
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.ops.builder import GraphBuilder
from tilework.recipes.cpu.vector_nest import vectorised
from tilework.runtime.context import Context, ContextOptions
from tilework.schedule.schedule import Schedule

Array = np.ndarray[Any, np.dtype[Any]]
TYPES = (
    dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.float16, dtypes.bfloat16,
    dtypes.int32, dtypes.int64, dtypes.boolean,
)  # fmt: skip
PERMUTATIONS = [p for rank in (2, 3, 4) for p in itertools.permutations(range(rank)) if p != tuple(range(rank))]


def small() -> CpuMachine:
    """This machine with caches so small that results of eight thousand bytes are larger than the last one."""
    return replace(machine("host"), caches=(Cache(1, 1024, 8), Cache(2, 8192, 8)))


def permuted(shape: Sequence[Any], order: Sequence[int], dtype: DType, work: str = "move") -> LoopProgram:
    """y = x with its dimensions in another order, and some work around it."""
    extents = [dim(s) for s in shape]
    result = [extents[d] for d in order]
    names = [f"i{n}" for n in range(len(order))]
    place = tuple(dim(n) for n in names)
    index = tuple(place[list(order).index(d)] for d in range(len(order)))
    value: Expression = Load("x", index, dtype)
    buffers = [Buffer("x", tuple(extents), dtype)]
    target = dtype
    if work == "bias":
        buffers += [Buffer("b", (result[-1],), dtype), Buffer("c", (result[0],), dtype)]
        value = call("add", call("add", value, Load("b", place[-1:], dtype)), Load("c", place[:1], dtype))
    elif work == "cast":
        target = dtypes.float32 if dtype != dtypes.float32 else dtypes.float64
        value = cast(value, target)
    elif work == "two":
        buffers.append(Buffer("w", tuple(extents), dtype))
        value = call("subtract", value, Load("w", index, dtype))
    elif work == "slow":
        value = call("exp", value)
    node: Node = Compute("y", (Access("y", place),), (value,))
    for name, extent in zip(reversed(names), reversed(result), strict=True):
        node = Loop(name, extent, "serial", node)
    arguments = (*(Argument(b, "read") for b in buffers), Argument(Buffer("y", tuple(result), target), "write"))
    symbols = tuple(Symbol(name, 0) for name in sorted({s for s in shape if isinstance(s, str)}))
    return LoopProgram("permuted", arguments, node, symbols)


def scheduled(program: LoopProgram, target: CpuMachine | None = None, level: str = "default") -> Schedule:
    return vectorised(Schedule(program, target or machine("host"), numerics(level)))  # type: ignore[arg-type]


def data(random: np.random.Generator, dtype: DType, shape: Sequence[int]) -> Array:
    if dtype == dtypes.boolean:
        return random.integers(0, 2, shape).astype(bool)
    return random.integers(0 if dtype.kind == "unsigned" else -9, 10, shape).astype(dtype.numpy)


def check(program: LoopProgram, native: Native, sizes: Mapping[str, int], seed: int, ulp: int = 0) -> None:
    """Machine code returns what the program as it was written does, and writes nothing else."""
    random = np.random.default_rng(seed)
    given = {
        a.buffer.name: data(random, a.buffer.dtype, [int(e.evaluate(sizes)) for e in a.buffer.shape])
        for a in program.arguments
    }
    wanted = {name: array.copy() for name, array in given.items()}
    interpret(program, wanted, sizes)
    outcome = native.run(given, sizes)
    assert outcome.status == 0
    have, want = outcome.arrays["y"], wanted["y"]
    if ulp:
        np.testing.assert_array_max_ulp(have, want, ulp)
    else:
        np.testing.assert_array_equal(have.view(np.uint8), want.view(np.uint8))


def tiles(schedule: Schedule) -> list[Buffer]:
    return [n.buffer for n in walk(schedule.program.body) if isinstance(n, Storage) and n.buffer.scope == "register"]


def blocks(schedule: Schedule) -> list[Buffer]:
    return [n.buffer for n in walk(schedule.program.body) if isinstance(n, Storage) and n.buffer.scope == "global"]


@pytest.mark.parametrize("order", PERMUTATIONS)
@pytest.mark.parametrize("large", [False, True])
def test_every_permutation(order: tuple[int, ...], large: bool) -> None:
    random = np.random.default_rng((*order, large))
    dtype = TYPES[int(random.integers(len(TYPES)))]
    top = {2: 90, 3: 24, 4: 13}[len(order)]
    shape = [int(random.integers(1, top)) for _ in order]
    program = permuted(shape, order, dtype)
    schedule = scheduled(program, small() if large else None)
    check(program, Native(schedule.program), {}, int(random.integers(99)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("checked", [False, True])
def test_every_type(dtype: DType, checked: bool) -> None:
    program = permuted((3, 37, 53), (2, 0, 1), dtype)
    schedule = scheduled(program)
    assert tiles(schedule)
    check(program, Native(schedule.program, checked=checked), {}, 1)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int8, dtypes.float16])
@pytest.mark.parametrize("sizes", [(128, 129), (192, 128), (1, 9000), (96, 96), (3008, 40)])
def test_blocks(dtype: DType, sizes: tuple[int, int]) -> None:
    """Blocks of their own, whole and partial, with stores past the caches where they line up."""
    program = permuted(sizes, (1, 0), dtype)
    schedule = scheduled(program, small())
    assert bool(blocks(schedule)) == (min(sizes) > 1)
    native = Native(schedule.program, on=small(), streaming=frozenset("y"))
    check(program, native, {}, 2)


@pytest.mark.parametrize("work", ["bias", "cast", "two", "slow"])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int16, dtypes.float16])
def test_work_around(work: str, large: bool, dtype: DType) -> None:
    if work == "slow" and not dtype.is_floating:
        pytest.skip("exp is of floats")
    program = permuted((2, 35, 41), (0, 2, 1), dtype, work)
    schedule = scheduled(program, small() if large else None)
    assert len(tiles(schedule)) == (2 if work == "two" else 1)
    check(program, Native(schedule.program), {}, 3, ulp=4 if work == "slow" else 0)


@pytest.mark.parametrize("order", [(1, 0), (0, 2, 1), (2, 1, 0), (0, 3, 1, 2), (0, 2, 3, 1), (0, 2, 1, 3)])
@pytest.mark.parametrize("large", [False, True])
def test_symbols(order: tuple[int, ...], large: bool) -> None:
    program = permuted([f"n{d}" for d in range(len(order))], order, dtypes.float32)
    schedule = scheduled(program, small() if large else None)
    assert bool(tiles(schedule)) == (order[-1] != len(order) - 1)
    native = Native(schedule.program)
    random = np.random.default_rng(order)
    for case in range(6):
        top = (2, 2, 5, 9, 20, 40)[case] if len(order) > 2 else (2, 2, 9, 40, 130, 300)[case]
        check(program, native, {f"n{d}": int(random.integers(top)) + case // 2 for d in range(len(order))}, case)


def test_images() -> None:
    """Rows and columns of an image are walked as one, whatever side of the channels they are on."""
    for order in ((0, 2, 3, 1), (0, 3, 1, 2)):
        program = permuted((2, 7, 13, 24) if order[1] == 3 else (2, 24, 7, 13), order, dtypes.float32)
        schedule = scheduled(program)
        (tile,) = tiles(schedule)
        assert len(tile.shape) == 3
        check(program, Native(schedule.program), {}, 4)


def test_rows_that_meet_in_the_cache_go_through_blocks() -> None:
    assert not blocks(scheduled(permuted((1000, 1000), (1, 0), dtypes.float32)))
    assert blocks(scheduled(permuted((1024, 1024), (1, 0), dtypes.float32)))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int16, dtypes.int8])
def test_blocks_of_large_results(dtype: DType) -> None:
    """What is read comes in runs of up to a page, what is written in 256 bytes, and both fit into half a cache."""
    target = machine("x86-64-v3")
    schedule = scheduled(permuted((16384, 8192), (1, 0), dtype), target)
    (block,) = blocks(schedule)
    read, _, rows, lanes = (int(extent) for extent in block.shape)
    assert read * lanes * dtype.itemsize == 256
    run = int(block.shape[1]) * rows * dtype.itemsize
    assert run == min(target.page_bytes, (256 << 10) * dtype.itemsize // 256)
    outermost = schedule.program.body
    assert isinstance(outermost, Loop)
    assert outermost.variable == "i1.block"
    small_one = scheduled(permuted((1024, 1024), (1, 0), dtype), target)
    assert all(int(b.bytes) <= 64 << 10 for b in blocks(small_one))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int8])
def test_whole_tiles_have_no_masks(dtype: DType) -> None:
    """Sizes that tiles do not divide cost masks and branches at the edges only."""
    text = emit_kernel(scheduled(permuted((997, 1003), (1, 0), dtype)).program, machine("host"), numerics("default"))
    parts = re.split(r"^\w+:$", text.ir, flags=re.MULTILINE)
    plain = [part for part in parts if part.count("shufflevector") >= 8 and " select " not in part]
    assert any(" store <" in part and "@llvm.masked" not in part for part in plain)


def test_elements_stay_as_they_are() -> None:
    bits = np.random.default_rng(5).integers(0, 1 << 16, (40, 50)).astype(np.uint16)
    for dtype in (dtypes.float16, dtypes.bfloat16):
        native = Native(scheduled(permuted((40, 50), (1, 0), dtype)).program)
        outcome = native.run({"x": bits.view(dtype.numpy), "y": np.zeros((50, 40), dtype.numpy)})
        np.testing.assert_array_equal(outcome.arrays["y"].view(np.uint16), bits.T)


def test_what_is_no_such_map_is_left_alone() -> None:
    for order in ((0, 2, 1, 3), (1, 0, 2)):
        assert not tiles(scheduled(permuted((8, 9, 16, 32)[: len(order)], order, dtypes.float32)))


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_other_machines(name: str) -> None:
    target = machine(name)
    for dtype in (dtypes.float32, dtypes.int8):
        schedule = scheduled(permuted((512, 768), (1, 0), dtype), target)
        text = emit_kernel(schedule.program, target, numerics("default"))
        assembly = emit_assembly(text.ir, target)
        assert "gather" not in assembly


@pytest.mark.parametrize("shape", [(16, 16), (64, 40), (8, 33)])
def test_an_element_that_is_used_twice(shape: tuple[int, int]) -> None:
    """A long function of an element times the element, turned: the copy of a block has two readers in one statement."""
    builder = GraphBuilder("twice")
    x = builder.input("x", dtypes.float32, *shape)
    product = builder.apply_one("multiply", builder.apply_one("logistic", x), x)
    graph = builder.build([builder.apply_one("transpose", product, permutation=(1, 0))])
    given = np.random.default_rng(shape[1]).standard_normal(shape, np.float32)
    with Context(ContextOptions(threads=1)) as context:
        (found,) = compile_graph(graph, CompileOptions(), context)(given)
    np.testing.assert_allclose(found, (given / (1 + np.exp(-given.astype(np.float64)))).T, 1e-6)
