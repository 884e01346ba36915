"""Lanes that lie near each other in a known order: x[i // 2] and the like, kept inside at the edges or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.dims import Dim, Symbol, dim, maximum, minimum
from tilework.dtypes import DType
from tilework.loops.expressions import Load
from tilework.loops.interpret import interpret
from tilework.loops.program import Access, Argument, Buffer, Compute, LoopProgram
from tilework.loops.program import Loop as LoopNode
from tilework.lowering.builder import Builder
from tilework.lowering.lane_patterns import chunks, in_order
from tilework.lowering.registers import Instruction
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.recipes.cpu.vector_nest import vectorised
from tilework.schedule.schedule import Schedule

EXTENTS = [1, 2, 3, 7, 8, 15, 16, 33, 64]


def picking(own: Dim, count: Dim, position: Dim, dtype: DType, symbols: tuple[Symbol, ...] = ()) -> LoopProgram:
    """y[i] = x[position], vectorised as the recipes do it."""
    x, y = Buffer("x", (own,), dtype), Buffer("y", (count,), dtype)
    body = Compute("s", (Access("y", (dim("i"),)),), (Load("x", (position,), dtype),))
    arguments = (Argument(x, "read"), Argument(y, "write"))
    program = LoopProgram("picking", arguments, LoopNode("i", count, "serial", body), symbols)
    return vectorised(Schedule(program, machine("host"), numerics("default"))).program


def values(count: int, dtype: DType) -> Any:
    return (np.arange(count) % 100 if dtype.kind != "boolean" else np.arange(count) % 3 == 0).astype(dtype.numpy)


def compare(program: LoopProgram, x: Any, count: int, symbols: dict[str, int], checked: bool) -> None:
    arrays = {"x": x, "y": np.full(count, 7).astype(x.dtype)}
    wanted = {name: array.copy() for name, array in arrays.items()}
    interpret(program, wanted, symbols)
    outcome = Native(program, checked=checked).run(arrays, symbols)
    assert (outcome.status, outcome.error) == (0, 0)
    np.testing.assert_array_equal(outcome.arrays["y"], wanted["y"])


def position(start: int, step: int, divisor: int, last: Dim) -> Dim:
    found = (dim("i") * step + start) // divisor
    return maximum(0, minimum(found, last))


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    "how", [(0, 1, 2), (-1, 1, 2), (1, 1, 2), (-3, 1, 4), (5, 3, 4), (0, 2, 1), (2, 1, 8), (0, 1, 3), (-7, 3, 8)]
)
def test_every_extent(how: tuple[int, int, int], checked: bool) -> None:
    for own in EXTENTS:
        count = max(1, own * how[2] // how[1])
        program = picking(dim(own), dim(count), position(*how, dim(own - 1)), dtypes.float32)
        compare(program, values(own, dtypes.float32), count, {}, checked)


@pytest.mark.parametrize("how", [(-1, 1, 2), (1, 1, 2), (-3, 1, 4)])
def test_symbolic_extents(how: tuple[int, int, int]) -> None:
    program = picking(dim("n"), dim("n") * 2, position(*how, dim("n") - 1), dtypes.float32, (Symbol("n", 1),))
    for own in EXTENTS:
        compare(program, values(own, dtypes.float32), own * 2, {"n": own}, False)


@pytest.mark.parametrize(
    "dtype", [dtypes.float64, dtypes.float16, dtypes.int8, dtypes.int32, dtypes.int64, dtypes.boolean], ids=str
)
def test_element_types(dtype: DType) -> None:
    for own in (1, 16, 37):
        program = picking(dim(own), dim(own * 2), position(-1, 1, 2, dim(own - 1)), dtype)
        compare(program, values(own, dtype), own * 2, {}, False)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
def test_whole_vectors_are_read_instead_of_elements(target: str) -> None:
    x, y = Buffer("x", (dim(64),), dtypes.float32), Buffer("y", (dim(128),), dtypes.float32)
    body = Compute("s", (Access("y", (dim("i"),)),), (Load("x", (dim("i") // 2,), dtypes.float32),))
    arguments = (Argument(x, "read"), Argument(y, "write"))
    program = LoopProgram("picking", arguments, LoopNode("i", dim(128), "serial", body), ())
    schedule = vectorised(Schedule(program, machine(target), numerics("default")))
    text = emit_kernel(schedule.program, machine(target), numerics("default")).ir
    assert "shufflevector" in text
    assert "gather" not in text


def test_vectors_to_read_end_with_the_last_element() -> None:
    assert chunks((0, 0, 1, 1, 2, 2, 3, 3), 8) == (4, [0])
    assert chunks((-1, 0, 0, 1, 1, 2, 2, 3), 8) == (4, [-1, 0])
    assert chunks((5, 5, 5, 5), 4) == (1, [5])
    assert chunks(tuple(range(0, 24, 3)), 8) == (8, [0, 8, 14])


@pytest.mark.parametrize("offsets", [(0, 0, 1, 2), (0, 3, 6, 9), (9, 0, 5, 14), (2, 2, 2, 3)])
def test_lanes_are_put_in_order(offsets: tuple[int, ...]) -> None:
    builder = Builder()
    size, starts = chunks(offsets, 4)
    parts = [builder.fresh("f32", size) for _ in starts]
    where = {id(part): [start + k for k in range(size)] for part, start in zip(parts, starts, strict=True)}
    result = in_order(builder, parts, starts, offsets)
    for item in builder.scopes[0].block.items:
        assert isinstance(item, Instruction)
        a, b = item.operands
        both = [*where[id(a)], *where[id(b)]]
        where[id(item.result)] = [both[k] for k in item.extra]
    assert where[id(result)] == list(offsets)
