"""Where partial results may not stay in registers: starts that come again, and lanes that meet in the target."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.lowering.native import Native
from tilework.dims import dim
from tilework.dtypes import float32
from tilework.loops.expressions import Load, cast, constant, index
from tilework.loops.interpret import interpret
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, Node, buffer
from tilework.loops.reducers import reducer


def check(body: Node, arguments: tuple[Argument, ...], arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    program = LoopProgram("program", arguments, body)
    expected = {name: array.copy() for name, array in arrays.items()}
    interpret(program, expected)
    outcome = Native(program).run({name: array.copy() for name, array in arrays.items()})
    for name, array in expected.items():
        np.testing.assert_array_equal(outcome.arrays[name], array, err_msg=name)


def test_a_loop_that_is_neither_reduced_nor_in_the_target_starts_anew() -> None:
    x = np.random.default_rng(0).integers(-3, 4, (8, 5)).astype(np.float32)
    value = Load("x", (dim("i"), dim("k")), float32) + cast(index("p"), float32)
    target = (Access("c", (dim("i"),)),)
    statement = Compute("c", target, (value,), reducer("sum", float32), (constant(0, float32),), ("k",))
    lanes = Loop("i", dim(8), "vectorized", statement)
    body = Loop("p", dim(3), "serial", Loop("k", dim(5), "serial", lanes))
    arguments = (Argument(buffer("x", float32, 8, 5), "read"), Argument(buffer("c", float32, 8), "write"))
    check(body, arguments, {"x": x, "c": np.zeros(8, np.float32)})


def test_lanes_around_a_serial_reduction_are_combined() -> None:
    y = np.random.default_rng(1).integers(-3, 4, (3, 8, 5)).astype(np.float32)
    value = Load("y", (dim("i"), dim("k"), dim("l")), float32)
    statement = Compute("c", (Access("c", (dim("i"),)),), (value,), reducer("sum", float32), None, ("k", "l"))
    body = Loop("i", dim(3), "serial", Loop("k", dim(8), "vectorized", Loop("l", dim(5), "serial", statement)))
    arguments = (Argument(buffer("y", float32, 3, 8, 5), "read"), Argument(buffer("c", float32, 3), "accumulate"))
    check(body, arguments, {"y": y, "c": np.ones(3, np.float32)})
