"""Verifier against interpreter: a mutant that gives another result in some order must have a fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.plan.building import random_plan
from tilework.errors import TileworkError
from tilework.memory.arenas import place_arenas
from tilework.plan.buffers import ArenaPlace
from tilework.plan.interpret import interpret_plan
from tilework.plan.plan import Plan, Segment
from tilework.plan.verify import plan_faults


def mutant(plan: Plan, generator: np.random.Generator) -> Plan:
    """The plan with a wait dropped, two steps swapped, a buffer moved, or a queue changed."""
    steps = list(plan.segments[0].steps)
    kind = int(generator.integers(0, 4))
    k = int(generator.integers(0, len(steps)))
    if kind == 0:
        with_waits = [i for i, step in enumerate(steps) if step.waits]
        if with_waits:
            k = with_waits[int(generator.integers(0, len(with_waits)))]
            steps[k] = replace(steps[k], waits=steps[k].waits[1:])
    elif kind == 1 and k:
        steps[k - 1], steps[k] = steps[k], steps[k - 1]
    elif kind == 2:
        steps[k] = replace(steps[k], queue=f"q{int(generator.integers(0, 3))}")
    else:
        arena = [b for b in plan.buffers if isinstance(b.place, ArenaPlace)]
        chosen, other = (arena[int(i)] for i in generator.integers(0, len(arena), 2))
        moved = replace(chosen, place=other.place)
        plan = plan.replace(buffers=tuple(moved if b is chosen else b for b in plan.buffers))
    return plan.replace(segments=(Segment("captured", tuple(steps)),))


def results(plan: Plan, x: np.ndarray, seed: int) -> list[bytes] | None:
    try:
        return [array.tobytes() for array in interpret_plan(plan, [x], seed=seed)]
    except TileworkError:
        return None


@pytest.mark.parametrize("seed", range(6))
def test_what_goes_wrong_in_some_order_has_a_fault(seed: int) -> None:
    generator = np.random.default_rng(seed)
    wrong = 0
    for _ in range(3):
        plan = place_arenas(random_plan(generator, 5)).plan
        x = generator.integers(-8, 9, 5).astype(np.float32)
        right = results(plan, x, 0)
        for _ in range(5):
            changed = mutant(plan, generator)
            if any(results(changed, x, order) != right for order in range(4)):
                wrong += 1
                assert plan_faults(changed), "the interpreter found a difference, the verifier nothing"
    assert wrong, "the mutants must include some that matter"
