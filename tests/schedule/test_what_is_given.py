"""Schedules of what is none, steps that are none, and numbers that no index holds."""

# Schedules that are wrong on purpose.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from tests.lowering.native import Native
from tests.schedule.programs import matrix_product
from tilework.dims import Symbol, dim
from tilework.dtypes import float32
from tilework.errors import CodegenError, TileworkError, VerificationError
from tilework.loops.expressions import Load
from tilework.loops.program import Access, Argument, Compute, Loop, LoopProgram, buffer
from tilework.machine.finder import machine
from tilework.schedule.primitives.split import Split
from tilework.schedule.schedule import Schedule

PRODUCT = matrix_product(4, 6, 8)
ANY = cast("Any", Schedule)


def copied(offset: int, extent: Any = "N", to: Any = "N") -> LoopProgram:
    """y[i] = x[i + offset]."""
    x, y = buffer("x", float32, extent), buffer("y", float32, to)
    body = Compute("y", (Access("y", (dim("i"),)),), (Load("x", (dim("i") + offset,), float32),))
    symbols = tuple(Symbol(name) for name in sorted(dim(extent).names() | dim(to).names()))
    return LoopProgram(
        "copied", (Argument(x, "read"), Argument(y, "write")), Loop("i", dim(to), "serial", body), symbols
    )


SLIPS: list[tuple[int, Callable[[], object]]] = [
    (1523, lambda: ANY(None)),
    (1523, lambda: ANY("x")),
    (1523, lambda: ANY(PRODUCT.body)),
    (1002, lambda: ANY(PRODUCT, numerics="strikt")),
    (1002, lambda: ANY(PRODUCT, numerics=3)),
    (1002, lambda: ANY(PRODUCT, numerics=None)),
    (1002, lambda: ANY(PRODUCT, machine=3)),
    (1620, lambda: ANY(PRODUCT, machine="x86-64-v9")),
    (1505, lambda: ANY(PRODUCT).apply("split")),
    (1505, lambda: ANY(PRODUCT).check(None)),
    (1505, lambda: ANY(PRODUCT).attempt(3)),
    (1504, lambda: ANY(PRODUCT).replay([1])),
    (1505, lambda: ANY(PRODUCT).replay(None)),
    (1505, lambda: ANY(PRODUCT).at("i")),
    (1501, lambda: ANY(PRODUCT).handle(3)),
]


@pytest.mark.parametrize(("code", "slip"), SLIPS, ids=[str(n) for n in range(len(SLIPS))])
def test_slips_are_refused_with_a_code(code: int, slip: Callable[[], object]) -> None:
    with pytest.raises(TileworkError) as caught:
        slip()
    assert caught.value.code == code
    assert caught.value.hint


def test_numerics_and_machines_may_be_named() -> None:
    schedule = Schedule(PRODUCT, "x86-64-v3", "strict")
    assert schedule.machine == machine("x86-64-v3")
    assert schedule.numerics.level == "strict"
    with pytest.raises(TileworkError) as caught:
        schedule.vectorize("k")
    assert caught.value.code == 1512


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.split("i", 2), lambda s: s.check(Split("i", 2)), lambda s: s.attempt(Split("i", 2)),
        lambda s: s.replay((Split("i", 2),)),
    ],
)  # fmt: skip
def test_the_first_step_verifies_the_program(step: Callable[[Schedule], object]) -> None:
    with pytest.raises((VerificationError, TileworkError), match="1325"):
        step(Schedule(copied(1)))
    step(Schedule(copied(0)))


def test_a_program_is_verified_once() -> None:
    schedule = Schedule(copied(0))
    done = schedule.split("i", 4).vectorize("i.inner")
    assert done.origin is schedule.program
    assert done.started() is done
    assert schedule.started() is schedule.started()


@pytest.mark.parametrize("factor", [2**62 + 1, 2**63, 2**64, 2**64 + 1, 10**30, -(10**30)])
def test_numbers_beyond_what_indices_hold_are_refused(factor: int) -> None:
    schedule = Schedule(matrix_product("N", 3, 4))
    for step in (
        lambda: schedule.split("i", factor),
        lambda: schedule.tile("i", "j", factor, 2),
        lambda: schedule.partition(budget=factor),
        lambda: schedule.transform_layout("a", f"layout(0, 1, 1:{abs(factor)})"),
    ):
        with pytest.raises(TileworkError) as caught:
            step()
        assert caught.value.code == 1505


def test_the_largest_factor_keeps_values() -> None:
    x = np.arange(7, dtype=np.float32)
    for n in (0, 1, 7):
        arrays = {"x": x[:n], "y": np.full(n, -1, np.float32)}
        found = Native(Schedule(copied(0)).split("i", 2**62).partition().program).run(arrays)
        np.testing.assert_array_equal(found.arrays["y"], x[:n])


def test_fused_loops_that_no_index_counts_are_refused() -> None:
    schedule = Schedule(copied(0, 5, 5)).split("i", 2**40).split("i.inner", 2)
    assert schedule.fuse("i.inner.outer", "i.inner.inner")
    large = Schedule(matrix_product(2**40, 2**40, 1))
    with pytest.raises(TileworkError) as caught:
        large.fuse("i", "j")
    assert caught.value.code == 1505


@pytest.mark.parametrize("offset", [2**63, 2**64, 10**30, -(2**63) - 1])
def test_constants_beyond_64_bits_are_never_cut(offset: int) -> None:
    with pytest.raises(CodegenError) as caught:
        Native(copied(offset))
    assert caught.value.code == 1609


def test_importing_is_fast_and_lazy() -> None:
    code = "import sys, tilework; print('tilework.compute' in sys.modules); tilework.compute.placeholder"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
