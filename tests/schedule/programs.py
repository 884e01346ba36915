"""Small computations that the schedule tests transform, and a way to run a program on integer-valued data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilework.compute.nest import loop_program
from tilework.compute.notation import Axis, Computation, Stage
from tilework.dims import Symbol, dim
from tilework.dtypes import float32
from tilework.loops.expressions import Load, call, constant
from tilework.loops.interpret import interpret
from tilework.loops.program import Buffer, LoopProgram, buffer
from tilework.loops.reducers import reducer


def load(source: Buffer, *index: Any) -> Load:
    return Load(source.name, tuple(dim(i) for i in index), source.dtype)


def _symbols(*extents: Any) -> tuple[Symbol, ...]:
    return tuple(Symbol(name) for name in sorted({name for extent in extents for name in dim(extent).names()}))


def matrix_product(rows: Any, columns: Any, depth: Any) -> LoopProgram:
    """c[i, j] = sum over k of a[i, k] * b[k, j]."""
    a, b = buffer("a", float32, rows, depth), buffer("b", float32, depth, columns)
    c = buffer("c", float32, rows, columns)
    axes = (Axis("i", dim(rows)), Axis("j", dim(columns)), Axis("k", dim(depth), "reduction"))
    value = load(a, "i", "k") * load(b, "k", "j")
    stage = Stage("c", (c,), axes, (value,), None, reducer("sum", float32), (constant(0, float32),))
    return loop_program(Computation("matrix_product", (a, b), (c,), (stage,), _symbols(rows, columns, depth)))


def chain(rows: Any, columns: Any) -> LoopProgram:
    """t = x + y; u = t * t; out = u - x, with y of one row."""
    x, y = buffer("x", float32, rows, columns), buffer("y", float32, columns)
    t, u, out = (buffer(name, float32, rows, columns) for name in ("t", "u", "out"))

    def stage(target: Buffer, prefix: str, value: Any) -> Stage:
        return Stage(
            target.name, (target,), (Axis(f"{prefix}0", dim(rows)), Axis(f"{prefix}1", dim(columns))), (value,)
        )

    first = stage(t, "p", load(x, "p0", "p1") + load(y, "p1"))
    second = stage(u, "q", load(t, "q0", "q1") * load(t, "q0", "q1"))
    third = stage(out, "r", load(u, "r0", "r1") - load(x, "r0", "r1"))
    return loop_program(Computation("chain", (x, y), (out,), (first, second, third), _symbols(rows, columns)))


def row_maximum(rows: Any, columns: Any) -> LoopProgram:
    """out[i] = largest of x[i, k] + 1."""
    x, out = buffer("x", float32, rows, columns), buffer("out", float32, rows)
    axes = (Axis("i", dim(rows)), Axis("k", dim(columns), "reduction"))
    value = call("add", load(x, "i", "k"), 1)
    start = (constant(float("-inf"), float32),)
    stage = Stage("out", (out,), axes, (value,), None, reducer("maximum", float32), start)
    return loop_program(Computation("row_maximum", (x,), (out,), (stage,), _symbols(rows, columns)))


def run(program: LoopProgram, seed: int, **symbols: int) -> dict[str, np.ndarray[Any, Any]]:
    """Every argument after a run on small integers (so that any order of summation gives the same bits)."""
    rng = np.random.default_rng(seed)
    arrays = {
        argument.buffer.name: rng.integers(
            -4, 5, [int(extent.evaluate(symbols)) for extent in argument.buffer.shape]
        ).astype(np.float32)
        for argument in program.arguments
    }
    interpret(program, arrays, symbols, seed=seed)
    return arrays


def same_values(before: LoopProgram, after: LoopProgram, seed: int, **symbols: int) -> None:
    """Assert that two programs leave the same bits in every argument."""
    expected, found = run(before, seed, **symbols), run(after, seed, **symbols)
    for name, array in expected.items():
        np.testing.assert_array_equal(array, found[name], err_msg=name)
