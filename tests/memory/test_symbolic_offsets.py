"""Placements for all sizes: what is left out is never the largest, and nothing is lost where that is planned for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.memory.test_placement import SIZES, check, random_intervals
from tilework.dims import Dim, Symbol, dim, maximum, minimum, symbol_bounds
from tilework.memory.above import above
from tilework.memory.lifetimes import from_intervals, lower_bound
from tilework.memory.never_smaller import never_negative, terms_of
from tilework.memory.offsets import greedy, orders
from tilework.memory.placement import place
from tilework.memory.search import best_above
from tilework.memory.symbolic_offsets import SymbolicSizes

SYMBOLS = (Symbol("n", 1), Symbol("m", 0))
BOUNDS = symbol_bounds(SYMBOLS)
HALF = (dim("n") + 1) // 2
QUARTER = (HALF + 1) // 2
TERMS: tuple[Dim, ...] = (
    dim(1), dim("n"), dim("m"), dim("n") * "m", HALF, HALF * "m", QUARTER * QUARTER, (dim("n") * "m" * 4 + 63) // 64,
    maximum(dim("n") - 3, 0), minimum("n", 512), maximum("n", "m"), dim("m") % 5, dim("n") // (dim("m") + 1),
)  # fmt: skip


def values(generator: np.random.Generator) -> dict[str, int]:
    n, m = (int(2 ** generator.uniform(0, 9)) for _ in range(2))
    return {"n": n, "m": m - 1}


def test_what_is_left_out_is_never_the_largest() -> None:
    generator = np.random.default_rng(1)
    left_out = 0
    for _ in range(150):
        sums: list[Dim] = []
        for _ in range(int(generator.integers(2, 9))):
            picked = generator.integers(0, len(TERMS), int(generator.integers(1, 4)))
            sums.append(sum((TERMS[int(k)] * int(generator.integers(1, 9)) for k in picked), Dim()))
        terms = terms_of(sums, BOUNDS)
        place_of = {monomial: number for number, monomial in enumerate(terms.monomials)}
        rows = np.zeros((len(sums), len(place_of)), np.int64)
        for row, size in zip(rows, sums, strict=True):
            row[0] = size.constant
            for monomial, coefficient in size.terms:
                row[place_of[monomial]] = coefficient
        kept = terms.kept(rows)
        left_out += len(rows) - len(kept)
        for _ in range(20):
            at = values(generator)
            worth = np.array([Dim(((m, 1),)).evaluate(at) if m else 1 for m in terms.monomials])
            assert (kept @ worth).max() == max(int(size.evaluate(at)) for size in sums)
    assert left_out > 80


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        (HALF * 2, dim("n")),
        (dim("n") * 2, HALF * 2),
        (dim("n") * "n", QUARTER * QUARTER),
        (dim("n") * 64 + dim("m") * 64, dim("m") * 64 + 64),
        ((dim("n") * "m" * 4 + 63) // 64 * 64, dim("n") * "m" * 4),
    ],
)
def test_relations_that_are_seen(larger: Dim, smaller: Dim) -> None:
    terms = SymbolicSizes([larger, smaller], BOUNDS, [{"n": 5, "m": 5}])
    kept = terms.terms.kept(terms.rows)
    assert len(kept) == 1
    assert terms.dim(kept) == larger


def test_what_is_never_negative() -> None:
    n = dim("n")
    assert never_negative((n + 2) * (n + 2) - 4 * n, BOUNDS)
    assert never_negative(n - 1, BOUNDS)
    assert not never_negative(n - 2, BOUNDS)
    assert not never_negative(dim("m") - n, BOUNDS)


def test_coefficients_beyond_64_bits() -> None:
    huge = 1 << 70
    placed = place(
        ["a", "b", "c"], [dim("n") * huge, dim("n") * 64, dim(huge)], from_intervals([(0, 2), (1, 3), (2, 4)]),
        symbols=[Symbol("n", 1)],
    )  # fmt: skip
    for n in (1, 2, 1 << 40):
        assert int(placed.total.evaluate({"n": n})) == n * huge + 64 * n


def test_the_bytes_at_planned_values_are_those_of_what_stands_on_what() -> None:
    """However few sums an offset is, and for all other values nothing meets."""
    generator = np.random.default_rng(6)
    symbols = (Symbol("n", 0, 300), Symbol("m", 1, 50))
    for _ in range(20):
        count = int(generator.integers(2, 18))
        intervals = random_intervals(generator, count, 20)
        sizes = [maximum(SIZES[int(k)].ceildiv(64) * 64, 0) for k in generator.integers(0, len(SIZES), count)]
        points = [{"n": 256, "m": 50}, {"n": 256, "m": 1}, {"n": 12, "m": 12}]
        lifetimes = from_intervals(intervals)
        found, bounds = best_above(lifetimes, [[int(s.evaluate(at)) for s in sizes] for at in points])
        symbolic = SymbolicSizes(sizes, symbol_bounds(symbols), points)
        stack = symbolic.stacked(found)
        numbers = np.array([[float(s.evaluate(at)) for at in points] for s in sizes])
        for at, height, bound in zip(points, found.heights(numbers), bounds, strict=True):
            assert int(symbolic.dim(stack.total).evaluate(at)) == height >= bound
        for _ in range(20):
            at = {"n": int(generator.integers(0, 301)), "m": int(generator.integers(1, 51))}
            offsets = [int(symbolic.dim(rows).evaluate(at)) for rows in stack.starts]
            check(intervals, offsets, [int(s.evaluate(at)) for s in sizes],
                  int(symbolic.dim(stack.total).evaluate(at)))  # fmt: skip


def test_changes_find_what_no_order_does() -> None:
    """Of many drawn cases, greedy orders reach the bound less often than the search does."""
    generator = np.random.default_rng(8)
    reached = missed = 0
    for _ in range(30):
        intervals = random_intervals(generator, 24)
        sizes = [64 * int(s) for s in generator.integers(1, 60, 24)]
        lifetimes = from_intervals(intervals)
        bound = lower_bound(lifetimes, sizes)
        column = np.array(sizes, np.float64)[:, None]
        tried = [above(lifetimes, greedy(lifetimes, sizes, order)) for order in orders(lifetimes, sizes)]
        found, _ = best_above(lifetimes, [sizes])
        height = found.heights(column)[0]
        assert bound <= height <= min(one.heights(column)[0] for one in tried)
        missed += all(one.heights(column)[0] > bound for one in tried)
        reached += height == bound
        ends = found.ends(column)[:, 0]
        starts = [int(end) - size for end, size in zip(ends, sizes, strict=True)]
        check(intervals, starts, sizes, int(height))
    assert missed > 0
    assert reached > 30 - missed
