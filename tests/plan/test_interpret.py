from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.plan.building import aligned, at, chain, draft, flag, numbers, plan_of, random_plan, slot, step
from tilework.dims import Symbol, dim
from tilework.dtypes import boolean, float32, int64
from tilework.errors import CallError, PlanError, RunError, TileworkError
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import tensor
from tilework.loops.expressions import Constant, walk
from tilework.loops.program import Node, statements
from tilework.memory.arenas import place_arenas
from tilework.plan.buffers import (
    CPU,
    Arena,
    ConstantPlace,
    Device,
    InputPlace,
    MeasuredPlace,
    MemorySpace,
    OutputPlace,
    PlanBuffer,
    Queue,
)
from tilework.plan.guard import Guard
from tilework.plan.interpret import interpret_plan
from tilework.plan.plan import Plan, PlanOutput, Segment
from tilework.plan.steps import (
    Allocate,
    BlackBoxStep,
    Branch,
    CopyStep,
    Extent,
    KernelStep,
    Reading,
    Repeat,
    Step,
)
from tilework.plan.verify import plan_faults, verify

Array = np.ndarray[Any, np.dtype[Any]]
SIZE = aligned("n")
TWO_QUEUES = (Queue("main", "cpu"), Queue("side", "cpu"))
SEEDS = range(6)


def integers(generator: np.random.Generator, count: int) -> Array:
    return generator.integers(-8, 9, count).astype(np.float32)


def expected(plan: Plan, x: Array) -> list[Array]:
    """What the steps of a straight plan say, with a fresh array for every buffer."""
    known = {"x": x}
    for segment in plan.segments:
        for made in segment.steps:
            assert isinstance(made, KernelStep)
            *inputs, output = made.arguments
            scale = int(made.name.split("*")[1]) if "*" in made.name else 1
            known[output] = sum((known[name] for name in inputs[1:]), known[inputs[0]]) * scale + 1
    return [known[output.buffer] for output in plan.outputs]


def named(made: KernelStep) -> KernelStep:
    """The step with its factor in its name, for `expected`."""
    text = made.meaning.body
    scale = next(str(int(c.value)) for c in constants_of(text))
    return replace(made, name=f"{made.name}*{scale}")


def constants_of(node: Node) -> list[Constant]:
    (statement,) = statements(node)
    found = [part for part in walk(statement.values[0]) if isinstance(part, Constant)]
    return [c for c in found if c.value != 1] or found[:1]


def scaled(plan: Plan) -> Plan:
    return plan.replace(
        segments=tuple(
            Segment(s.kind, tuple(named(k) if isinstance(k, KernelStep) else k for k in s.steps)) for s in plan.segments
        )
    )


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 64])
def test_a_chain(count: int) -> None:
    plan = scaled(chain())
    x = integers(np.random.default_rng(count), count)
    (y,) = interpret_plan(plan, [x])
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, ((x * 2 + 1) * 3 + 1) + 1)
    np.testing.assert_array_equal(y, expected(plan, x)[0])


@pytest.mark.parametrize("seed", range(8))
def test_random_plans_give_the_same_in_every_order(seed: int) -> None:
    generator = np.random.default_rng(seed)
    plan = scaled(place_arenas(random_plan(generator, 8)).plan)
    verify(plan)
    x = integers(generator, int(generator.integers(1, 20)))
    wanted = expected(plan, x)
    for order in SEEDS:
        for result, right in zip(interpret_plan(plan, [x], seed=order), wanted, strict=True):
            np.testing.assert_array_equal(result, right)


def differs(plan: Plan, x: Array, wanted: Sequence[Array], seeds: Sequence[int] = range(20)) -> bool:
    """Whether some order gives another result (or none)."""
    for seed in seeds:
        try:
            results = interpret_plan(plan, [x], seed=seed)
        except TileworkError:
            return True
        if any(not np.array_equal(a, b) for a, b in zip(results, wanted, strict=True)):
            return True
    return False


