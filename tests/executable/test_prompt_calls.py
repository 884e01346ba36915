"""The shortest way of a call answers as the longer one, and leaves to it whatever is unusual."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.executable.building import F32, affine
from tilework import dtypes
from tilework.compiler.compile import CompileOptions, compile_graph
from tilework.errors import CallError, OutOfMemoryError, RunError, UsageError
from tilework.graph.graph import Graph, GraphSignature, InputPolicy, OutputPolicy
from tilework.ops.builder import GraphBuilder
from tilework.runtime.context import Context, ContextOptions
from tilework.runtime.executable import Executable
from tilework.runtime.memory import RECYCLE_FROM

ROWS = 7


def looked_up(rows: int = ROWS) -> Graph:
    """Two outputs of a table and of positions in it, through memory of the call's own."""
    builder = GraphBuilder("looked_up")
    table = builder.input("table", F32, rows, 3)
    at = builder.input("at", dtypes.int64, 5)
    taken = builder.apply_one("take", table, at, dimension=0, location="Gather")
    summed = builder.apply_one("cumulative", taken, dimension=1, reducer="sum")
    return builder.build([builder.apply_one("cumulative", summed, dimension=0, reducer="sum"), summed])


def arguments(seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    return random.standard_normal((ROWS, 3)).astype(np.float32), random.integers(-ROWS, ROWS, 5)


def longer(f: Executable, *given: Any) -> tuple[Any, ...]:
    """The same call the longer way."""
    return f._call(given, {})


@pytest.fixture
def f() -> Executable:
    made = compile_graph(looked_up())
    assert made._prompt is not None
    assert made._prompt.arena > 0
    return made


def same(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)


def test_the_short_way_is_taken(f: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = longer(f, *arguments(1))
    monkeypatch.setattr(f, "_call", None)
    found = f(*arguments(1))
    same(found, wanted)
    assert not any(np.may_share_memory(one, other) for one in found for other in (*wanted, *f(*arguments(1))))


def test_the_first_call_and_a_first_call_that_is_refused(f: Executable) -> None:
    table, at = arguments(2)
    with pytest.raises(CallError):
        f(table, at[:-1])
    (state,) = f._states
    assert state.arena is None
    same(f(table, at), longer(f, table, at))
    assert f._states == [state]
    assert state.arena is not None


def test_unusual_arguments(f: Executable) -> None:
    table, at = arguments(3)
    f(table, at)
    wanted = longer(f, table, at)
    wide = np.zeros((ROWS, 6), np.float32)
    wide[:, ::2] = table
    offset = np.frombuffer(b"x" + table.tobytes(), np.float32, offset=1).reshape(table.shape)

    class Mine(np.ndarray[Any, Any]):
        pass

    for unusual in (table.tolist(), wide[:, ::2], np.asfortranarray(table), offset, table.view(Mine)):
        same(f(unusual, at), wanted)
    same(f(at=at, table=table), wanted)
    same(f(table, at=at), wanted)
    assert f.copies


@pytest.mark.parametrize(("code", "wrong"), [
    (1701, ()), (1701, (0,)), (1701, (0, 1, 1)), (1704, (0, "matrix")), (1705, (0, "long")),
    (1702, (0, "floats")),
])  # fmt: skip
def test_refusals(f: Executable, code: int, wrong: tuple[Any, ...]) -> None:
    table, at = arguments(4)
    others = {0: table, 1: at, "matrix": at[None], "long": np.zeros(6, np.int64), "floats": at.astype(np.float64)}
    before = f(table, at)
    given = [others[entry] for entry in wrong]
    with pytest.raises(CallError) as caught:
        f(*given)
    with pytest.raises(CallError) as again:
        longer(f, *given)
    assert caught.value.code == again.value.code == code
    assert str(caught.value) == str(again.value)
    same(f(table, at), before)


def test_faults_of_the_data(f: Executable) -> None:
    table, at = arguments(5)
    before = f(table, at)
    with pytest.raises(RunError) as caught:
        f(table, np.array([0, 1, ROWS, 0, 0]))
    assert (caught.value.code, caught.value.where) == (1801, "Gather")
    same(f(table, at), before)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_closed_context(threads: int) -> None:
    with Context(ContextOptions(threads=threads)) as context:
        f = compile_graph(looked_up(), context=context)
        f(*arguments(7))
    for _ in range(2):
        with pytest.raises(UsageError) as caught:
            f(*arguments(7))
        assert caught.value.code == 1752


@pytest.mark.parametrize("static", [True, False])
def test_no_memory_for_a_small_output(monkeypatch: pytest.MonkeyPatch, static: bool) -> None:
    f = compile_graph(looked_up() if static else affine())
    given = arguments(6) if static else (np.ones((2, 4), np.float32),)
    before = f(*given)

    def refused(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(np, "empty", refused)
        with pytest.raises(OutOfMemoryError) as caught:
            f(*given)
    assert caught.value.code == 1710
    same(f(*given), before)


def test_threads(f: Executable) -> None:
    wanted = [longer(f, *arguments(seed)) for seed in range(4)]

    def work(seed: int) -> None:
        for _ in range(200):
            same(f(*arguments(seed)), wanted[seed])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))


def test_who_calls_the_longer_way() -> None:
    """Free sizes, limits of memory, large outputs, and inputs that the call changes beside others."""
    builder = GraphBuilder("changing")
    x, y = builder.input("x", F32, 4), builder.input("y", F32, 4)
    signature = GraphSignature((InputPolicy("mutated", mutated_by=0), InputPolicy()), (OutputPolicy("alias", of=0),))
    changing = builder.build([builder.apply_one("add", x, y)], signature)
    builder = GraphBuilder("large")
    large = builder.build([builder.apply_one("negate", builder.input("x", F32, RECYCLE_FROM))])
    assert compile_graph(affine())._prompt is None
    assert compile_graph(looked_up(), CompileOptions(memory_limit=1 << 20))._prompt is None
    assert compile_graph(large)._prompt is None
    assert compile_graph(changing)._prompt is None
