"""Lanes a few elements apart of which some are off: whole vectors by masks and shuffles, and nothing else is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering.native import Native
from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.dims import Dim, Symbol, dim
from tilework.dtypes import DType
from tilework.loops.expressions import Load
from tilework.loops.interpret import interpret
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.schedule.schedule import Schedule

COUNTS = [1, 2, 7, 8, 9, 16, 21]


def picking(own: Dim, count: Dim, step: int, start: int, dtype: DType, symbols: tuple[Symbol, ...] = ()) -> LoopProgram:
    """y[i] = x[step * i + start] where there is such an element, eight lanes at a time."""
    x, y = Buffer("x", (own,), dtype), Buffer("y", (count,), dtype)
    position = dim("i") * step + start
    body = Compute(
        "s", (Access("y", (dim("i"),)),), (Load("x", (position,), dtype),), guards=(position, own - 1 - position)
    )
    arguments = (Argument(x, "read"), Argument(y, "write"))
    program = LoopProgram("picking", arguments, Loop("i", count, "serial", body), symbols)
    schedule = Schedule(program, machine("host"), numerics("default"))
    return schedule.split("i", 8, "i.outer", "i.lanes", tail="mask").vectorize("i.lanes").program


def compare(program: LoopProgram, own: int, count: int, dtype: DType, symbols: dict[str, int], checked: bool) -> None:
    x = (np.arange(own) % 100 + 1).astype(dtype.numpy)
    arrays = {"x": x, "y": np.full(count, 7).astype(x.dtype)}
    wanted = {name: array.copy() for name, array in arrays.items()}
    interpret(program, wanted, symbols)
    outcome = Native(program, checked=checked).run(arrays, symbols)
    assert (outcome.status, outcome.error) == (0, 0)
    np.testing.assert_array_equal(outcome.arrays["y"], wanted["y"])


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
@pytest.mark.parametrize("start", [0, -1, -5, 3])
def test_lanes_beyond_both_ends(step: int, start: int, checked: bool) -> None:
    for count in COUNTS:
        for own in {max(1, step * count - 3), step * count + 2}:
            program = picking(dim(own), dim(count), step, start, dtypes.float32)
            compare(program, own, count, dtypes.float32, {}, checked)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_free_extents(step: int) -> None:
    symbols = (Symbol("n", 1), Symbol("m", 1))
    program = picking(dim("n"), dim("m"), step, -2, dtypes.float32, symbols)
    for count in COUNTS:
        own = step * count - 1
        compare(program, own, count, dtypes.float32, {"n": own, "m": count}, False)


@pytest.mark.parametrize(
    "dtype", [dtypes.float64, dtypes.float16, dtypes.int8, dtypes.int32, dtypes.int64, dtypes.boolean], ids=str
)
def test_element_types(dtype: DType) -> None:
    for count in COUNTS:
        compare(picking(dim(2 * count), dim(count), 2, -1, dtype), 2 * count, count, dtype, {}, False)


@pytest.mark.parametrize(("name", "gathers"), [("x86-64-v3", False), ("x86-64-v4", False), ("aarch64", True)])
def test_no_lane_is_fetched_on_its_own_where_masks_are_instructions(name: str, gathers: bool) -> None:
    program = picking(dim(40), dim(21), 2, -1, dtypes.float32)
    text: Any = emit_kernel(program, machine(name), numerics("default")).ir
    assert ("masked.gather" in text) == gathers
