"""Concatenations along inner dimensions whose operands are written where they belong: boxes of the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.compiler.checking import check_graph
from tests.compiler.drawing import Numbers
from tests.compiler.test_parts import builder_of, copies, cut, kernels, stored
from tilework import dtypes
from tilework.decisions import windows
from tilework.dims import dim
from tilework.errors import PlanError
from tilework.graph.graph import Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.plan.interpret import interpret_plan
from tilework.plan.parse import parse_plan
from tilework.plan.plan import Plan, Segment
from tilework.plan.signature import Box
from tilework.plan.steps import KernelStep
from tilework.plan.text import plan_text
from tilework.plan.verify import plan_faults


@pytest.fixture
def any_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes with rows as short as may be."""
    monkeypatch.setattr(windows, "ROW", 1)


def boxed(plan: Plan) -> list[str]:
    """The steps that write boxes."""
    steps = [step for _, step in plan.walk() if isinstance(step, KernelStep)]
    return [s.name for s in steps if any(b.boxes and b.access != "read" for b in s.kernel.buffers)]


def test_operands_are_written_as_boxes() -> None:
    builder = builder_of("N")
    x = builder.input("x", dtypes.float32, "N", 4, 40)
    parts = [stored(builder, x), stored(builder, builder.apply_one("negate", x))]
    whole = builder.apply_one("concatenate", *parts, dimension=1)
    executable = check_graph(builder.build([stored(builder, whole)]), level="strict")
    assert len(boxed(executable.plan)) == 2
    assert "concatenate" not in kernels(executable.plan)
    assert copies(executable.plan) == []


def test_the_rest_is_copied_by_one_kernel() -> None:
    """An input, a constant, an output; a part that stands there twice is read where it is."""
    builder = builder_of("N")
    x = builder.input("x", dtypes.float32, "N", 2, 33)
    part, returned = stored(builder, x), stored(builder, x, 1)
    whole = builder.apply_one("concatenate", part, x, part, returned, dimension=1)
    executable = check_graph(builder.build([returned, whole]), level="strict")
    assert len(boxed(executable.plan)) == 2
    assert len(kernels(executable.plan)) == 3


def test_rows_that_are_short_are_copied() -> None:
    builder = builder_of("N")
    x = builder.input("x", dtypes.float32, "N", 31)
    whole = builder.apply_one("concatenate", stored(builder, x), stored(builder, x, 0), dimension=1)
    executable = check_graph(builder.build([whole]), level="strict")
    assert boxed(executable.plan) == []
    assert windows.SHORT in str(executable.explain())


def test_what_is_padded_from_itself() -> None:
    """The ends are copied within one array: a kernel reads one box of it and writes others."""
    builder = builder_of("N")
    x = builder.input("x", dtypes.float32, "N", 3, 50)
    middle = stored(builder, x)
    left, right = cut(builder, middle, 46, 50, 2), cut(builder, middle, 0, 4, 2)
    whole = builder.apply_one("concatenate", left, middle, right, dimension=2)
    executable = check_graph(builder.build([stored(builder, whole), stored(builder, middle)]), level="strict")
    assert len(boxed(executable.plan)) == 2


def test_boxes_inside_boxes(any_row: None) -> None:
    builder = builder_of("N", "M")
    x, y = builder.input("x", dtypes.float32, "N", 3, 5), builder.input("y", dtypes.float32, "N", 3, "M")
    inner = builder.apply_one("concatenate", stored(builder, x), stored(builder, y), dimension=2)
    outer = builder.apply_one("concatenate", stored(builder, inner), inner, dimension=1)
    top = builder.apply_one("concatenate", outer, stored(builder, outer, 1), dimension=0)
    executable = check_graph(builder.build([stored(builder, top)]), level="strict")
    assert len(boxed(executable.plan)) == 3, "the last one writes a piece"
    assert len(kernels(executable.plan)) == 5


@pytest.mark.parametrize("batch", [1, 2, "N"])
def test_dense_blocks(batch: Any) -> None:
    """Each layer reads what all before it wrote, and writes beside it."""
    builder = builder_of(*(["N"] if batch == "N" else []))
    x = builder.input("x", dtypes.float32, batch, 4, 6, 6)
    features = stored(builder, x)
    for layer in range(3):
        channels = int(str(features.tensor.shape[1]))
        weight = builder.constant(np.random.default_rng(layer).integers(-2, 3, (3, channels, 3, 3)).astype(np.float32))
        new = builder.apply_one(
            "convolution", features, weight, window_strides=(1, 1), padding=((1, 1), (1, 1)), lhs_dilation=(1, 1),
            rhs_dilation=(1, 1), feature_group_count=1,
        )  # fmt: skip
        features = builder.apply_one("concatenate", features, new, dimension=1)
    executable = check_graph(builder.build([features]), level="default")
    assert len(kernels(executable.plan)) == 4
    assert copies(executable.plan) == []


def _ends() -> Plan:
    """One array of which a first kernel writes the middle, and a second the ends from what is there."""
    builder = builder_of()
    x = builder.input("x", dtypes.float32, 2, 40)
    middle = stored(builder, x)
    ends = cut(builder, middle, 36, 40, 1), cut(builder, middle, 0, 4, 1)
    whole = builder.apply_one("concatenate", ends[0], middle, ends[1], dimension=1)
    return check_graph(builder.build([stored(builder, whole)]), level="strict").plan


