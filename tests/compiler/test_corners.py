"""Graphs that random drawing found hard, kept small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.compiler.checking import check_graph
from tilework import dtypes
from tilework.dims import Symbol
from tilework.numerics import Level
from tilework.ops.builder import GraphBuilder

F32 = dtypes.float32
SIZES = ({"N": 3, "M": 1}, {"N": 17, "M": 2}, {"N": 0, "M": 5}, {"N": 130, "M": 3})


def padded_window(b: GraphBuilder) -> list[Any]:
    """A window that lies in padding alone, its first dimension of extent 1: the start must be written all the same."""
    x = b.input("x", F32, "M", "N")
    return [
        b.apply_one(
            "reduce_window", x, window_dimensions=(1, 2), window_strides=(1, 3), padding=((1, 0), (2, 0)),
            window_dilations=(2, 1), reducer="minimum",
        )
    ]  # fmt: skip


def positions(b: GraphBuilder) -> list[Any]:
    """A reduction into two buffers at once."""
    x = b.input("x", F32, "M", 4, "N")
    return [b.apply_one("arg_reduce", x, dimension=d, direction="minimum", last=bool(d % 2)) for d in range(3)]


def split_quotient(b: GraphBuilder) -> list[Any]:
    """Loops fused over 12 x 7 and split again: the target's index is quotients and remainders of pieces."""
    x = b.input("x", F32, 6, 12, 7)
    one = b.constant(1.0, dtype=F32)
    small = b.apply_one("clamp", b.apply_one("negate", one), x, one)
    return [b.apply_one("reduce", small, dimensions=(0,), reducer="product")]


def narrow_and_slow(b: GraphBuilder) -> list[Any]:
    """Eight-bit elements, of which a vector holds as many as a loop may have lanes."""
    x = b.input("x", dtypes.int8, 7, 17, 1, 3)
    y = b.input("y", dtypes.uint8, "N", 300)
    return [b.apply_one("power", x, x), b.apply_one("divide", y, y)]


def empty_scan(b: GraphBuilder) -> list[Any]:
    x = b.input("x", dtypes.int64, 1, 0, 1)
    return [b.apply_one("cumulative", x, dimension=1, reducer="product", exclusive=True)]


def outputs_of_every_kind(b: GraphBuilder) -> list[Any]:
    """A result twice, an input, a constant, a reshape of each, and names that the plan might have wanted."""
    x = b.input("output 0", F32, "N", 4)
    y = b.apply_one("negate", x, names="output 1")
    constant = b.constant([1.0, 2.0], dtype=F32)
    turned = b.apply_one("reshape", y, shape=(2, y.tensor.shape[0], 2))
    given = b.apply_one("reshape", x, shape=(4, x.tensor.shape[0]))
    fixed = b.apply_one("reshape", constant, shape=(2, 1))
    return [y, y, x, x, constant, turned, given, fixed, turned]


def nothing_but_moves(b: GraphBuilder) -> list[Any]:
    """Reshapes on both sides of what a region may join, and one value read in two shapes."""
    x = b.input("x", F32, "N", 6)
    first = b.apply_one("reshape", x, shape=(x.tensor.shape[0] * 6,))
    stored = b.apply_one("cumulative", first, dimension=0, reducer="maximum")
    second = b.apply_one("reshape", stored, shape=(x.tensor.shape[0], 2, 3))
    third = b.apply_one("transpose", second, permutation=(2, 0, 1))
    back = b.apply_one("reshape", third, shape=(3, x.tensor.shape[0] * 2))
    return [b.apply_one("add", back, back), stored, b.apply_one("reverse", second, dimensions=(0, 2))]


@pytest.mark.parametrize("level", ["strict", "default", "fast"])
@pytest.mark.parametrize(
    "build",
    [
        padded_window, positions, split_quotient, narrow_and_slow, empty_scan, outputs_of_every_kind, nothing_but_moves,
    ],
)  # fmt: skip
def test_corner(build: Callable[[GraphBuilder], list[Any]], level: Level) -> None:
    builder = GraphBuilder("corner", [Symbol("N", 0, 200), Symbol("M", 1, 200)])
    outputs = build(builder)
    builder.input("shows the symbols", F32, "N", "M")
    graph = builder.build(outputs)
    check_graph(graph, level=level, sizes=SIZES)
    check_graph(graph, level=level, sizes=SIZES[:2], checked=True)
