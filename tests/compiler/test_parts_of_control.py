"""Parts of memory that control flow reads, writes or returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.test_control import check
from tests.compiler.test_parts import cut, stored
from tilework import dtypes
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol, dim
from tilework.graph.graph import Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.plan.steps import KernelStep

F32, BOOL, I64 = dtypes.float32, dtypes.boolean, dtypes.int64
N = Symbol("N", 0, 100)


def steps(graph: Graph) -> list[str]:
    plan = lower_graph(graph, CompileOptions()).plan
    return [step.name for _, step in plan.walk() if isinstance(step, KernelStep)]


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def scanned(b: GraphBuilder, start: Value, rows: Value, name: str, *, reverse: bool = False) -> list[Value]:
    """Running sums of rows; the state is given back, and all of them."""
    inner = b.subgraph(name)
    state, row = inner.input(f"{name}_state", F32, 4), inner.input(f"{name}_row", F32, 4)
    total = stored(inner, inner.apply_one("add", state, row))
    body = inner.build([total, inner.apply_one("negate", total)])
    return list(b.apply("scan", start, rows, subgraphs=(body,), state_count=1, reverse=reverse))


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_two_scans_fill_one_result(rows: int) -> None:
    """Both directions of a recurrent layer: rows go into their half, states start from slices of one array."""
    b = GraphBuilder("g", [N])
    x, start = b.input("x", F32, "N", 4), b.input("start", F32, 2, 4)
    states = [b.apply_one("reshape", cut(b, start, k, k + 1), shape=(4,)) for k in (0, 1)]
    _, first = scanned(b, states[0], x, "forward")
    last, second = scanned(b, states[1], x, "backward", reverse=True)
    both = b.apply_one("concatenate", first, second, dimension=0)
    graph = b.build([stored(b, both), last, stored(b, first, 0)])
    names = steps(graph)
    assert "slice" not in names
    assert "concatenate" not in names
    check(graph, numbers(rows, 4), numbers(2, 4))


@pytest.mark.parametrize("decision", [True, False])
def test_a_branch_returns_a_concatenation_of_parts(decision: bool) -> None:
    """The operands are written into the result of the `if`, from slices of what is outside."""
    b = GraphBuilder("g")
    p, x = b.input("p", BOOL), b.input("x", F32, 4, 6)
    outer = stored(b, x)

    def arm(name: str, first: int) -> Graph:
        inner = b.subgraph(name)
        given = inner.input(f"{name}_x", F32, 4, 6)
        part, other = cut(inner, given, first, first + 2), cut(inner, outer, 1, 3)
        one, two = stored(inner, part, 0), stored(inner, part, 1)
        three = stored(inner, inner.apply_one("add", stored(inner, other), stored(inner, other, 0)), 0)
        return inner.build([inner.apply_one("concatenate", one, two, three, dimension=0)])

    result = b.apply("if", p, x, subgraphs=(arm("then", 0), arm("else", 2)))
    assert isinstance(result, Value)
    graph = b.build([result, stored(b, cut(b, result, 2, 4))])
    assert not [name for name in steps(graph) if "concatenate" in name]
    check(graph, np.asarray(decision), numbers(4, 6))


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_state_of_a_loop_is_sliced_and_joined(trips: int) -> None:
    """State changes under its readers at the end of a trip: a slice of it is no window, what is returned is copied."""
    b = GraphBuilder("g")
    x = b.input("x", F32, 4, 6)
    limit, zero = b.input("limit", I64), b.constant(0, dtype=I64)

    def formal(inner: GraphBuilder, prefix: str) -> tuple[Value, Value, Value]:
        return (
            inner.input(f"{prefix}k", I64),
            inner.input(f"{prefix}a", F32, 4, 6),
            inner.input(f"{prefix}b", F32, 2, 6),
        )

    inner = b.subgraph("condition")
    k, *_ = formal(inner, "c_")
    condition = inner.build([inner.apply_one("compare", k, limit, direction="LT")])
    inner = b.subgraph("body")
    k, a, old = formal(inner, "b_")
    head, tail = cut(inner, a, 0, 2), cut(inner, a, 2, 4)
    new = stored(inner, inner.apply_one("add", head, old), 0)
    whole = inner.apply_one("concatenate", stored(inner, tail), stored(inner, new), dimension=0)
    bounded = inner.apply_one("tanh", whole)
    middle = cut(inner, bounded, 1, 3)
    body = inner.build([inner.apply_one("add", k, inner.constant(1, dtype=I64)), bounded, middle])
    start = b.apply_one("concatenate", stored(b, cut(b, x, 0, 1)), stored(b, cut(b, x, 1, 4)), dimension=0)
    _, last, part = b.apply("while", zero, start, cut(b, start, 1, 3), subgraphs=(condition, body))
    graph = b.build([last, stored(b, part), stored(b, start)])
    check(graph, numbers(4, 6), np.asarray(trips, np.int64))


def test_rows_at_a_trip_are_no_windows() -> None:
    """Where they start depends on the trip: their kernel reads them where they are."""
    b = GraphBuilder("g", [N])
    x, start = b.input("x", F32, "N", 4), b.input("start", F32, 4)
    _, rows = scanned(b, start, cut(b, x, dim("N") // 2, dim("N")), "body")
    check(b.build([rows]), numbers(7, 4), numbers(4))
