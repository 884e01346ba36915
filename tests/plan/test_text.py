from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.plan.building import at, chain, flag, numbers, plan_of, random_plan, slot, step
from tilework.dims import Symbol, dim, maximum
from tilework.dtypes import float32, int64
from tilework.errors import ParseError, PlanError
from tilework.graph.graph import InputPolicy, OutputPolicy
from tilework.graph.types import tensor
from tilework.memory.arenas import place_arenas
from tilework.plan.buffers import (
    CPU,
    Arena,
    ConstantPlace,
    Device,
    MeasuredPlace,
    MemorySpace,
    PlanBuffer,
    Queue,
)
from tilework.plan.guard import Guard
from tilework.plan.interpret import interpret_plan
from tilework.plan.parse import parse_plan
from tilework.plan.plan import Binding, Plan, PlanInput, PlanOutput, Segment
from tilework.plan.protocols import BlackBox
from tilework.plan.steps import (
    Allocate,
    BlackBoxStep,
    Branch,
    CopyStep,
    Extent,
    KernelStep,
    LibraryStep,
    Reading,
    Repeat,
)
from tilework.plan.text import plan_text


class Box:
    identity = 'a box: `of` "words"'
    operator = "box"
    provider = "test"
    reason = "none"

    def run(self, inputs: object) -> list[np.ndarray]:
        return []


BOXES: dict[str, BlackBox] = {Box.identity: Box()}


