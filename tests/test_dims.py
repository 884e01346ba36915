"""Symbolic integers: whatever is built, simplified, substituted or read back has the value that integers have."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable

import pytest

from tilework.dims import Bounds, Dim, IntLike, Loaded, dim, loaded, maximum, minimum, parse_dim, product
from tilework.errors import UsageError

NAMES = ("i", "j", "k", "n")
RANGES: Bounds = {"i": (0, 6), "j": (-3, 5), "k": (2, 9), "n": (1, 4)}
TABLE = [3, 0, 7, 2, 5]


def load(buffer: str, index: tuple[int, ...]) -> int:
    assert buffer == "table"
    return TABLE[index[0] % len(TABLE)]


Value = Callable[[dict[str, int]], int]


def constant(value: int) -> tuple[Dim, Value]:
    return dim(value), lambda at: value  # noqa: ARG005


def named(name: str) -> tuple[Dim, Value]:
    return dim(name), lambda at: at[name]


def drawn(rng: random.Random, depth: int, data: bool = True) -> tuple[Dim, Value]:
    """Return a random dim and the same by integers alone."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.6:
            return named(rng.choice(NAMES))
        return constant(rng.randint(-6, 6))
    a, of_a = drawn(rng, depth - 1, data)
    b, of_b = drawn(rng, depth - 1, data)
    divisor, of_divisor = constant(rng.randint(1, 6)) if rng.random() < 0.6 else named("k")
    kinds = ["+", "-", "*", "//", "%", "both", "max", "min", *(["load"] if data else [])]
    match rng.choice(kinds):
        case "+":
            return a + b, lambda at: of_a(at) + of_b(at)
        case "-":
            return a - b, lambda at: of_a(at) - of_b(at)
        case "*":
            return a * b, lambda at: of_a(at) * of_b(at)
        case "//":
            return a // divisor, lambda at: of_a(at) // of_divisor(at)
        case "%":
            return a % divisor, lambda at: of_a(at) % of_divisor(at)
        case "both":  # meets again as `a`
            return a // divisor * divisor + a % divisor, of_a
        case "max":
            return maximum(a, b), lambda at: max(of_a(at), of_b(at))
        case "min":
            return minimum(a, b), lambda at: min(of_a(at), of_b(at))
        case _:
            return loaded("table", [a]), lambda at: load("table", (of_a(at),))


def points(rng: random.Random, count: int = 8) -> list[dict[str, int]]:
    return [{name: rng.randint(int(low), int(high)) for name, (low, high) in RANGES.items()} for _ in range(count)]


@pytest.mark.parametrize("seed", range(60))
def test_values_bounds_and_text(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        value, by_integers = drawn(rng, 4)
        low, high = value.bounds(RANGES)
        simple = value.simplify(RANGES)
        again = parse_dim(str(value))
        assert again == value
        assert hash(again) == hash(value)
        assert pickle.loads(pickle.dumps(value)) == value
        assert value.names() <= set(NAMES)
        for at in points(rng):
            expected = by_integers(at)
            assert value.evaluate(at, load) == expected
            assert simple.evaluate(at, load) == expected
            assert low <= expected <= high


@pytest.mark.parametrize("seed", range(40))
def test_substitution_is_evaluation_in_steps(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        value, by_integers = drawn(rng, 3)
        inner, of_inner = drawn(rng, 2, data=False)
        moved = value.substitute({"i": inner, "n": 2})
        for at in points(rng):
            assert moved.evaluate(at, load) == by_integers({**at, "i": of_inner(at), "n": 2})
        at = points(rng, 1)[0]
        assert value.substitute(dict[str, IntLike](at)).evaluate({}, load) == by_integers(at)


def test_loaded_elements_are_replaced_once_their_index_is() -> None:
    value = dim("i") + loaded("table", [dim("i") + 1])
    seen: list[Loaded] = []

    def read(element: Loaded) -> Dim:
        seen.append(element)
        return dim("n")

    assert value.substitute({"i": 2}, read) == dim("n") + 2
    assert seen == [Loaded("table", (dim(3),))]


def test_normal_forms_are_equal() -> None:
    i, j, n = dim("i"), dim("j"), dim("n")
    assert (i + j) * (i - j) == i * i - j * j
    assert (i * n + j * n) // n == i + j
    assert (6 * i + 5) // 3 == 2 * i + 1
    assert (4 * i + 2) // 6 == (2 * i + 1) // 3
    assert i // 4 * 4 + i % 4 == i
    assert (i + 8 * j) % 4 == i % 4
    assert maximum(i, maximum(3, j), 5) == maximum(i, j, 5)
    assert product([2, i, "j"]) == 2 * i * j
    assert product([]) == 1
    assert dim(7) == 7
    assert int(dim(7)) == 7


def test_affinity() -> None:
    i, j = dim("i"), dim("j")
    assert (3 * i + j * j).affine_in(["i"])
    assert not (3 * i + j * j).affine_in(["j"])
    assert not (i // 2).affine_in(["i"])
    assert (i // 2 + i % 3).quasi_affine_in(["i"])
    assert not (i // dim("n")).quasi_affine_in(["i"])
    assert (3 * i + 4).coefficient("i") == 3
    assert (3 * i + 4).coefficient("j") == 0


def test_unbounded_names_have_infinite_bounds() -> None:
    assert dim("x").bounds({}) == (-math.inf, math.inf)
    assert (dim("x") * 0).bounds({}) == (0, 0)
    assert (dim("x") % 5).bounds({}) == (0, 4)


@pytest.mark.parametrize("text", ["", "1.5", "i +", "i / 2", "i ** 2", "f(i)", "max()", "True", "i[", "(" * 500])
def test_bad_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_dim(text)
    assert error.value.code == 1004


def test_what_has_no_value_is_refused() -> None:
    for bad in (lambda: int(dim("i")), lambda: dim("i").evaluate({}), lambda: loaded("table", [1]).evaluate({})):
        with pytest.raises(UsageError) as error:
            bad()
        assert error.value.code == 1005
    quotient = dim("i") // dim("k")
    for wrong in (lambda: dim("i") // 0, lambda: dim("i") % -1, lambda: quotient.evaluate({"i": 1, "k": 0})):
        with pytest.raises(UsageError) as error:
            wrong()
        assert error.value.code == 1004
