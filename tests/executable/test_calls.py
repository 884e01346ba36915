"""Calling a compiled graph: arguments, threads, forks, memory, faults, and what an executable tells of itself."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

from tests.executable.building import F32, N, affine, affine_wanted
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.errors import CallError, OutOfMemoryError, RunError
from tilework.graph.graph import GraphSignature, InputPolicy, OutputPolicy
from tilework.ops.builder import GraphBuilder
from tilework.plan.parse import parse_plan
from tilework.plan.steps import KernelStep
from tilework.plan.text import plan_text
from tilework.runtime.executable import Executable


@pytest.fixture(scope="module")
def chained() -> Executable:
    return compile_graph(affine(3))


def data(rows: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, (rows, 4)).astype(np.float32)


def subtraction() -> Executable:
    builder = GraphBuilder("g", [N])
    a, b = builder.input("a", F32, "N"), builder.input("b", F32, "N")
    return compile_graph(builder.build([builder.apply_one("subtract", a, b, names="difference")]))


def test_by_position_by_name_and_both() -> None:
    f = subtraction()
    a, b = np.array([5, 6, 7], np.float32), np.array([1, 2, 3], np.float32)
    wanted = np.array([4, 4, 4], np.float32)
    for found in (f(a, b), f(a=a, b=b), f(b=b, a=a), f(a, b=b)):
        np.testing.assert_array_equal(found[0], wanted)
    assert [port.name for port in f.inputs] == ["a", "b"]
    assert [port.name for port in f.outputs] == ["difference"]
    assert str(f.inputs[0].type) == "float32[N]"
    for wrong in (lambda: f(a), lambda: f(a, b, a), lambda: f(a, c=b), lambda: f(a, b, b=b)):
        with pytest.raises(CallError) as caught:
            wrong()
        assert caught.value.code == 1701
    np.testing.assert_array_equal(f(a, b)[0], wanted)  # a refused call leaves nothing behind


def test_one_compile_serves_every_size(chained: Executable) -> None:
    for rows in (0, 1, 2, 15, 16, 17, 1000, 3, 70_000, 1):
        x = data(rows, rows)
        np.testing.assert_array_equal(chained(x)[0], affine_wanted(x, 3))


@pytest.mark.parametrize("rows", [5, 100_000])
def test_outputs_are_fresh(chained: Executable, rows: int) -> None:
    """Small ones are ordinary arrays, large ones blocks that go round; neither is written by a later call."""
    inputs = [data(rows, seed) for seed in range(4)]
    outputs = [chained(x)[0] for x in inputs]
    addresses = {output.ctypes.data for output in outputs}
    assert len(addresses) == len(outputs)
    for x, output in zip(inputs, outputs, strict=True):
        np.testing.assert_array_equal(output, affine_wanted(x, 3))
        assert output.flags.writeable
        assert output.flags.c_contiguous
    view = outputs[0][1:3]
    del outputs
    for seed in range(4):
        chained(data(rows, seed + 9))
    np.testing.assert_array_equal(view, affine_wanted(inputs[0], 3)[1:3])


def test_threads_with_sizes_of_their_own(chained: Executable) -> None:
    problems: list[str] = []
    barrier = threading.Barrier(6)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        barrier.wait()
        for turn in range(60):
            x = data(int(rng.integers(0, 3000)), seed * 100 + turn)
            try:
                found = chained(x)[0]
                if not np.array_equal(found, affine_wanted(x, 3)):
                    problems.append(f"thread {seed}, turn {turn}")
            except Exception as error:  # noqa: BLE001 - a thread must not die silently
                problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []


def test_the_child_of_a_fork_goes_on_calling(chained: Executable) -> None:
    x = data(50_000)
    wanted = affine_wanted(x, 3)
    chained(x)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if all(np.array_equal(chained(x)[0], wanted) for _ in range(3)) else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(chained(x)[0], wanted)


def test_views_and_other_strides_are_copied_and_counted() -> None:
    f = subtraction()
    a = np.arange(12, dtype=np.float32).reshape(6, 2)
    b = np.array([1, 1, 1, 1, 1, 1], np.float32)
    np.testing.assert_array_equal(f(a[:, 1], b)[0], a[:, 1] - 1)
    np.testing.assert_array_equal(f(b, a[::-1, 0])[0], 1 - a[::-1, 0])
    assert sorted(name for name, _ in f.copies) == ["a", "b"]
    assert sum(f.copies.values()) == 2
    readonly = np.array([3, 3, 3, 3, 3, 3], np.float32)
    readonly.flags.writeable = False
    np.testing.assert_array_equal(f(readonly, b)[0], [2] * 6)
    assert sum(f.copies.values()) == 2


def test_noncontiguous_arrays_can_be_refused() -> None:
    builder = GraphBuilder("g", [N])
    x = builder.input("x", F32, "N")
    y = builder.apply_one("negate", x)
    signature = GraphSignature((InputPolicy(noncontiguous="refuse"),), (OutputPolicy(),))
    f = compile_graph(builder.build([y], signature))
    with pytest.raises(CallError) as caught:
        f(np.zeros(8, np.float32)[::2])
    assert caught.value.where == "x" or "x" in str(caught.value)
    assert f.copies == {}


def test_memory_limit() -> None:
    f = compile_graph(affine(3), CompileOptions(memory_limit=20_000))
    x = data(100)
    np.testing.assert_array_equal(f(x)[0], affine_wanted(x, 3))
    with pytest.raises(OutOfMemoryError) as caught:
        f(data(1000))
    assert caught.value.code == 1710
    assert "20000" in str(caught.value)
    with pytest.raises(OutOfMemoryError):
        f.step_times(data(1000))
    np.testing.assert_array_equal(f(x)[0], affine_wanted(x, 3))


@pytest.mark.parametrize("checked", [False, True])
def test_positions_outside_name_their_node(checked: bool) -> None:
    builder = GraphBuilder("g", [N])
    x = builder.input("x", F32, 5, 3)
    at = builder.input("at", dtypes.int64, "N")
    taken = builder.apply_one("take", x, at, dimension=0, location="embedding/Gather")
    f = compile_graph(
        builder.build([builder.apply_one("softmax", taken, dimension=1)]), CompileOptions(checked=checked)
    )
    table = np.arange(15, dtype=np.float32).reshape(5, 3)
    good = np.array([4, -5, 0], np.int64)
    before = f(table, good)[0]
    for bad in (5, -6, 1 << 40, -(1 << 62)):
        with pytest.raises(RunError) as caught:
            f(table, np.array([0, bad, 1], np.int64))
        assert caught.value.code == 1801
        assert caught.value.where == "embedding/Gather"
        with pytest.raises(RunError) as caught:
            f.step_times(table, np.array([0, bad, 1], np.int64))
        assert "embedding/Gather" in str(caught.value)
    np.testing.assert_array_equal(f(table, good)[0], before)


@pytest.mark.parametrize("checked", [False, True])
def test_of_nodes_in_one_kernel_the_one_that_faults_is_named(checked: bool) -> None:
    """A sum of embeddings is one kernel, whose every look-up may have a bad position."""
    builder = GraphBuilder("g", [N])
    words, places = builder.input("words", F32, 7, 3), builder.input("places", F32, 5, 3)
    kinds = builder.input("kinds", F32, 2, 3)
    at, kind = builder.input("at", dtypes.int64, "N"), builder.input("kind", dtypes.int64, "N", 1)
    found = [
        builder.apply_one("take", words, at, dimension=0, location="words/Gather"),
        builder.apply_one("take", places, at, dimension=0, location="places/Gather"),
        builder.apply_one("gather_nd", kinds, kind, location="kinds/GatherND"),
    ]
    total = builder.apply_one("add", found[0], found[1], location="Add")
    total = builder.apply_one("add", total, found[2], location="Add_1")
    f = compile_graph(
        builder.build([builder.apply_one("logistic", total, location="Sigmoid")]), CompileOptions(checked=checked)
    )
    assert len(list(f.plan.walk())) == 1
    tables = [np.ones((rows, 3), np.float32) for rows in (7, 5, 2)]

    def blamed(position: int, sort: int) -> str:
        with pytest.raises(RunError) as caught:
            f(*tables, np.array([0, position, 1], np.int64), np.array([[0], [1], [sort]], np.int64))
        assert caught.value.code == 1801
        return caught.value.where

    (step,) = f.plan.segments[0].steps
    (again,) = parse_plan(plan_text(f.plan)).segments[0].steps
    assert isinstance(step, KernelStep)
    assert isinstance(again, KernelStep)
    assert again.fault_origins == step.fault_origins != ()
    assert again.fault_reasons == step.fault_reasons != ()
    assert blamed(6, 0) == "places/Gather"
    assert blamed(7, 0) == "words/Gather"
    assert blamed(4, 2) == "kinds/GatherND"
    assert f(*tables, np.array([4, -5], np.int64), np.array([[0], [-1]], np.int64))[0].shape == (2, 3)


def test_a_refused_call_keeps_the_memory_of_the_calls_before() -> None:
    f = compile_graph(affine(3), CompileOptions(memory_limit=20_000))
    good = data(100)
    f(good)
    (state,) = f._states
    arena = state.arena
    assert arena is not None
    for wrong in ((), (good, good), (good[0],), (good.astype(np.float64),), (good[:, :3],), (data(10_000),)):
        for call in (f, f.step_times):
            with pytest.raises(CallError):
                call(*wrong)
            assert f._states == [state]
            assert state.arena is arena
    nowhere: Any = None
    with pytest.raises(CallError):
        f.run_core([good.ctypes.data], [(100,)], [None], nowhere)
    assert f._states == [state]
    np.testing.assert_array_equal(f(good)[0], affine_wanted(good, 3))


def test_step_times(chained: Executable) -> None:
    x = data(300)
    outputs, times = chained.step_times(x)
    np.testing.assert_array_equal(outputs[0], affine_wanted(x, 3))
    assert [time.name for time in times] == [step.name for _, step in chained.plan.walk()]
    assert all(time.seconds >= 0 for time in times)
    assert len(times) == 3


def test_trim_gives_memory_back_and_calls_go_on() -> None:
    f = compile_graph(affine(3))
    x = data(40_000)
    wanted = affine_wanted(x, 3)
    for _ in range(2):
        np.testing.assert_array_equal(f(x)[0], wanted)
        f.trim()
    np.testing.assert_array_equal(f(data(3))[0], affine_wanted(data(3), 3))


def test_explanation(chained: Executable) -> None:
    found = chained.explain()
    assert len(found.regions) == 3
    assert {region.operators for region in found.regions} == {("cumulative",)}
    assert found.code_bytes > 0
    assert [name for name, _ in found.compile_milliseconds][:2] == ["verify", "simplify"]
    assert "cumulative" in str(found)


def test_scalars_and_empty_arrays() -> None:
    builder = GraphBuilder("g")
    x, y = builder.input("x", F32), builder.input("y", F32, 0, 3)
    total = builder.apply_one("reduce", y, dimensions=(0,), reducer="maximum")
    f = compile_graph(builder.build([builder.apply_one("negate", x), y, total]))
    negated, empty, largest = f(np.array(2, np.float32), np.zeros((0, 3), np.float32))
    assert negated.shape == ()
    assert negated == -2
    assert empty.shape == (0, 3)
    np.testing.assert_array_equal(largest, [-np.inf] * 3)


def test_inputs_in_one_mapping_are_told_how_to_be_given(chained: Executable) -> None:
    whole: Any = {chained.inputs[0].name: data(3)}
    with pytest.raises(CallError) as caught:
        chained(whole)
    assert caught.value.code == 1709
    assert "**" in caught.value.hint
