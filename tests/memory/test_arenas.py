from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.plan.building import at, draft, flag, plan_of, random_plan, slot, step
from tilework.dims import Symbol, dim
from tilework.memory.arenas import place_arenas
from tilework.plan.buffers import MeasuredPlace, Queue
from tilework.plan.plan import Plan, Segment, alias_key
from tilework.plan.steps import Branch, Repeat
from tilework.plan.verify import verify


def test_a_chain_needs_one_buffer_in_place_and_two_without() -> None:
    steps = (step("one", ["x"], "a"), step("two", ["a"], "b"), step("three", ["b"], "c"), step("four", ["c"], "y"))
    placed = place_arenas(draft(steps, "a", "b", "c"))
    verify(placed.plan)
    assert placed.in_place == {"buffer b": "buffer a", "buffer c": "buffer b"}
    apart = place_arenas(draft(steps, "a", "b", "c"), reuse_in_place=False)
    verify(apart.plan)
    assert apart.in_place == {}
    values = {"n": 64}
    assert placed.plan.arenas[0].bytes.evaluate(values) < 256 + 64 * 2
    assert 512 <= apart.plan.arenas[0].bytes.evaluate(values) <= 512 + 64 * 2


def test_no_reuse_while_the_old_value_is_needed() -> None:
    steps = (step("one", ["x"], "a"), step("two", ["a"], "b"), step("three", ["b", "a"], "y"))
    placed = place_arenas(draft(steps, "a", "b"))
    verify(placed.plan)
    assert placed.in_place == {}


def test_no_reuse_where_the_kernel_does_not_allow_it() -> None:
    steps = (step("one", ["x"], "a"), step("two", ["a"], "b", in_place=False), step("three", ["b"], "y"))
    assert place_arenas(draft(steps, "a", "b")).in_place == {}


def test_alias_sets_move_as_one() -> None:
    plan = plan_of(
        (step("one", ["x"], "a"), step("two", ["x"], "b"), step("three", ["w", "b"], "y")),
        (at("a", slot(0), alias_set="s"), at("w", slot(0), alias_set="s"), at("b", slot(0))),
    )
    placed = place_arenas(plan)
    verify(placed.plan)
    named = placed.plan.buffer_named
    assert named["a"].offset == named["w"].offset != named["b"].offset
    assert set(placed.placements["scratch"].offsets) == {"set s", "buffer b"}


def test_values_carried_through_loops_and_arms_of_branches() -> None:
    body = (step("t", ["state"], "t"), step("next", ["t"], "state"))
    steps = (
        step("first", ["x"], "state"),
        Repeat("loop", body, dim(3)),
        Branch(
            "if",
            "flag",
            (step("p", ["state"], "a"), step("q", ["a", "state"], "y")),
            (step("r", ["state"], "b"), step("s", ["b", "state"], "y")),
        ),
    )
    plan = draft(steps, "state", "t", "a", "b")
    placed = place_arenas(plan.replace(buffers=(*plan.buffers, flag("flag"))))
    verify(placed.plan)
    named = placed.plan.buffer_named
    assert named["state"].offset != named["t"].offset
    assert named["a"].offset == named["b"].offset, "only one of the arms runs"


def test_measured_buffers_are_left_alone() -> None:
    plan = draft((step("one", ["x"], "y"),), "unused")
    plan = plan.replace(buffers=(*plan.buffers, replace(at("m", MeasuredPlace()), shape=(dim("k"),))))
    plan = plan.replace(symbols=(*plan.symbols, Symbol("k", measured=True)))
    assert place_arenas(plan).plan.buffer_named["m"].place == MeasuredPlace()


@pytest.mark.parametrize("seed", range(12))
def test_random_plans_on_random_queues_verify(seed: int) -> None:
    generator = np.random.default_rng(seed)
    placed = place_arenas(random_plan(generator))
    verify(placed.plan)
    bound = placed.placements["scratch"].lower_bound
    assert placed.plan.arenas[0].bytes.evaluate(placed.placements["scratch"].representative) >= bound


def test_parallel_queues_need_more_memory_than_one() -> None:
    def made(queue: str) -> Plan:
        steps = (
            step("a", ["x"], "a"),
            step("b", ["a"], "p", signals=(1,)),
            step("c", ["x"], "c", queue=queue),
            step("d", ["c"], "q", queue=queue, signals=(2,)),
        )
        return draft(steps, "a", "c", outputs=("p", "q")).replace(queues=(Queue("main", "cpu"), Queue("side", "cpu")))

    one, two = place_arenas(made("main")), place_arenas(made("side"))
    verify(one.plan)
    verify(two.plan)
    assert one.plan.arenas[0].bytes != two.plan.arenas[0].bytes
    assert {alias_key(b) for b in two.plan.buffers} >= {"buffer a", "buffer c"}


def test_segments_are_barriers() -> None:
    first = (step("a", ["x"], "a"), step("b", ["a"], "p"))
    second = (step("c", ["x"], "c", queue="side"), step("d", ["c"], "q", queue="side"))
    plan = draft((*first, *second), "a", "c", outputs=("p", "q"))
    plan = plan.replace(queues=(Queue("main", "cpu"), Queue("side", "cpu")))
    split = plan.replace(segments=(Segment("interactive", first), Segment("captured", second)))
    verify(place_arenas(split).plan)
    named = place_arenas(split).plan.buffer_named
    assert named["a"].offset == named["c"].offset
