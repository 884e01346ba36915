"""Small graphs and hand-written plans, compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework import dtypes
from tilework.codegen.cpu.driver import emit_driver
from tilework.codegen.cpu.kernel import KernelText, emit_kernel
from tilework.codegen.cpu.modules import joined_text
from tilework.dims import Dim, IntLike, Symbol, dim
from tilework.dtypes import DType
from tilework.graph.graph import Array, Graph
from tilework.loops.expressions import Expression
from tilework.loops.program import Access, Argument, Buffer, Compute, Loop, LoopProgram
from tilework.machine.finder import machine
from tilework.numerics import numerics
from tilework.ops.builder import GraphBuilder
from tilework.plan.explanation import Explanation
from tilework.plan.plan import Plan
from tilework.plan.steps import KernelStep
from tilework.runtime.context import default_context
from tilework.runtime.executable import Executable

F32 = dtypes.float32
N = Symbol("N", 0, 1 << 20)


def affine(count: int = 2) -> Graph:
    """y = 2 x + 1 over [N, 4], then `count - 1` times more, each a kernel of its own."""
    builder = GraphBuilder("affine", [N])
    value = builder.input("x", F32, "N", 4)
    for _ in range(count):
        value = builder.apply_one("cumulative", value, dimension=1, reducer="sum")
    return builder.build([value])


def affine_wanted(x: Array, count: int = 2) -> Array:
    for _ in range(count):
        x = np.cumsum(x, 1, dtype=np.float32)
    return x


def kernel(
    name: str,
    inputs: Sequence[Buffer],
    output: Buffer,
    value: Expression,
    *,
    loops: Sequence[tuple[str, IntLike]],
    symbols: Sequence[str] = (),
) -> tuple[KernelText, LoopProgram]:
    """A kernel that writes `value` to every element of `output`, over loops named in its index order."""
    index = tuple(dim(loop) for loop, _ in loops)
    body: Any = Compute("s", (Access(output.name, index),), (value,))
    for loop, extent in reversed(loops):
        body = Loop(loop, dim(extent), "serial", body)
    arguments = (*(Argument(b, "read") for b in inputs), Argument(output, "write"))
    names = {*symbols, *(name for b in (*inputs, output) for extent in b.shape for name in extent.names())}
    program = LoopProgram(name, arguments, body, tuple(Symbol(s) for s in sorted(names)))
    return emit_kernel(program, machine("host"), numerics("default"), name=f"test_{name}"), program


def step(
    name: str, made: tuple[KernelText, LoopProgram], arguments: Sequence[str], symbols: Mapping[str, Dim] | None = None
) -> KernelStep:
    text, program = made
    values = tuple((symbols or {}).get(s.name, dim(s.name)) for s in text.signature.symbols)
    return KernelStep(name, text.signature, tuple(arguments), values, program, origin=f"user's {name}")


def executable(plan: Plan, kernels: Sequence[KernelText], constants: Mapping[str, Array] | None = None) -> Executable:
    """A plan written by hand, as the compiler would finish it."""
    context = default_context()
    driver = emit_driver(plan, plan.segments[0], "test_driver")
    texts = {made.name: made.ir for made in kernels}
    code = context.jit.load(
        [context.jit.compile_object(joined_text([*texts.values(), driver]))],
        ["test_driver", *texts],
        uses=[context.pool.code, context.native.code],
    )
    return Executable(
        plan, code, code["test_driver"], constants or {}, context, Explanation(plan.name),
        step_entries={name: code[name] for name in texts},
    )  # fmt: skip


def buffer_of(name: str, dtype: DType, *shape: IntLike) -> Buffer:
    return Buffer(name, tuple(dim(extent) for extent in shape), dtype)
