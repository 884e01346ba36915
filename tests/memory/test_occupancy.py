"""What is in an arena when: against placement's own bound, by hand, and through loops, branches and measured sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.plan.building import at, draft, flag, random_plan, slot, step
from tilework.dims import Symbol, dim
from tilework.errors import UsageError
from tilework.memory.arenas import place_arenas
from tilework.memory.occupancy import Occupancy, occupancies
from tilework.plan.plan import Plan
from tilework.plan.steps import Branch, Repeat


def only(plan: Plan, **sizes: int) -> Occupancy:
    (found,) = occupancies(plan, sizes)
    return found


CHAIN = (step("one", ["x"], "a"), step("two", ["a"], "b"), step("three", ["b"], "c"), step("four", ["c"], "y"))


def test_what_is_taken_over_in_place_counts_once() -> None:
    found = only(place_arenas(draft(CHAIN, "a", "b", "c")).plan, n=64)
    assert found.moments[1:5] == ("one", "two", "three", "four")
    assert [tenant.names for tenant in found.tenants] == [("a",), ("b",), ("c",)]
    assert [(tenant.first, tenant.last) for tenant in found.tenants] == [(1, 2), (2, 3), (3, 4)]
    assert found.live[:5] == (0, 256, 256, 256, 256)
    assert set(found.live[5:]) == {0}
    assert found.lower_bound == 256 <= found.bytes


def test_apart_two_are_needed_at_once() -> None:
    found = only(place_arenas(draft(CHAIN, "a", "b", "c"), reuse_in_place=False).plan, n=64)
    assert found.live[:5] == (0, 256, 512, 512, 256)
    assert found.lower_bound == 512 <= found.bytes


@pytest.mark.parametrize("seed", range(20))
def test_random_plans_need_what_their_placement_says(seed: int) -> None:
    placed = place_arenas(random_plan(np.random.default_rng(seed), queues=1))
    placement = placed.placements["scratch"]
    found = only(placed.plan, **placement.representative)
    assert found.lower_bound == placement.lower_bound
    assert found.bytes == placed.plan.arenas[0].bytes.evaluate(placement.representative)
    for moment, used in enumerate(found.live):
        covered = np.zeros(found.bytes, bool)
        for tenant in found.tenants:
            if tenant.first <= moment <= tenant.last:
                covered[tenant.offset : tenant.offset + tenant.bytes] = True
        assert used == covered.sum()


@pytest.mark.parametrize("seed", range(6))
def test_random_plans_on_several_queues_never_need_more_than_there_is(seed: int) -> None:
    placed = place_arenas(random_plan(np.random.default_rng(seed)))
    found = only(placed.plan, **placed.placements["scratch"].representative)
    assert 0 <= found.lower_bound <= found.bytes


def test_loops_carry_and_branches_share() -> None:
    body = (step("t", ["state"], "t"), step("next", ["t"], "state"))
    arms = (
        (step("p", ["state"], "a"), step("q", ["a", "state"], "y")),
        (step("r", ["state"], "b"), step("s", ["b", "state"], "y")),
    )
    steps = (step("first", ["x"], "state"), Repeat("loop", body, dim(3)), Branch("if", "flag", *arms))
    plan = draft(steps, "state", "t", "a", "b")
    found = only(place_arenas(plan.replace(buffers=(*plan.buffers, flag("flag")))).plan, n=64)
    (state,) = (tenant for tenant in found.tenants if tenant.names == ("state",))
    inside = [moment for moment, name in enumerate(found.moments) if name in ("t", "next", "p", "r")]
    assert all(state.first <= moment <= state.last for moment in inside)
    assert found.lower_bound == 512


def test_windows_on_one_piece_are_one_tenant() -> None:
    steps = (step("one", ["x"], "a"), step("two", ["w"], "y"))
    plan = draft(steps)
    plan = plan.replace(buffers=(*plan.buffers, at("a", slot(0), alias_set="s"), at("w", slot(0), alias_set="s")))
    (tenant,) = only(place_arenas(plan).plan, n=3).tenants
    assert (tenant.names, tenant.bytes) == (("a", "w"), 64)


def test_nothing_is_nothing() -> None:
    found = only(place_arenas(draft((step("one", ["x"], "y"),))).plan, n=3)
    assert (found.tenants, found.bytes, found.lower_bound, set(found.live)) == ((), 0, 0, {0})
    empty = only(place_arenas(draft(CHAIN, "a", "b", "c")).plan, n=0)
    assert (empty.tenants, empty.lower_bound) == ((), 0)


def test_measured_sizes_count_at_their_bounds() -> None:
    plan = draft((step("one", ["x"], "a", length="k"), step("two", ["a"], "y", length="k")), "a")
    plan = plan.replace(
        buffers=tuple(replace(b, shape=(dim("k"),)) if b.name == "a" else b for b in plan.buffers),
        symbols=(*plan.symbols, Symbol("k", 0, 100, measured=True)),
    )
    placed = place_arenas(plan).plan
    for sizes in ({"n": 5}, {"n": 5, "k": 3}):
        assert occupancies(placed, sizes)[0].lower_bound == 448


def test_sizes_that_nobody_gave_are_told() -> None:
    with pytest.raises(UsageError) as caught:
        occupancies(place_arenas(draft(CHAIN, "a", "b", "c")).plan, {})
    assert caught.value.code == 1005
