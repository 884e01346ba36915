"""Sizes as functions of a frame's slots: the same as evaluating them, with parts that repeat computed once."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tilework.dims import Dim, dim, loaded, maximum, minimum
from tilework.errors import UsageError
from tilework.runtime.shapes import dim_function, shape_function

SLOTS = {"n": 2, "m": 0, "k": 1}


def drawn(chance: random.Random, pool: list[Dim]) -> Dim:
    """A size made of those before it, which it joins."""
    a, b, number = chance.choice(pool), chance.choice(pool), chance.randint(1, 7)
    made = (
        lambda: a + b, lambda: a - b, lambda: a * number, lambda: a * b, lambda: (a + number) // number,
        lambda: a % number, lambda: maximum(a, b, dim(number)), lambda: minimum(a, b),
        lambda: a // maximum(b, dim(1)),
    )  # fmt: skip
    pool.append(chance.choice(made)())
    return pool[-1]


@pytest.mark.parametrize("seed", range(40))
def test_functions_compute_what_sizes_evaluate_to(seed: int) -> None:
    chance = random.Random(seed)
    pool = [dim(name) for name in SLOTS]
    sizes = [drawn(chance, pool) for _ in range(9)]
    shape = shape_function(sizes, SLOTS)
    for _ in range(5):
        values = {name: chance.choice([0, 1, 2, 5, 97]) for name in SLOTS}
        words = [values["m"], values["k"], values["n"]]
        expected = tuple(size.evaluate(values) for size in sizes)
        assert shape(words) == expected
        assert tuple(dim_function(size, SLOTS)(words) for size in sizes) == expected


def test_a_part_that_repeats_is_computed_once() -> None:
    asked: list[int] = []

    class Words:
        def __getitem__(self, place: int) -> int:
            asked.append(place)
            return 9

    half = (dim("n") + 1) // 2
    size = maximum(half * half, 3 * half + 1, half % 5)
    words: Any = Words()
    assert dim_function(size, SLOTS)(words) == 25
    assert asked == [SLOTS["n"]]


def test_what_has_no_value_when_a_call_starts_is_refused() -> None:
    for size in (dim("z"), loaded("t", (dim(0),)), dim("n") // maximum(dim("z"), dim(1))):
        with pytest.raises(UsageError) as caught:
            dim_function(size, SLOTS)
        assert caught.value.code == 1005