def diamond() -> Plan:
    """x -> a -> (b, c on another queue) -> y."""
    steps = (
        step("a", ["x"], "a", scale=2, signals=(1,)),
        step("b", ["a"], "b", scale=3),
        step("c", ["a"], "c", scale=4, queue="side", waits=(1,), signals=(2,)),
        step("y", ["b", "c"], "y", scale=5, waits=(2,)),
    )
    buffers = (at("a", slot(0)), at("b", slot(SIZE)), at("c", slot(SIZE * 2)))
    return scaled(plan_of(steps, buffers, arena=SIZE * 3).replace(queues=TWO_QUEUES))


X = np.arange(5, dtype=np.float32)


def edited(plan: Plan, position: int, **changes: object) -> Plan:
    steps = list(plan.segments[0].steps)
    steps[position] = replace(steps[position], **changes)
    return plan.replace(segments=(Segment("captured", tuple(steps)),))


def moved(plan: Plan, name: str, offset: Any) -> Plan:
    return plan.replace(buffers=tuple(replace(b, place=slot(offset)) if b.name == name else b for b in plan.buffers))


def test_the_diamond_is_right() -> None:
    verify(diamond())
    assert not differs(diamond(), X, expected(diamond(), X))


@pytest.mark.parametrize("position", [2, 3])
def test_a_planted_missing_wait_is_caught(position: int) -> None:
    assert differs(edited(diamond(), position, waits=()), X, expected(diamond(), X))


@pytest.mark.parametrize(("name", "offset"), [("b", SIZE * 2), ("c", SIZE), ("c", SIZE + 4), ("b", 4)])
def test_a_planted_overlap_is_caught(name: str, offset: Any) -> None:
    assert differs(moved(diamond(), name, offset), X, expected(diamond(), X))


@pytest.mark.parametrize("swap", [(0, 1), (1, 3)])
def test_planted_swapped_steps_are_caught(swap: tuple[int, int]) -> None:
    steps = list(diamond().segments[0].steps)
    first, second = swap
    steps[first], steps[second] = steps[second], steps[first]
    assert differs(diamond().replace(segments=(Segment("captured", tuple(steps)),)), X, expected(diamond(), X))


def test_a_planted_read_of_a_dead_buffer_is_caught() -> None:
    """`a` was declared to live no longer than its first reader; the bytes were not used again, only poisoned."""
    plan = chain()
    stale = edited(plan, 2, arguments=("window", "y"))
    window = at("window", slot(0))
    stale = stale.replace(buffers=(*stale.buffers, window))
    assert np.isnan(interpret_plan(stale, [X])[0]).all()
    assert 1408 in [fault.code for fault in plan_faults(stale)]


def test_a_wait_that_nobody_signals_ends_in_an_error() -> None:
    with pytest.raises(PlanError, match=r"TW1409.*0\.2"):
        interpret_plan(edited(diamond(), 2, waits=(9,)), [X])


def test_a_buffer_outside_its_arena_ends_in_an_error() -> None:
    with pytest.raises(PlanError, match="TW1415"):
        interpret_plan(moved(diamond(), "c", SIZE * 3), [X])


def test_arguments_are_checked() -> None:
    plan = chain()
    with pytest.raises(CallError, match="TW1701"):
        interpret_plan(plan, [])
    with pytest.raises(CallError, match="TW1702"):
        interpret_plan(plan, [np.zeros(3)])
    with pytest.raises(CallError, match="TW1704"):
        interpret_plan(plan, [np.zeros((3, 1), np.float32)])
    with pytest.raises(CallError, match="TW1707"):
        interpret_plan(plan, [np.zeros(65, np.float32)])
    guarded = plan.replace(guards=(Guard(dim("n") - 3, "nonnegative", "at least three, please"),))
    with pytest.raises(CallError, match=r"TW1707.*at least three"):
        interpret_plan(guarded, [np.zeros(2, np.float32)])
    assert interpret_plan(guarded, [np.zeros(3, np.float32)])[0].shape == (3,)


