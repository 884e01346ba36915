"""Loops that run backwards."""

from __future__ import annotations

from tests.schedule.programs import matrix_product, same_values
from tilework.schedule.schedule import Schedule


def test_reversed_loops_keep_values() -> None:
    program = matrix_product("M", 4, "K")
    schedule = Schedule(program).reverse("i").split("k", 3).reverse("k.outer").reverse("j")
    for m, k in ((1, 1), (3, 7)):
        same_values(program, schedule.program, 5, M=m, K=k)
