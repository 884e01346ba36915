"""Sizes that are bound to expressions, values carried under new extents, memory that is kept, and checks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.plan.building import at, numbers, plan_of, step
from tilework.dims import Symbol, dim
from tilework.dtypes import float32, int64
from tilework.errors import RunError
from tilework.graph.types import tensor
from tilework.plan.buffers import ConstantPlace, InputPlace, MeasuredPlace, OutputPlace, PlanBuffer
from tilework.plan.guard import Guard
from tilework.plan.interpret import interpret_plan
from tilework.plan.parse import parse_plan
from tilework.plan.plan import Plan, PlanOutput, Segment
from tilework.plan.steps import Allocate, Carry, Check, Reading, Repeat, Sized, Step
from tilework.plan.text import plan_text
from tilework.plan.verify import plan_faults, verify

M = Symbol("m", 0, 64, measured=True)
END = Symbol("end", 0, 64, measured=True)


def doubling(trips: int = 3) -> Plan:
    """x is carried into `state`, doubled and with an equal part behind it each trip, and then into y."""
    twice = at("twice", MeasuredPlace(), dim("m") * 2)
    steps: tuple[Step, ...] = (
        Carry("start", (("x", "state"),), (Sized("m", dim("n")),)),
        Repeat(
            "loop",
            (
                Allocate("room", (), ("twice",)),
                numbers("twice", dim("m") * 2),
                Carry("next", (("twice", "state"),), (Sized("m", dim("m") * 2),)),
            ),
            dim(trips),
        ),
        Carry("last", (("state", "y"),), (Sized("end", dim("m")),)),
    )
    plan = plan_of(steps, (at("state", MeasuredPlace(), "m"), twice), symbols=(Symbol("n", 0, 8), M, END))
    return plan.replace(
        outputs=(PlanOutput("o", tensor(float32, "end"), "y"),),
        buffers=tuple(replace(b, shape=(dim("end"),)) if b.name == "y" else b for b in plan.buffers),
    )


def changed(plan: Plan, position: int, with_: Step) -> set[int]:
    """The faults of a plan with another step at a position."""
    steps = list(plan.segments[0].steps)
    steps[position] = with_
    return {fault.code for fault in plan_faults(plan.replace(segments=(Segment("captured", tuple(steps)),)))}


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_carried_values_have_new_extents(trips: int) -> None:
    plan = doubling(trips)
    verify(plan)
    assert plan_text(parse_plan(plan_text(plan))) == plan_text(plan)
    x = np.array([5, 6, 7], np.float32)
    for seed in range(4):
        (y,) = interpret_plan(plan, [x], seed=seed)
        np.testing.assert_array_equal(y, np.arange(3 * 2**trips, dtype=np.float32) if trips else x)
    with pytest.raises(RunError, match="TW1424"):
        interpret_plan(doubling(6), [x])


def test_faults_of_a_carry() -> None:
    plan = doubling()
    start, _, last = plan.segments[0].steps
    assert isinstance(start, Carry)
    assert isinstance(last, Carry)
    assert 1404 in changed(plan, 0, replace(start, sizes=(Sized("m", dim("n") + 1),)))
    assert 1404 in changed(plan, 2, replace(last, sizes=(Sized("end", dim("m") * 2),)))
    assert 1416 in changed(plan, 0, replace(start, sizes=()))
    assert 1416 in changed(plan, 0, replace(start, sizes=(Sized("n", dim("n")),)))
    assert 1416 in changed(plan, 2, replace(last, sizes=(Sized("end", dim("nobody")),)))
    assert 1401 in changed(plan, 2, replace(last, pairs=(("nothing", "y"),)))
    assert 1412 in changed(plan, 2, replace(last, pairs=(("state", "state"),), sizes=(Sized("end", dim("m")),)))


def test_kept_memory() -> None:
    """A buffer that grows holds what it held."""
    steps: tuple[Step, ...] = (
        Allocate("room", (Sized("m", dim(2)),), ("rows",), keep=True),
        numbers("rows", "m"),
        Allocate("more", (Sized("m", dim("m") + 3),), ("rows",), keep=True),
        Allocate("less", (Sized("m", dim("m") - 3),), ("rows",), keep=True),
        Allocate("end", (), ("y",)),
        step("end", ["rows"], "y", length="m", scale=2),
    )
    plan = plan_of(steps, (at("rows", MeasuredPlace(), "m"),), symbols=(Symbol("n", 0, 64), M))
    plan = plan.replace(
        outputs=(PlanOutput("o", tensor(float32, "m"), "y"),),
        buffers=tuple(replace(b, shape=(dim("m"),)) if b.name == "y" else b for b in plan.buffers),
    )
    verify(plan)
    assert plan_text(parse_plan(plan_text(plan))) == plan_text(plan)
    np.testing.assert_array_equal(interpret_plan(plan, [np.zeros(3, np.float32)])[0], [1, 3])


def test_checks() -> None:
    count = PlanBuffer("count", (dim(1),), int64, "host", ConstantPlace("c"))
    guards = (
        Guard(dim("n") - dim("m"), "nonnegative", "m is too large"),
        Guard(dim("m") % 2, "zero", "m is odd"),
    )
    steps: tuple[Step, ...] = (
        Allocate("room", (Reading("m", "count"),), ("y",)), Check("check", guards, 1803), numbers("y", "m"),
    )  # fmt: skip
    plan = plan_of(steps, (), symbols=(Symbol("n", 0, 64), M)).replace(
        outputs=(PlanOutput("o", tensor(float32, "m"), "y"),),
        buffers=(at("x", InputPlace(0)), at("y", OutputPlace(0), "m"), count),
    )
    verify(plan)
    assert plan_text(parse_plan(plan_text(plan))) == plan_text(plan)
    x = np.zeros(5, np.float32)
    np.testing.assert_array_equal(interpret_plan(plan, [x], {"c": np.array([4])})[0], np.arange(4))
    for value, text in ((6, "too large"), (3, "odd")):
        with pytest.raises(RunError, match=text) as caught:
            interpret_plan(plan, [x], {"c": np.array([value])})
        assert caught.value.code == 1803
    early = plan.replace(segments=(Segment("captured", (steps[1], steps[0], steps[2])),))
    assert {fault.code for fault in plan_faults(early)} == {1416}
