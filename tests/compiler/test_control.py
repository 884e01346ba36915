"""Compiled control flow: branches, repetition and scans against the graph's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol
from tilework.graph.graph import Graph
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.plan.interpret import interpret_plan
from tilework.plan.verify import verify as verify_plan

F32, I64, BOOL = dtypes.float32, dtypes.int64, dtypes.boolean


def check(graph: Graph, *inputs: Any) -> tuple[Any, ...]:
    """Compile (with every access checked, too), verify the plan, and compare calls, steps one by one, and the plan's
    interpreter with the graph's; returns the results.
    """
    wanted = interpret(graph, inputs)
    found: tuple[Any, ...] = ()
    for options in (CompileOptions(checked=True), CompileOptions()):
        executable = compile_graph(graph, options)
        verify_plan(executable.plan)
        found = tuple(executable(*inputs))
        for _ in range(2):
            for have, want in zip(executable(*inputs), wanted, strict=True):
                assert have.dtype == want.dtype
                np.testing.assert_allclose(have, want, rtol=2e-6, atol=1e-6)
        stepped, times = executable.step_times(*inputs)
        assert {time.name for time in times} <= {step.name for _, step in executable.plan.walk()}
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found, stepped, strict=True))
        planned = interpret_plan(executable.plan, list(inputs), executable._constants)  # pyright: ignore[reportPrivateUsage]
        for have, want in zip(planned, wanted, strict=True):
            np.testing.assert_allclose(have, want, rtol=2e-6, atol=1e-6)
    return found


def branch(b: GraphBuilder, name: str, build: Callable[[GraphBuilder], list[Any]]) -> Graph:
    inner = b.subgraph(name)
    return inner.build(build(inner))


@pytest.mark.parametrize("decision", [True, False])
def test_branches_compute_into_results_or_copy(decision: bool) -> None:
    """A computed value, one value twice, a captured value, an operand, and a constant."""
    b = GraphBuilder("g", [Symbol("N", 0, 100)])
    p, x = b.input("p", BOOL), b.input("x", F32, "N", 3)
    outer = b.apply_one("exponential", x)

    def then(inner: GraphBuilder) -> list[Any]:
        given, passed = inner.input("then_x", F32, "N", 3), inner.input("then_outer", F32, "N", 3)
        y = inner.apply_one("negate", outer)
        return [y, y, passed, given, inner.constant([1.0, 2.0], dtype=F32)]

    def other(inner: GraphBuilder) -> list[Any]:
        given = inner.input("else_x", F32, "N", 3)
        inner.input("else_outer", F32, "N", 3)
        y = inner.apply_one("add", given, outer)
        turned = inner.apply_one("reshape", y, shape=(3, x.tensor.shape[0]))
        back = inner.apply_one("reshape", turned, shape=(x.tensor.shape[0], 3))
        return [given, y, back, inner.apply_one("abs", y), inner.constant([3.0, 4.0], dtype=F32)]

    results = b.apply("if", p, x, outer, subgraphs=(branch(b, "then", then), branch(b, "else", other)))
    total = b.apply_one("add", results[0], results[3])
    graph = b.build([*results, total])
    for n in (0, 1, 37):
        check(graph, np.asarray(decision), np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_branches_inside_branches(first: bool, second: bool) -> None:
    b = GraphBuilder("g")
    p, q, x = b.input("p", BOOL), b.input("q", BOOL), b.input("x", F32, 5)

    def then(inner: GraphBuilder) -> list[Any]:
        a = branch(inner, "a", lambda i: [i.apply_one("negate", x)])
        c = branch(inner, "c", lambda i: [i.apply_one("add", x, x)])
        return [inner.apply("if", q, subgraphs=(a, c))]

    results = b.apply("if", p, subgraphs=(branch(b, "t", then), branch(b, "e", lambda i: [i.apply_one("abs", x)])))
    check(b.build([results]), np.asarray(first), np.asarray(second), np.array([1, -2, 3, -4, 5], np.float32))


def collatz(b: GraphBuilder) -> Graph:
    """Halves or triples until 1, counting; one more value goes through unchanged, two change places."""
    state = [b.input("n", I64), b.input("count", I64), b.input("same", F32, 4), b.input("a", F32, 3),
             b.input("c", F32, 3)]  # fmt: skip

    def formal(inner: GraphBuilder, prefix: str) -> list[Any]:
        return [
            inner.input(f"{prefix}n", I64), inner.input(f"{prefix}count", I64), inner.input(f"{prefix}same", F32, 4),
            inner.input(f"{prefix}a", F32, 3), inner.input(f"{prefix}c", F32, 3),
        ]  # fmt: skip

    def condition(inner: GraphBuilder) -> list[Any]:
        n, *_ = formal(inner, "c_")
        return [inner.apply_one("compare", n, inner.constant(1, dtype=I64), direction="GT")]

    def body(inner: GraphBuilder) -> list[Any]:
        n, count, same, a, c = formal(inner, "b_")
        two, three, one = (inner.constant(v, dtype=I64) for v in (2, 3, 1))
        even = inner.apply_one(
            "compare", inner.apply_one("remainder", n, two), inner.constant(0, dtype=I64), direction="EQ"
        )
        half = inner.apply_one("divide", n, two)
        tripled = inner.apply_one("add", inner.apply_one("multiply", n, three), one)
        following = inner.apply_one("select", even, half, tripled)
        return [following, inner.apply_one("add", count, one), same, c, inner.apply_one("add", a, c)]

    found = b.apply("while", *state, subgraphs=(branch(b, "condition", condition), branch(b, "body", body)))
    return b.build(list(found))


@pytest.mark.parametrize("start", [1, 6, 27])
def test_repetition(start: int) -> None:
    rng = np.random.default_rng(start)
    a, c = rng.standard_normal((2, 3)).astype(np.float32) * np.float32(1e-30)
    same = np.arange(4, dtype=np.float32)
    found = check(collatz(GraphBuilder("g")), np.asarray(start), np.asarray(0), same, a, c)
    assert int(found[1]) == {1: 0, 6: 8, 27: 111}[start]


def test_a_condition_that_is_part_of_the_state() -> None:
    b = GraphBuilder("g")
    go, x = b.input("go", BOOL), b.input("x", F32, 2)

    def body(inner: GraphBuilder) -> list[Any]:
        inner.input("b_go", BOOL)
        y = inner.input("b_x", F32, 2)
        doubled = inner.apply_one("add", y, y)
        largest = inner.apply_one("reduce", doubled, dimensions=(0,), reducer="maximum")
        return [inner.apply_one("compare", largest, inner.constant(100.0, dtype=F32), direction="LT"), doubled]

    def condition(inner: GraphBuilder) -> list[Any]:
        given = inner.input("c_go", BOOL)
        inner.input("c_x", F32, 2)
        return [given]

    found = b.apply("while", go, x, subgraphs=(branch(b, "c", condition), branch(b, "b", body)))
    graph = b.build(list(found))
    check(graph, np.asarray(True), np.array([1.5, -3], np.float32))
    check(graph, np.asarray(False), np.array([1.5, -3], np.float32))


def recurrence(b: GraphBuilder, *, reverse: bool) -> Graph:
    """h = tanh(x W + h R), collecting h and what went in; a reversed scan reads from the end."""
    x, h = b.input("x", F32, "T", "B", 5), b.input("h", F32, "B", 4)
    rng = np.random.default_rng(3)
    w = b.constant(rng.standard_normal((5, 4)).astype(np.float32))
    r = b.constant(rng.standard_normal((4, 4)).astype(np.float32))

    def body(inner: GraphBuilder) -> list[Any]:
        state, row = inner.input("b_h", F32, "B", 4), inner.input("b_x", F32, "B", 5)
        left = inner.apply_one("dot_general", row, w, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))
        right = inner.apply_one(
            "dot_general", state, r, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,)
        )
        following = inner.apply_one("tanh", inner.apply_one("add", left, right))
        return [following, following, state, inner.apply_one("negate", row)]

    found = b.apply("scan", h, x, subgraphs=(branch(b, "body", body),), state_count=1, reverse=reverse)
    return b.build(list(found))


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse: bool) -> None:
    graph = recurrence(GraphBuilder("g", [Symbol("T", 0, 100), Symbol("B", 1, 50)]), reverse=reverse)
    for t, size in ((1, 1), (7, 3), (0, 2), (30, 17)):
        rng = np.random.default_rng(t)
        x, h = rng.standard_normal((t, size, 5)).astype(np.float32), rng.standard_normal((size, 4)).astype(np.float32)
        check(graph, x, h)


def test_scans_inside_scans() -> None:
    b = GraphBuilder("g", [Symbol("N", 1, 50)])
    x, s = b.input("x", F32, 3, "N"), b.input("s", F32)

    def outer(body: GraphBuilder) -> list[Any]:
        state, row = body.input("o_s", F32), body.input("o_x", F32, "N")

        def inner(deeper: GraphBuilder) -> list[Any]:
            total, one = deeper.input("i_s", F32), deeper.input("i_x", F32)
            following = deeper.apply_one(
                "add", deeper.apply_one("multiply", total, deeper.constant(0.5, dtype=F32)), one
            )
            return [following, following]

        found = body.apply("scan", state, row, subgraphs=(branch(body, "inner", inner),), state_count=1)
        return [found[0], found[1]]

    found = b.apply("scan", s, x, subgraphs=(branch(b, "outer", outer),), state_count=1)
    graph = b.build(list(found))
    for n in (1, 9):
        check(graph, np.random.default_rng(n).standard_normal((3, n)).astype(np.float32), np.float32(2))