def everything() -> Plan:
    """A plan (no right one) with every kind of thing in it, under awkward names."""
    one = step("one", ["x"], "a")
    assert isinstance(one, KernelStep)
    kernel = replace(
        one.kernel,
        faults=("index out of range", "two\nlines"),
        launch=(dim("n").ceildiv(32), dim(32)),
        random_counter=True,
        buffers=(*one.kernel.buffers, replace(one.kernel.buffers[0], name="w", access="workspace", alignment=64)),
    )
    one = replace(one, kernel=kernel, arguments=("x", "a", "in"), waits=(1, 2), signals=(3,), origin="/net/Add: 1")
    library = LibraryStep("lib", "blas", "cblas_sgemm", kernel, ("x", "a", "in"), (dim("n") - 1,), one.meaning, "side")
    box = BlackBoxStep("box", BOXES[Box.identity], ("x",), ("a", "to"), (Extent("m", 1, 0),), True)
    steps = (
        one,
        library,
        Branch("read", "flag", (box, Repeat("r", (step("t", ["x"], "a"),), dim("n") // 2, "flag", "t"))),
        Branch("both", "flag", (), (CopyStep("c", "x", "a", "side", (3,)),)),
        Allocate("room", (Reading("m", "to", 1), Reading("k", "to")), ("in", "a")),
        Repeat("loop", (), None, "flag"),
        numbers("a", "n"),
        numbers("to", "n"),
    )
    buffers = (
        at("a", slot(maximum(dim("n") * 4, 64)), alias_set="set"),
        at("in", slot(dim("n") - 64, "arena 2")),
        PlanBuffer("to", (), int64, "far away", MeasuredPlace(), 8),
        PlanBuffer("constant", (dim(2), dim("n")), int64, "host", ConstantPlace("00ff"), 8),
        flag("flag"),
    )
    plan = plan_of(steps, buffers, arena=dim("n") * 4 + 1)
    return plan.replace(
        name="every thing",
        inputs=(
            *plan.inputs,
            PlanInput("read", tensor(float32), InputPolicy("donated", None, "refuse")),
            PlanInput("z", tensor(float32, dim("q") * 2 + 1), InputPolicy("mutated", 1, "specialise")),
        ),
        outputs=(
            *plan.outputs,
            PlanOutput("o", tensor(float32, 1, "n"), "x", OutputPolicy("alias", 2)),
            PlanOutput("v", tensor(float32, "n"), "x", OutputPolicy("view", 0, (dim("n") - 2,), dim(3))),
        ),
        symbols=(*plan.symbols, Symbol("m", -3, None, 4, True), Symbol("q", 1, 7)),
        bindings=(*plan.bindings, Binding("q", 2, 0, 2, 1)),
        guards=(Guard(dim("n") - 3, "nonnegative", "n: at least 3!"), Guard(dim("n") % 2, "zero", "even")),
        arenas=(*plan.arenas, Arena("arena 2", "far away", dim(0), 128)),
        spaces=(MemorySpace("host"), MemorySpace("far away")),
        devices=(CPU, Device("gpu", "cuda", ("far away",), ("host",))),
        queues=(Queue("main", "cpu"), Queue("side", "gpu")),
        segments=(*plan.segments, Segment("interactive", ())),
    )


def test_every_form_comes_back() -> None:
    text = plan_text(everything())
    back = parse_plan(text, BOXES)
    assert plan_text(back) == text
    tables = "name inputs outputs buffers symbols bindings guards arenas spaces devices queues"
    for name in tables.split():
        assert getattr(back, name) == getattr(everything(), name)
    first, again = everything().segments[0].steps[0], back.segments[0].steps[0]
    assert isinstance(first, KernelStep)
    assert isinstance(again, KernelStep)
    assert again.kernel == first.kernel
    assert (again.waits, again.signals, again.origin, again.symbols) == ((1, 2), (3,), "/net/Add: 1", (dim("n"),))


def test_equal_kernels_are_printed_once() -> None:
    text = plan_text(everything())
    assert text.count("\nkernel ") == 3
    assert "kernel 0: k_one" in text


@pytest.mark.parametrize("seed", range(5))
def test_random_plans_come_back_and_mean_the_same(seed: int) -> None:
    generator = np.random.default_rng(seed)
    plan = place_arenas(random_plan(generator, 6)).plan
    text = plan_text(plan)
    back = parse_plan(text)
    assert plan_text(back) == text
    x = generator.integers(-5, 6, 9).astype(np.float32)
    for a, b in zip(interpret_plan(plan, [x]), interpret_plan(back, [x]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_form() -> None:
    lines = plan_text(chain()).splitlines()
    assert lines[:11] == [
        "plan small",
        "  symbol n in 0..64",
        "  space host",
        "  device cpu: cpu sees (host)",
        "  queue main on cpu",
        "  arena scratch: 128*((n + 15) // 16) bytes in host aligned 64",
        "  input x: float32[n]",
        "  output out_y: float32[n] is y",
        "  bind n: dimension 0 of input 0",
        "  buffer x: float32[n] in host at input 0 + 0 aligned 4",
        "  buffer y: float32[n] in host at output 0 + 0 aligned 64",
    ]
    assert "  call two: kernel 1 (a, b) [n] on main from `user two`" in lines


def test_every_truncated_text_is_refused_or_reads_as_less() -> None:
    text = plan_text(everything())
    lines = text.splitlines()
    refused = [error for end in range(len(lines)) if (error := refusal("\n".join(lines[:end]))) is not None]
    assert len(refused) > len(lines) // 3
    assert {error.code for error in refused} == {1419}
    assert all(error.where.startswith("line ") for error in refused)


def refusal(text: str) -> ParseError | None:
    try:
        parse_plan(text, BOXES)
    except ParseError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("plan small", "plain small", "line 1, column 1"),
        ("space host", "spaces host", "line 3"),
        ("  queue main on cpu", "   queue main on cpu", "line 5"),
        ("kernel 1 (a", "kernel 7 (a", "no kernel 7"),
        ("float32[n] is y", "float33[n] is y", "data type"),
        ("segment captured", "segment eager", "interactive"),
        ("call two", "shout two", "a step"),
        ("\nkernel 2: k_three", "\nkernel 1: k_three", "two kernels"),
        ("aligned 64", "aligned 6.4", "an integer"),
        (" serial i < n", " serial i < <", "column"),
    ],
)
def test_errors_say_where(old: str, new: str, where: str) -> None:
    text = plan_text(chain())
    assert old in text
    with pytest.raises(ParseError, match=r"TW1419") as caught:
        parse_plan(text.replace(old, new, 1))
    assert where in str(caught.value)


def test_errors_in_a_meaning_name_the_line_of_the_plan() -> None:
    text = plan_text(chain()).replace("serial i < n", "sreial i < n", 1)
    line = next(k for k, found in enumerate(text.splitlines(), 1) if "sreial" in found)
    with pytest.raises(ParseError) as caught:
        parse_plan(text)
    assert f"line {line}," in caught.value.where


def test_black_boxes_must_be_given() -> None:
    with pytest.raises(PlanError, match=r"TW1420.*a box"):
        parse_plan(plan_text(everything()))


@pytest.mark.parametrize("text", ["", "\n\n", "plan", "plan a\nplan b", "  plan a", "\x00", "plan `\n"])
def test_garbage(text: str) -> None:
    with pytest.raises(ParseError, match=r"TW1419"):
        parse_plan(text)


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("everything.txt", plan_text(everything()))