def test_inputs_are_never_changed() -> None:
    plan = plan_of((step("one", ["x"], "x", scale=3),), (), outputs=())
    plan = plan.replace(
        inputs=(replace(plan.inputs[0], policy=InputPolicy("mutated", 0)),),
        outputs=(
            PlanOutput("new", tensor(float32, "n"), "x", OutputPolicy("alias", 0)),
            PlanOutput("every second", tensor(float32, dim("n") // 2), "x", OutputPolicy("view", 0, (dim(2),), dim(1))),
        ),
    )
    verify(plan)
    x = X.copy()
    new, view = interpret_plan(plan, [x])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(new, X * 3 + 1)
    np.testing.assert_array_equal(view, (X * 3 + 1)[1::2])


@pytest.mark.parametrize("value", [True, False])
def test_branches(value: bool) -> None:
    then = (step("p", ["x"], "a", scale=2), step("q", ["a"], "y"))
    otherwise = (step("r", ["x"], "b", scale=5, queue="side", signals=(1,)), step("s", ["b"], "y", waits=(1,)))
    plan = draft((Branch("if", "flag", then, otherwise),), "a", "b")
    plan = place_arenas(plan.replace(buffers=(*plan.buffers, flag("flag")), queues=TWO_QUEUES)).plan
    verify(plan)
    for seed in SEEDS:
        (y,) = interpret_plan(plan, [X], {"f00dflag": np.array(value)}, seed)
        np.testing.assert_array_equal(y, X * 2 + 2 if value else X * 5 + 2)


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_loops_carry_values(trips: int) -> None:
    body = (step("t", ["state"], "t", scale=2), step("n", ["t", "x"], "state"))
    steps = (step("first", ["x"], "state"), Repeat("loop", body, dim(trips)), step("last", ["state"], "y"))
    plan = place_arenas(draft(steps, "state", "t")).plan
    verify(plan)
    state = X + 1
    for _ in range(trips):
        state = (state * 2 + 1) + X + 1
    for seed in SEEDS:
        np.testing.assert_array_equal(interpret_plan(plan, [X], seed=seed)[0], state + 1)


def test_a_planted_buffer_that_dies_inside_a_loop_is_caught() -> None:
    body = (step("t", ["a"], "t"), step("spoil", ["x"], "b", scale=7), step("more", ["b", "t"], "y"))
    steps = (step("first", ["x"], "a"), Repeat("loop", body, dim(2)))
    buffers = (at("a", slot(0)), at("t", slot(SIZE)), at("b", slot(0)))
    (y,) = interpret_plan(plan_of(steps, buffers, arena=SIZE * 2), [X])
    assert not np.array_equal(y, (X * 7 + 1) + (X + 2) + 1)


class CountDown:
    """Takes one from a count and says whether any is left."""

    identity = operator = "count down"
    provider = "test"
    reason = "it has no definition"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        assert not inputs[0].flags.writeable
        return [inputs[0] - 1, np.array(inputs[0] > 1).reshape(())]


def test_loops_with_a_condition_and_trip_numbers() -> None:
    count = PlanBuffer("count", (), int64, "host", ConstantPlace("c"))
    left = PlanBuffer("left", (), int64, "host", slot(0))
    more = PlanBuffer("more", (), boolean, "host", slot(0))
    begin = PlanBuffer("always", (), boolean, "host", ConstantPlace("t"))
    body = (
        replace(step("grow", ["state"], "state", scale=2)),
        BlackBoxStep("down", CountDown(), ("left",), ("left", "more"), ordered=True),
    )
    steps = (
        CopyStep("start", "count", "left"),
        CopyStep("yes", "always", "more"),
        step("first", ["x"], "state"),
        Repeat("loop", body, None, "more", "t"),
        step("last", ["state"], "y"),
    )
    plan = draft(steps, "state")
    plan = place_arenas(plan.replace(buffers=(*plan.buffers, count, left, more, begin))).plan
    verify(plan)
    for number in (1, 2, 4):
        (y,) = interpret_plan(plan, [X], {"c": np.array(number, np.int64), "t": np.array(True)})
        wanted = X + 1
        for _ in range(number):
            wanted = wanted * 2 + 1
        np.testing.assert_array_equal(y, wanted + 1)


class Positive:
    """The positive elements."""

    identity = operator = "positive"
    provider = "test"
    reason = "its result's size depends on data"

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return [inputs[0][inputs[0] > 0]]


def test_black_boxes_measure() -> None:
    m = Symbol("m", 0, 64, measured=True)
    steps: tuple[Step, ...] = (
        BlackBoxStep("box", Positive(), ("x",), ("found",), (Extent("m", 0, 0),)),
        Allocate("room", (), ("y",)),
        step("end", ["found"], "y", length="m", scale=2),
    )
    plan = plan_of(steps, (at("found", MeasuredPlace(), "m"),), symbols=(Symbol("n", 0, 64), m))
    plan = plan.replace(
        outputs=(PlanOutput("o", tensor(float32, "m"), "y"),),
        buffers=tuple(replace(b, shape=(dim("m"),)) if b.name == "y" else b for b in plan.buffers),
    )
    verify(plan)
    x = np.array([3, -1, 0, 5, -2, 8], np.float32)
    np.testing.assert_array_equal(interpret_plan(plan, [x])[0], np.array([7, 11, 17], np.float32))
    assert interpret_plan(plan, [-np.ones(4, np.float32)])[0].shape == (0,)
    few = plan.replace(symbols=(plan.symbols[0], replace(m, upper=2)))
    with pytest.raises(RunError, match="TW1424"):
        interpret_plan(few, [x])


def test_measured_from_a_buffer() -> None:
    m = Symbol("m", 0, 64, measured=True)
    count = PlanBuffer("count", (dim(2),), int64, "host", ConstantPlace("c"))
    y = at("y", OutputPlace(0), dim("m") * 2)
    steps = (Allocate("room", (Reading("m", "count", 1),), ("y",)), numbers("y", dim("m") * 2))
    plan = plan_of(steps, (), symbols=(Symbol("n", 0, 64), m)).replace(
        outputs=(PlanOutput("o", tensor(float32, dim("m") * 2), "y"),), buffers=(at("x", InputPlace(0)), y, count)
    )
    verify(plan)
    (found,) = interpret_plan(plan, [X], {"c": np.array([9, 2], np.int64)})
    np.testing.assert_array_equal(found, np.arange(4))
    with pytest.raises(RunError, match="m = 65"):
        interpret_plan(plan, [X], {"c": np.array([9, 65], np.int64)})


class Wrong:
    identity = operator = provider = reason = "wrong"

    def __init__(self, results: list[Array]) -> None:
        self.results = results

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return self.results


@pytest.mark.parametrize("results", [[], [np.zeros(4, np.float32)], [np.zeros(5)], [np.zeros((5, 1), np.float32)]])
def test_wrong_results_of_black_boxes(results: list[Array]) -> None:
    plan = plan_of((BlackBoxStep("box", Wrong(results), ("x",), ("y",)),), ())
    with pytest.raises(PlanError, match="TW1421"):
        interpret_plan(plan, [X])


def test_missing_constants() -> None:
    plan = plan_of((step("one", ["x", "c"], "y"),), (at("c", ConstantPlace("abc")),))
    with pytest.raises(PlanError, match=r"TW1420.*abc"):
        interpret_plan(plan, [X])
    np.testing.assert_array_equal(interpret_plan(plan, [X], {"abc": X})[0], X * 2 + 1)


def test_copies_between_spaces() -> None:
    far = PlanBuffer("far", (dim(1), dim("n")), float32, "vram", slot(0, "far"))
    plan = plan_of((CopyStep("up", "x", "far", "q"), CopyStep("down", "far", "y", "q")), (far,)).replace(
        spaces=(MemorySpace("host"), MemorySpace("vram")),
        devices=(CPU, Device("gpu", "cuda_sim", ("vram",), ("host",))),
        queues=(Queue("q", "gpu"),),
        arenas=(Arena("far", "vram", SIZE),),
    )
    verify(plan)
    np.testing.assert_array_equal(interpret_plan(plan, [X])[0], X)


def test_segments_in_turn() -> None:
    plan = chain().replace(queues=TWO_QUEUES)
    one, two, three = plan.segments[0].steps
    first, last = Segment("captured", (one,)), Segment("captured", (three,))
    split = plan.replace(segments=(first, Segment("interactive", (replace(two, queue="side"),)), last))
    verify(split)
    np.testing.assert_array_equal(interpret_plan(split, [X])[0], interpret_plan(plan, [X])[0])
