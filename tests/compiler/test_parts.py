"""Concatenations and slices that are pieces of memory: no kernel copies them, and every value stays right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.compiler.checking import check_graph
from tests.compiler.drawing import SYMBOLS, Numbers
from tilework import dtypes
from tilework.compiler import compile as stages
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.decisions.windows import WindowFinder
from tilework.dims import dim
from tilework.errors import VerificationError
from tilework.graph.graph import Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.plan.buffers import ArenaPlace
from tilework.plan.interpret import interpret_plan
from tilework.plan.plan import Plan, Segment
from tilework.plan.steps import CopyStep, KernelStep, touches
from tilework.plan.verify import plan_faults


def stored(builder: GraphBuilder, value: Value, dimension: int | None = None) -> Value:
    """A value that a kernel of its own computes."""
    along = len(value.tensor.shape) - 1 if dimension is None else dimension
    return builder.apply_one("cumulative", value, dimension=along, reducer="sum")


def kernels(plan: Plan) -> list[str]:
    return [step.name for _, step in plan.walk() if isinstance(step, KernelStep)]


def copies(plan: Plan) -> list[str]:
    return [step.name for _, step in plan.walk() if isinstance(step, CopyStep)]


def builder_of(*names: str) -> GraphBuilder:
    return GraphBuilder("parts", tuple(symbol for symbol in SYMBOLS if symbol.name in names))


def cut(builder: GraphBuilder, value: Value, first: Any, last: Any, dimension: int = 0) -> Value:
    """The elements `first` up to `last` along a dimension."""
    shape = value.tensor.shape
    starts, limits = [dim(0)] * len(shape), list(shape)
    starts[dimension], limits[dimension] = dim(first), dim(last)
    return builder.apply_one(
        "slice", value, start_indices=tuple(starts), limit_indices=tuple(limits), strides=(1,) * len(shape)
    )


def test_operands_are_written_into_the_result() -> None:
    builder = builder_of("N", "M")
    x, y = builder.input("x", dtypes.float32, "N", 8), builder.input("y", dtypes.float32, "M", 8)
    whole = builder.apply_one("concatenate", stored(builder, x), stored(builder, y), dimension=0)
    executable = check_graph(builder.build([stored(builder, whole)]), level="strict")
    assert len(kernels(executable.plan)) == 3
    assert copies(executable.plan) == []


def test_after_dimensions_of_one() -> None:
    builder = builder_of()
    x = builder.input("x", dtypes.float32, 1, 3, 5)
    parts = [stored(builder, x), stored(builder, x, 1), stored(builder, builder.apply_one("negate", x))]
    whole = builder.apply_one("concatenate", *parts, dimension=1)
    executable = check_graph(builder.build([whole]), level="strict")
    assert len(kernels(executable.plan)) == 4, "the result is the output's own memory"
    assert copies(executable.plan) == []


def test_what_lives_elsewhere_is_copied() -> None:
    """An input, a constant, an output, a value for the second time."""
    builder = builder_of()
    x = builder.input("x", dtypes.float32, 3, 5)
    one, two = stored(builder, x), stored(builder, x, 0)
    three = stored(builder, two)
    constant = builder.constant(np.arange(10, dtype=np.float32).reshape(2, 5))
    four = stored(builder, three, 0)
    five, six = stored(builder, four), stored(builder, four, 0)
    whole = builder.apply_one("concatenate", one, x, two, one, constant, three, five, six, dimension=0)
    executable = check_graph(builder.build([stored(builder, whole), two]), level="strict")
    assert len(kernels(executable.plan)) == 7
    assert len(copies(executable.plan)) == 4


def test_other_readers_read_the_part() -> None:
    builder = builder_of("N")
    x = builder.input("x", dtypes.float32, "N", 8)
    first, second = stored(builder, x), stored(builder, x, 0)
    whole = builder.apply_one("concatenate", second, first, dimension=0)
    results = [stored(builder, whole), stored(builder, first, 0), builder.apply_one("add", first, second)]
    executable = check_graph(builder.build(results), level="strict")
    assert copies(executable.plan) == []
    assert len(kernels(executable.plan)) == 5


def test_nested_in_place() -> None:
    builder = builder_of("N", "M")
    x = builder.input("x", dtypes.float32, "N", 8)
    y = builder.input("y", dtypes.float32, "M", 8)
    inner = builder.apply_one("concatenate", stored(builder, x), stored(builder, y), dimension=0)
    outer = builder.apply_one("concatenate", stored(builder, y, 0), inner, stored(builder, x, 0), dimension=0)
    executable = check_graph(builder.build([stored(builder, outer), stored(builder, inner)]), level="strict")
    assert copies(executable.plan) == []
    assert len(kernels(executable.plan)) == 6


def test_slices_are_read_where_they_are() -> None:
    builder = builder_of("N")
    x = builder.input("x", dtypes.float32, "N", 8)
    middle = stored(builder, builder.apply_one("concatenate", x, x, x, dimension=0))
    parts = [cut(builder, middle, dim("N") * k, dim("N") * (k + 1)) for k in range(3)]
    results = [stored(builder, part, axis) for part in parts for axis in (0, 1)]
    executable = check_graph(builder.build(results), level="strict")
    assert copies(executable.plan) == []
    assert len(kernels(executable.plan)) == 8


def test_slices_of_inputs_are_read_where_they_are() -> None:
    builder = builder_of()
    x = builder.input("x", dtypes.float32, 7, 5)
    part = cut(builder, x, 2, 6)
    executable = check_graph(builder.build([stored(builder, part), stored(builder, part, 0)]), level="strict")
    assert len(kernels(executable.plan)) == 2


def test_inner_slices_are_read_in_place_by_all_regions_that_can() -> None:
    """Gates of a recurrent layer: columns of one product, read by several maps and reductions."""
    builder = builder_of("N")
    x = builder.input("x", dtypes.float32, "N", 12)
    gates = stored(builder, x)
    parts = [cut(builder, gates, 4 * k, 4 * (k + 1), 1) for k in range(3)]
    results = [builder.apply_one("add", parts[0], parts[1]), builder.apply_one("multiply", parts[1], parts[2])]
    results.append(builder.apply_one("reduce", parts[1], dimensions=(0,), reducer="maximum"))
    executable = check_graph(builder.build(results), level="strict")
    assert len(kernels(executable.plan)) == 4
    assert copies(executable.plan) == []


def test_an_inner_slice_is_copied_and_the_report_says_why() -> None:
    builder = builder_of()
    x = builder.input("x", dtypes.float32, 7, 5)
    part = cut(builder, x, 2, 4, dimension=1)
    flat = builder.apply_one("reshape", part, shape=(14,))
    executable = check_graph(builder.build([flat, stored(builder, part, 0)]), level="strict")
    assert len(kernels(executable.plan)) == 2
    (copy,) = executable.explain().copies
    assert "inner" in copy.reason
    assert copy.bytes == dim(7 * 2 * 4)


def test_a_part_that_is_no_multiple_of_a_vector() -> None:
    builder = builder_of()
    x = builder.input("x", dtypes.int8, 3, 5)
    y = builder.input("y", dtypes.int8, 4, 5)
    whole = builder.apply_one("concatenate", stored(builder, x), stored(builder, y), stored(builder, x, 0), dimension=0)
    executable = check_graph(builder.build([stored(builder, whole)]), level="strict")
    alignments = {b.name: b.alignment for b in executable.plan.buffers if b.alias_set}
    assert sorted(alignments.values()) == [1, 1, 64, 64]


# -- random graphs --------------------------------------------------------------------------------------------------
class _Random:
    """Graphs of concatenations and slices between kernels, by a seed."""

    def __init__(self, seed: int, symbolic: bool) -> None:
        self.choices = Numbers(seed)
        self.builder = builder_of("N", "M") if symbolic else builder_of()
        extents = ("N", "M") if symbolic else (5, 2)
        self.known = [
            self.builder.input(f"x{k}", dtypes.float32, 1, extent, 3)
            for k, extent in enumerate((*extents, self.choices.integer(0, 3)))
        ]

    def pick(self) -> Value:
        return self.known[self.choices.integer(0, len(self.known) - 1)]

    def step(self) -> None:
        kind, value = self.choices.integer(0, 9), self.pick()
        builder = self.builder
        if kind < 3:
            made = stored(builder, value, self.choices.integer(1, 2))
            low, high = builder.constant(np.float32(-9)), builder.constant(np.float32(9))
            made = builder.apply_one("clamp", low, made, high)
        elif kind < 5:
            made = builder.apply_one("negate", value)
        elif kind < 8:
            parts = [value, *(self.pick() for _ in range(self.choices.integer(1, 3)))]
            made = builder.apply_one("concatenate", *parts, dimension=1)
        else:
            extent = value.tensor.shape[1]
            number = extent.value
            if number is None:
                low, high = extent - extent // 2, extent
            else:
                low = dim(self.choices.integer(0, number))
                high = dim(self.choices.integer(low.constant, number))
            made = cut(builder, value, low, high, 1)
        if all(extent.value is None or extent.value < 40 for extent in made.tensor.shape):
            self.known.append(made)

    def graph(self, steps: int) -> Graph:
        for _ in range(steps):
            self.step()
        outputs = [self.pick() for _ in range(self.choices.integer(1, 3))]
        return self.builder.build([*outputs, self.known[-1]])


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs(seed: int, symbolic: bool) -> None:
    graph = _Random(seed, symbolic).graph(14)
    check_graph(graph, level="strict" if seed % 3 else "default", checked=seed % 4 == 1, seed=seed)


def written(plan: Plan) -> int:
    """Bytes that kernels and copies write, at some sizes."""
    found = 0
    for _, step in plan.walk():
        for touch in touches(step):
            size = plan.buffer_named[touch.buffer].bytes
            found += int(size.evaluate({"N": 7, "M": 5})) if touch.writes else 0
    return found


def test_fewer_bytes_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them() -> list[int]:
        graphs = [_Random(seed, seed % 2 == 1).graph(14) for seed in range(12)]
        return [written(lower_graph(graph, CompileOptions("strict")).plan) for graph in graphs]

    fewer = all_of_them()

    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(WindowFinder, "join", never)
    monkeypatch.setattr(WindowFinder, "cut", never)
    more = all_of_them()
    assert all(a <= b for a, b in zip(fewer, more, strict=True))
    assert sum(fewer) < sum(more)


# -- that all this catches something --------------------------------------------------------------------------------
def joined() -> Graph:
    builder = builder_of()
    x = builder.input("x", dtypes.float32, 4, 16)
    whole = builder.apply_one("concatenate", stored(builder, x), stored(builder, x, 0), dimension=0)
    return builder.build([stored(builder, whole)])


def test_a_part_at_the_wrong_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = joined()
    right = stages.build_plan

    def wrong(*given: Any) -> Any:
        plan, packed = right(*given)
        buffers = tuple(
            replace(b, place=ArenaPlace(b.place.arena)) if b.alias_set and isinstance(b.place, ArenaPlace) else b
            for b in plan.buffers
        )
        return plan.replace(buffers=buffers), packed

    monkeypatch.setattr(stages, "build_plan", wrong)
    with pytest.raises(VerificationError, match=r"TW1408.*bytes 256 to 512"):
        check_graph(graph)


def test_a_part_that_nothing_writes_is_caught() -> None:
    """By the verifier, and by the interpreter, whose memory is poisoned."""
    executable = check_graph(joined(), level="strict")
    plan = executable.plan
    first, second, *rest = plan.segments[0].steps
    for left in (first, second):
        wrong = plan.replace(segments=(Segment("captured", (left, *rest)),))
        assert 1408 in [fault.code for fault in plan_faults(wrong)]
        (result,) = interpret_plan(wrong, [np.ones((4, 16), np.float32)])
        assert np.isnan(result).any()
    assert plan_faults(plan) == ()


def test_memory_that_a_part_still_needs_is_not_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole lives from its first part's first write to the last read of any."""
    builder = builder_of()
    x = builder.input("x", dtypes.float32, 4, 16)
    first = stored(builder, x)
    between = stored(builder, stored(builder, stored(builder, x, 0), 1), 0)
    whole = builder.apply_one("concatenate", first, between, dimension=0)
    total = stored(builder, whole)
    last = builder.apply_one("add", stored(builder, total, 0), builder.apply_one("concatenate", first, x, dimension=0))
    graph = builder.build([last])
    check_graph(graph, level="strict")
    right = stages.place_arenas

    def wrong(plan: Plan) -> Any:
        placed = right(plan)
        lone = [b for b in placed.plan.buffers if isinstance(b.place, ArenaPlace) and not b.alias_set]
        moved = {b.name: replace(b, place=ArenaPlace("arena")) for b in lone}
        buffers = tuple(moved.get(b.name, b) for b in placed.plan.buffers)
        return replace(placed, plan=placed.plan.replace(buffers=buffers))

    monkeypatch.setattr(stages, "place_arenas", wrong)
    with pytest.raises(VerificationError, match="TW1406"):
        check_graph(graph, level="strict")
