# pyright: reportPrivateUsage=false
"""Sizes that a call measures: compiled plans against the graph's interpreter and the plan's, however one runs."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

from tests.compiler.test_control import check
from tilework import dtypes
from tilework.compiler.compile import compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol, dim
from tilework.errors import OutOfMemoryError, RunError
from tilework.graph.graph import Graph
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify
from tilework.plan.parse import parse_plan
from tilework.plan.steps import Allocate, Carry, Check
from tilework.plan.text import plan_text
from tilework.plan.verify import plan_faults
from tilework.runtime.context import Context, ContextOptions

F32, I64, BOOL = dtypes.float32, dtypes.int64, dtypes.boolean


def squares(upper: int | None = None, lower: int = 0) -> Graph:
    """The squares of the numbers below a count, and that many copies of x."""
    b = GraphBuilder("squares", [Symbol("n"), Symbol("m", lower, upper, measured=True)])
    count, x = b.input("count", I64), b.input("x", F32, "n")
    numbers = b.apply_one("numbers_below", count, extent=(dim("m"),))
    square = b.apply_one("multiply", numbers, numbers)
    copies = b.apply_one("broadcast_in_dim", x, shape=(dim("m"), dim("n")), broadcast_dimensions=(1,))
    graph = b.build([square, copies])
    verify(graph)
    return graph


@pytest.mark.parametrize("count", [0, 1, 7, 100])
@pytest.mark.parametrize("upper", [None, 100])
def test_results_of_a_size_that_is_an_argument(count: int, upper: int | None) -> None:
    x = np.arange(5, dtype=np.float32)
    found = check(squares(upper), np.array(count), x)
    np.testing.assert_array_equal(found[0], np.arange(count) ** 2)
    assert found[1].shape == (count, 5)


def test_only_the_size_is_wanted() -> None:
    """Nobody reads the numbers: the symbol is bound all the same, before the first kernel that needs it."""
    b = GraphBuilder("only", [Symbol("m", measured=True)])
    count = b.input("count", I64)
    b.apply_one("numbers_below", count, extent=(dim("m"),))
    check(b.build([b.apply_one("iota", shape=(dim("m"), 3), dimension=0, dtype=F32)]), np.array(4))


@pytest.mark.parametrize("count", [-1, 11])
def test_a_count_out_of_bounds_ends_the_call(count: int) -> None:
    executable = compile_graph(squares(10))
    x = np.ones(2, np.float32)
    for run in (executable, executable.step_times):
        with pytest.raises(RunError, match=f"a size of {count}") as caught:
            run(np.array(count), x)
        assert caught.value.code == 1424
    assert executable(np.array(10), x)[0].shape == (10,)


def test_what_needs_more_is_checked_when_it_is_known() -> None:
    b = GraphBuilder("first", [Symbol("n"), Symbol("m", measured=True)])
    count, x = b.input("count", I64), b.input("x", F32, "n")
    b.apply_one("numbers_below", count, extent=(dim("m"),))
    part = b.apply_one("slice", x, start_indices=(0,), limit_indices=(dim("m"),), strides=(1,), location="my slice")
    graph = b.build([part])
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(check(graph, np.array(3), x)[0], x[:3])
    executable = compile_graph(graph)
    for run in (executable, executable.step_times):
        with pytest.raises(RunError, match="my slice") as caught:
            run(np.array(6), x)
        assert caught.value.code == 1803
    assert any(isinstance(step, Check) for _, step in executable.plan.walk())


def test_sizes_that_are_assumed_equal_are_copied_not_shared() -> None:
    """What is assumed to have 5 elements may have fewer memory: it is no view, and checked first."""
    b = GraphBuilder("assumed", [Symbol("m", measured=True)])
    count = b.input("count", I64)
    numbers = b.apply_one("numbers_below", count, extent=(dim("m"),))
    graph = b.build([b.apply_one("assume", numbers, shape=(5,))])
    np.testing.assert_array_equal(check(graph, np.array(5))[0], np.arange(5))
    with pytest.raises(RunError) as caught:
        compile_graph(graph)(np.array(4))
    assert caught.value.code == 1803


def test_memory_is_asked_for_and_may_end() -> None:
    executable = compile_graph(squares(), CompileOptions(memory_limit=100_000))
    x = np.ones(100, np.float32)
    assert executable(np.array(10), x)[1].shape == (10, 100)
    for count in (1000, 2**40, 2**62):
        with pytest.raises(OutOfMemoryError):
            executable(np.array(count), x)
    assert executable(np.array(10), x)[1].shape == (10, 100)
    with pytest.raises(OutOfMemoryError):
        compile_graph(squares())(np.array(2**62), x)


def test_bare_memory() -> None:
    """The core entry: measured outputs come from its allocator, with the shape that was measured."""
    executable = compile_graph(squares())
    count, x = np.array(6), np.arange(3, dtype=np.float32)
    with Context(ContextOptions(threads=1)) as context:
        allocator = context.allocator()
        results = executable.run_core([count.ctypes.data, x.ctypes.data], [(), (3,)], [None, None], allocator)
        assert [result.shape for result in results] == [(6,), (6, 3)]
        import ctypes

        held = np.frombuffer(ctypes.string_at(results[0].address, 48), np.int64)
        np.testing.assert_array_equal(held, np.arange(6) ** 2)
        for result in results:
            allocator.release(result.address)


def test_threads_and_calls_side_by_side() -> None:
    x = np.random.default_rng(0).standard_normal(257).astype(np.float32)
    results: list[bytes] = []
    for threads in (1, 2, 3, 8):
        with Context(ContextOptions(threads=threads)) as context:
            found = compile_graph(squares(), None, context)(np.array(1000), x)
            results.append(b"".join(array.tobytes() for array in found))
    assert len(set(results)) == 1
    executable = compile_graph(squares())
    wrong: list[int] = []

    def calls(count: int) -> None:
        for more in range(50):
            square, copies = executable(np.array(count + more), x)
            if square.shape != (count + more,) or not (copies == x).all() or (count and square[-1] == 0 != count):
                wrong.append(count)

    workers = [threading.Thread(target=calls, args=(count,)) for count in (0, 3, 500)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def growing(limit: int | None = None) -> Graph:
    """A vector gets one more element each trip, twice the last one's successor, until one exceeds a limit; and each
    trip leaves a row. Another state changes places with a third of its size.
    """
    symbols = [Symbol("end", measured=True), Symbol("trips", 0, limit, measured=True)]
    b = GraphBuilder("growing", [Symbol("k", 1, 100), *symbols])
    x, most = b.input("x", F32, "k"), b.input("most", F32)
    left, right = b.input("left", F32, 2), b.input("right", F32, 2)
    own = Symbol("size", 1, measured=True)

    def formals(inner: GraphBuilder) -> list[Any]:
        names = [(inner.fresh("v"), ("size",)), (inner.fresh("l"), (2,)), (inner.fresh("r"), (2,))]
        return [inner.input(name, F32, *shape) for name, shape in names]

    asked = b.subgraph("condition")
    v, _, _ = formals(asked)
    largest = asked.apply_one("reduce", v, dimensions=(0,), reducer="maximum")
    condition = asked.build([asked.apply_one("compare", largest, most, direction="LT")]).replace(symbols=(own,))
    inner = b.subgraph("body")
    v, one, two = formals(inner)
    last = inner.apply_one("slice", v, start_indices=(dim("size") - 1,), limit_indices=(dim("size"),), strides=(1,))
    more = inner.apply_one("add", inner.apply_one("add", last, last), inner.constant([1.0], dtype=F32))
    row = inner.apply_one("concatenate", more, one, dimension=0)
    longer = inner.apply_one("concatenate", v, more, dimension=0)
    body = inner.build([longer, two, one, row]).replace(symbols=(own,))
    attributes = {"extents": (dim("end"),), "rows": (dim("trips"),)}
    found = b.apply_all("while", [x, left, right, most][:3], attributes, subgraphs=[condition, body])
    total = b.apply_one("reduce", found[3], dimensions=(0,), reducer="sum")
    graph = b.build([*found, total])
    verify(graph)
    return graph


@pytest.mark.parametrize("most", [-10.0, 0.5, 1.5, 1e3])
def test_loops_whose_state_and_rows_grow(most: float) -> None:
    x, left, right = (np.array(v, np.float32) for v in ([-1.5, 0.25], [1, 2], [3, 4]))
    found = check(growing(), x, np.float32(most), left, right)
    wanted, rows = [*x], list[list[float]]()
    pair = [left, right]
    while max(wanted) < most:
        wanted.append(2 * wanted[-1] + 1)
        rows.append([wanted[-1], *pair[0]])
        pair.reverse()
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(found[1], pair[0])
    np.testing.assert_array_equal(found[3], np.array(rows, np.float32).reshape(-1, 3))


def test_too_many_rows_end_the_call() -> None:
    executable = compile_graph(growing(3))
    x = np.ones(1, np.float32)
    assert executable(x, np.float32(8), np.zeros(2, np.float32), np.zeros(2, np.float32))[3].shape == (3, 3)
    with pytest.raises(RunError) as caught:
        executable(x, np.float32(100), np.zeros(2, np.float32), np.zeros(2, np.float32))
    assert caught.value.code == 1424


@pytest.mark.parametrize("graph", [squares(), growing()])
def test_text_and_the_verifier(graph: Graph) -> None:
    plan = lower_graph(graph, CompileOptions()).plan
    text = plan_text(plan)
    assert plan_text(parse_plan(text)) == text
    # a planted fault: without what binds the symbols, or allocates, each is told
    for kind, word in ((Allocate, "allocate"), (Carry, "carry")):
        if not any(isinstance(step, kind) for _, step in plan.walk()):
            continue
        lines = [line for line in text.splitlines() if not re.match(rf"\s+{word} ", line)]
        codes = {fault.code for fault in plan_faults(parse_plan("\n".join(lines) + "\n"))}
        assert codes & {1416, 1418}, codes


def test_a_value_that_there_is_not() -> None:
    b = GraphBuilder("branch", [])
    p, x = b.input("p", BOOL), b.input("x", F32, 3)
    then, other = b.subgraph("then"), b.subgraph("else")
    graphs = [
        then.build([then.apply_one("negate", x)]),
        other.build([other.apply_one("no_value", shape=(3,), dtype=F32, reason="it does not fit")]),
    ]
    graph = b.build(b.apply_all("if", [p], {}, subgraphs=graphs))
    verify(graph)
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(check(graph, np.array(True), x)[0], -x)
    with pytest.raises(RunError, match="it does not fit"):
        interpret(graph, [np.array(False), x])
    executable = compile_graph(graph)
    for run in (executable, executable.step_times):
        with pytest.raises(RunError, match="it does not fit") as caught:
            run(np.array(False), x)
        assert caught.value.code == 1804


@pytest.mark.parametrize("decision", [True, False])
def test_branches_whose_results_have_measured_sizes(decision: bool) -> None:
    """One computes the result, and one hands on a value that both see: each allocates it."""
    b = GraphBuilder("branches", [Symbol("m", measured=True)])
    count, p = b.input("count", I64), b.input("p", BOOL)
    numbers = b.apply_one("numbers_below", count, extent=(dim("m"),))
    then, other = b.subgraph("then"), b.subgraph("else")
    passed = [inner.input(name, I64, "m") for inner, name in ((then, "t"), (other, "e"))]
    doubled = then.apply_one("add", passed[0], passed[0])
    graphs = [then.build([passed[0], doubled]), other.build([passed[1], passed[1]])]
    results = b.apply_all("if", [p, numbers], {}, subgraphs=graphs)
    graph = b.build([*results, b.apply_one("add", results[0], results[1])])
    verify(graph)
    for number in (5, 0, 9):
        found = check(graph, np.array(number), np.array(decision))
        np.testing.assert_array_equal(found[1], np.arange(number) * (2 if decision else 1))
