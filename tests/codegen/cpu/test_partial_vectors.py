"""Vectors of which some lanes are moved, of elements that this machine, or another, has no masked instructions for."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same
from tilework.codegen.cpu.jit import Jit
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.codegen.cpu.partial_vectors import MaskedWidths, masked_widths, pieces
from tilework.dtypes import DType, float16, float32, float64, int8, int16, uint8
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram
from tilework.machine.cpu import CpuMachine
from tilework.machine.finder import machine
from tilework.numerics import numerics


def without_masks() -> CpuMachine:
    """This machine as if it had no masked instructions."""
    host = machine("host")
    left = [f for f in host.features.split(",") if not f.startswith(("+avx", "+fma", "+f16c", "+vaes", "+vpclmul"))]
    return replace(
        host, cpu="x86-64" if host.architecture == "x86" else host.cpu, features=",".join(left), vector_bits=128
    )


def guarded(dtype: DType, lanes: int, guards: str) -> LoopProgram:
    return parse_program(f"""
program guarded
  symbol N in 0..
  symbol K in 0..
  read x: {dtype}[N]
  write y: {dtype}[N]

  serial i < (N + {lanes - 1}) // {lanes}
    vectorized l < {lanes}
      y: y[{lanes}*i + l] = x[{lanes}*i + l] + x[{lanes}*i + l]  where N - 1 - {lanes}*i - l >= 0{guards}
""")


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    ("dtype", "lanes"),
    [
        (int8, 32),
        (uint8, 16),
        (int8, 64),
        (int8, 12),
        (int16, 16),
        (int16, 5),
        (float16, 8),
        (float32, 8),
        (float64, 4),
    ],
)
@pytest.mark.parametrize("guards", ["", " and 8*i + l - K >= 0", " and (l + K) % 3 - 1 >= 0", " and 2 - l >= 0"])
def test_lanes_of_any_mask(dtype: DType, lanes: int, guards: str, masked: bool) -> None:
    """First lanes, last lanes, every third one left out: those that are off are neither read nor written."""
    if not masked and machine("host").architecture != "x86":
        pytest.skip("this machine has no masked instructions anyway")
    rng = np.random.default_rng((dtype.bits, lanes, len(guards), masked))
    native = Native(guarded(dtype, lanes, guards), on=machine("host") if masked else without_masks())
    for extent in (*range(lanes + 2), 3 * lanes + lanes // 2):
        arrays = {name: rng.integers(0, 50, extent).astype(dtype.numpy) for name in "xy"}
        assert_same(native.program, arrays, {"N": extent, "K": int(rng.integers(0, 9))}, native=native)


def test_which_machines_have_masks() -> None:
    assert masked_widths(machine("x86-64-v3")) == MaskedWidths(frozenset((32, 64)), frozenset())
    assert masked_widths(machine("x86-64-v4")).stores == {8, 16, 32, 64}
    assert masked_widths(machine("aarch64")) == MaskedWidths(frozenset(), frozenset())


@pytest.mark.parametrize("count", range(1, 65))
def test_pieces(count: int) -> None:
    found = pieces(count)
    assert [lane for start, size in found for lane in range(start, start + size)] == list(range(count))
    assert all(size & (size - 1) == 0 for _, size in found)


@pytest.mark.parametrize(("name", "functions"), [("x86-64-v3", 2), ("x86-64-v4", 0), ("aarch64", 2)])
def test_one_function_for_all_places(name: str, functions: int) -> None:
    target = machine(name)
    text = emit_kernel(guarded(int8, 32, ""), target, numerics("default"))
    assert len(re.findall(r"define internal .*(load|store)_v32i8", text.ir)) == functions
    assert Jit().emit_assembly(text.ir, target)