def _with_boxes(plan: Plan, number: int, access: str, boxes: tuple[Box, ...]) -> Plan:
    """The plan, boxes of one step's kernel replaced."""
    steps = list(plan.segments[0].steps)
    step = steps[number]
    assert isinstance(step, KernelStep)
    formals = tuple(replace(f, boxes=boxes) if f.access == access else f for f in step.kernel.buffers)
    steps[number] = replace(step, kernel=replace(step.kernel, buffers=formals))
    return plan.replace(segments=(Segment("captured", tuple(steps)),))


def _box(*ranges: tuple[int, int]) -> Box:
    return Box(tuple(dim(a) for a, _ in ranges), tuple(dim(b - a) for a, b in ranges))


def _codes(plan: Plan) -> set[int]:
    return {fault.code for fault in plan_faults(plan)}


def test_wrong_boxes_are_found() -> None:
    plan = _ends()
    assert _codes(plan) == set()
    assert parse_plan(plan_text(plan)) is not None
    assert plan_text(parse_plan(plan_text(plan))) == plan_text(plan)
    ends = (_box((0, 2), (0, 4)), _box((0, 2), (44, 48)))
    assert _codes(_with_boxes(plan, 1, "write", ends)) == set()
    assert _codes(_with_boxes(plan, 1, "write", ())) == {1412}, "all of what it also reads"
    assert _codes(_with_boxes(plan, 1, "write", (_box((0, 2), (0, 5)), ends[1]))) == {1412}
    assert _codes(_with_boxes(plan, 1, "write", ends[:1])) == {1408}, "nobody writes the right end"
    assert _codes(_with_boxes(plan, 1, "read", (_box((0, 2), (4, 45)),))) >= {1408, 1412}
    assert 1404 in _codes(_with_boxes(plan, 1, "write", (ends[0], _box((0, 2), (44, 49)))))
    assert 1404 in _codes(_with_boxes(plan, 1, "write", (_box((0, 4)),)))
    assert 1416 in _codes(_with_boxes(plan, 1, "write", (Box((dim(0), dim("K")), (dim(2), dim(4))),)))


def test_kernels_that_leave_their_boxes_are_found_by_the_interpreter() -> None:
    plan = _ends()
    x = np.arange(80, dtype=np.float32).reshape(2, 40)
    (right,) = interpret_plan(plan, [x])
    narrow = _with_boxes(plan, 1, "write", (_box((0, 2), (0, 3)), _box((0, 2), (44, 48))))
    with pytest.raises(PlanError, match=r"TW1415.*outside its boxes"):
        interpret_plan(narrow, [x])
    (poisoned,) = interpret_plan(_with_boxes(plan, 1, "read", (_box((0, 2), (4, 43)),)), [x])
    assert np.isnan(poisoned).any()
    assert not np.isnan(right).any()


def test_a_box_that_nothing_writes_is_found() -> None:
    plan = _ends()
    first, second, *rest = plan.segments[0].steps
    for left in ((first, *rest), (second, first, *rest), (second, *rest)):
        assert 1408 in _codes(plan.replace(segments=(Segment("captured", left),)))


def random_boxes(seed: int) -> Graph:
    """Concatenations along any dimension of what kernels, elementwise nodes, slices and inputs give."""
    choices = Numbers(seed)
    dtype = (dtypes.float32, dtypes.float32, dtypes.float16, dtypes.int8)[choices.integer(0, 3)]
    rank = choices.integer(2, 4)
    extents = [("N", "M", 1, 2, 3, 5, 8, 9, 17)[choices.integer(0, 8)] for _ in range(rank)]
    builder = builder_of(*(extent for extent in extents if isinstance(extent, str)))
    known: list[Value] = [builder.input("x", dtype, *extents)]
    known += [stored(builder, known[0], choices.integer(0, rank - 1))]

    def like(value: Value, along: int) -> list[Value]:
        def rest(shape: Any) -> Any:
            return (*shape[:along], *shape[along + 1 :])

        return [v for v in known if rest(v.tensor.shape) == rest(value.tensor.shape)]

    for _ in range(choices.integer(3, 9)):
        value = known[-1 - min(choices.integer(0, len(known) - 1), choices.integer(0, len(known) - 1))]
        along, kind = choices.integer(0, rank - 1), choices.integer(0, 9)
        if kind < 3:
            known.append(_bounded(builder, stored(builder, value, along)))
        elif kind < 5:
            known.append(builder.apply_one("negate", value))
        elif kind == 5 and (value.tensor.shape[along].value or 0) > 2:
            known.append(cut(builder, value, 1, int(str(value.tensor.shape[along])) - 1, along))
        else:
            fitting = like(value, along)
            parts = [value, *(fitting[choices.integer(0, len(fitting) - 1)] for _ in range(choices.integer(1, 3)))]
            if sum(int(p.tensor.size.evaluate({"N": 8, "M": 8})) for p in parts) < 6000:
                known.append(builder.apply_one("concatenate", *parts, dimension=along))
    outputs = [known[-1], *(v for v in known[1:-1] if choices.integer(0, 5) == 0)]
    return builder.build(outputs)


def _bounded(builder: GraphBuilder, value: Value) -> Value:
    """Whole numbers that stay exact in their type."""
    low, high = (builder.constant(np.array(n).astype(value.tensor.dtype.numpy)) for n in (-3, 3))
    return builder.apply_one("clamp", low, value, high)


@pytest.mark.parametrize("seed", range(60))
def test_random_boxes(seed: int, any_row: None) -> None:
    check_graph(random_boxes(seed), level="strict", checked=seed % 2 == 1, seed=seed, special=seed % 5 == 0)
