"""Several kernels in one module, and loops that need no function of their own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering.native import Native, jit
from tilework import dtypes
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.codegen.cpu.modules import SHARED, joined_text
from tilework.codegen.cpu.objects import symbol_table
from tilework.dims import dim
from tilework.loops.expressions import Load, call, constant
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, buffer
from tilework.machine.finder import machine
from tilework.numerics import numerics

F = dtypes.float32
DEFINED = f"define internal preserve_mostcc i1 @{SHARED}("


def doubled(extent: int, kind: str) -> LoopProgram:
    """y[i] = 2 x[i]."""
    x, y = buffer("x", F, extent), buffer("y", F, extent)
    value = call("multiply", Load("x", (dim("i"),), F), constant(2.0, F))
    statement = Compute("y", (Access("y", (dim("i"),)),), (value,))
    body = Loop("i", dim(extent), "parallel" if kind == "parallel" else "serial", statement)
    return LoopProgram("doubled", (Argument(x, "read"), Argument(y, "write")), body)


def test_kernels_that_look_for_signals_share_one_function() -> None:
    program = doubled(1 << 30, "serial")
    texts = [emit_kernel(program, machine("host"), numerics("strict"), name=name).ir for name in ("first", "second")]
    assert all(text.count(DEFINED) == 1 for text in texts)
    joined = joined_text(texts)
    assert joined.count(DEFINED) == 1
    assert joined.count(f"@{SHARED}(") == sum(text.count(f"@{SHARED}(") for text in texts) - 1
    table = symbol_table(jit()[0].compile_object(joined))
    assert table is not None
    assert set(table.defined) == {"first", "second"}


@pytest.mark.parametrize(("extent", "regions"), [(0, 0), (1, 0), (37, 0), (1 << 20, 1)])
def test_a_loop_of_one_chunk_is_no_function_of_its_own(extent: int, regions: int) -> None:
    native = Native(doubled(extent, "parallel"))
    assert native.text.ir.count("define internal void") == regions
    x = np.arange(extent, dtype=np.float32)
    outcome = native.run({"x": x, "y": np.zeros(extent, np.float32)})
    np.testing.assert_array_equal(outcome.arrays["y"], 2 * x)
