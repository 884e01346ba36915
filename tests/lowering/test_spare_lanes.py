"""Lanes that a mask leaves out may hold anything only where every reader leaves them out too."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.lowering.native import Native, assert_same
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.loops.parse import parse_program
from tilework.loops.program import LoopProgram, Storage, walk
from tilework.lowering.spare_lanes import spare_lanes
from tilework.machine.finder import machine
from tilework.numerics import numerics

SUMS = """program sums
  read x: float32[6, 5]
  read w: float32[5, 10]
  write y: float32[6, 10]

  register c: float32[6, 2, 8]
  unrolled i < 6
    unrolled v < 2
      vectorized l < 8
        start: c[i, v, l] = 0.0
  serial k < 5
    unrolled i1 < 6
      unrolled v1 < 2
        vectorized l1 < 8
          add: c[i1, v1, l1] += x[i1, k] * w[k, l1 + 8*v1]  where {written}
  unrolled i2 < 6
    unrolled v2 < 2
      vectorized l2 < 8
        back: y[i2, l2 + 8*v2] = c[{read}]  where 9 - l2 - 8*v2 >= 0{guards}
"""


def program(written: str = "9 - l1 - 8*v1 >= 0", read: str = "i2, v2, l2", guards: str = "") -> LoopProgram:
    return parse_program(SUMS.format(written=written, read=read, guards=guards))


def spare(given: LoopProgram) -> bool:
    (storage,) = (node for node in walk(given.body) if isinstance(node, Storage))
    return spare_lanes(storage)


def test_the_same_guard() -> None:
    assert spare(program())
    assert spare(program(guards=" and 4 - i2 >= 0"))


@pytest.mark.parametrize(
    "given",
    [
        program(written="8 - l1 - 8*v1 >= 0"),  # a column that is read, and keeps its start
        program(written="9 - l1 - 8*v1 >= 0 and 4 - i1 >= 0"),  # a row of which that is true
        program(written="9 - l1 - 8*v1 >= 0 and l1 - k >= 0"),  # lanes that take part in some terms
        program(read="i2, 1 - v2, l2"),  # read from elsewhere
        program(read="0, v2, l2"),
    ],
)
def test_another_guard(given: LoopProgram) -> None:
    assert not spare(given)


def arrays(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.integers(-4, 5, (6, 5)).astype(np.float32)
    w = random.integers(-4, 5, (5, 10)).astype(np.float32)
    x[random.integers(6), random.integers(5)] = random.choice([np.inf, -np.inf, np.nan, 1.0])
    return {"x": x, "w": w, "y": np.full((6, 10), 7, np.float32)}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        program(),
        program(guards=" and 4 - i2 >= 0"),
        program(written="8 - l1 - 8*v1 >= 0"),
        program(written="9 - l1 - 8*v1 >= 0 and l1 - k >= 0"),
        program(read="i2, 1 - v2, l2"),
    ],
)
def test_values(given: LoopProgram, checked: bool) -> None:
    native = Native(given, "strict", checked=checked)
    for seed in range(20):
        assert_same(given, arrays(seed), native=native)


def test_a_sum_needs_no_selection() -> None:
    """The purpose of it all."""
    for given, selects in ((program(), False), (program(written="8 - l1 - 8*v1 >= 0"), True)):
        text = emit_kernel(given, machine("x86-64-v3"), numerics("default")).ir
        assert bool(re.search(r"select <8 x i1>", text)) == selects
