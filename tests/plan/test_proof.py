from __future__ import annotations

from itertools import product

import numpy as np

from tilework.dims import Dim, Symbol, dim, maximum, minimum, symbol_bounds
from tilework.plan.guard import Guard
from tilework.plan.proof import divisible, nonnegative, sample_symbols

SYMBOLS = (Symbol("n", 0, 12), Symbol("m", 1, 9))
BOUNDS = symbol_bounds(SYMBOLS)


def up(value: Dim) -> Dim:
    return (value + 63) // 64 * 64


def test_what_offsets_need_is_proved() -> None:
    n, m = dim("n"), dim("m")
    assert nonnegative(up(n * 4) - n * 4, BOUNDS)
    assert nonnegative(up(up(n * 4) + m * 12) - up(n * 4) - m * 12, BOUNDS)
    above = maximum(up(n * 4), up(m * 8))
    assert nonnegative(above - m * 8, BOUNDS)
    assert nonnegative(up(above + n) - n - m * 8, BOUNDS)
    assert nonnegative(m * (n // 3) * 3 - m * n + m * 2, BOUNDS)
    assert nonnegative(n * 5 - minimum(n * 5, m), BOUNDS)
    assert nonnegative(n - n % 4, {"n": (0, 1 << 40)}) is False or nonnegative(n // 4 * 4 - n + 3, BOUNDS)
    assert not nonnegative(n - m, BOUNDS)
    assert not nonnegative(up(n * 4) - n * 4 - 1, BOUNDS)


def random_dim(generator: np.random.Generator, depth: int = 3) -> Dim:
    if depth == 0:
        return dim(("n", "m")[int(generator.integers(0, 2))]) * int(generator.integers(-3, 4))
    a, b = random_dim(generator, depth - 1), random_dim(generator, depth - 1)
    match int(generator.integers(0, 6)):
        case 0:
            return a + b
        case 1:
            return a - b + int(generator.integers(-5, 20))
        case 2:
            return a // int(generator.integers(2, 6))
        case 3:
            return a % int(generator.integers(2, 6)) + b
        case 4:
            return maximum(a, b)
        case _:
            return minimum(a, b) * int(generator.integers(-2, 3))


def test_nothing_wrong_is_ever_proved() -> None:
    generator = np.random.default_rng(0)
    proved = 0
    for _ in range(400):
        value = random_dim(generator)
        if nonnegative(value, BOUNDS):
            proved += 1
            assert all(value.evaluate({"n": n, "m": m}) >= 0 for n, m in product(range(13), range(1, 10))), value
    assert proved > 40


def test_divisibility() -> None:
    n, m = dim("n"), dim("m")
    assert divisible(n * 64 + 128, 64)
    assert divisible(maximum(n * 64, m * 128), 64)
    assert divisible(maximum(n, m) * 64, 64)
    assert not divisible(n * 32, 64)
    assert not divisible(n * 64 + 4, 64)
    assert not divisible(maximum(n * 64, m), 64)


def test_samples_keep_bounds_divisors_and_guards() -> None:
    symbols = (Symbol("n", 3, 40, 4), Symbol("m", 0))
    samples = sample_symbols(symbols, (Guard(dim("m") - dim("n"), "nonnegative", "m >= n"),))
    assert samples
    for values in samples:
        assert values["n"] in range(4, 41, 4)
        assert values["m"] >= values["n"]
    assert sample_symbols(()) == ({},)
