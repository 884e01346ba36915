"""`Executable.profile`: its steps, how their work and time add up, loops, black boxes, other sizes, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import tilework
from tests.compiler.test_control import branch
from tests.executable.building import F32, N, affine, affine_wanted
from tests.frontends.onnx.models import model
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.dims import Symbol
from tilework.errors import CallError, RunError, UsageError
from tilework.graph.types import tensor
from tilework.ops.builder import GraphBuilder
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape
from tilework.runtime.profile import Profile

I64 = dtypes.int64


@pytest.fixture(scope="module")
def chained() -> Executable:
    return compile_graph(affine(3))


def product() -> Executable:
    builder = GraphBuilder("g", [N])
    x = builder.input("x", F32, "N", 8)
    w = builder.constant(np.ones((8, 16), np.float32))
    found = builder.apply_one(
        "dot_general", x, w, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,), location="user's"
    )
    return compile_graph(builder.build([found]))


def loop() -> Executable:
    """`x` is summed up along itself as often as `n` says."""
    b = GraphBuilder("g")
    n, x = b.input("n", I64), b.input("x", F32, 32)

    def condition(inner: GraphBuilder) -> list[Any]:
        left, _ = inner.input("c_n", I64), inner.input("c_x", F32, 32)
        return [inner.apply_one("compare", left, inner.constant(0, dtype=I64), direction="GT")]

    def body(inner: GraphBuilder) -> list[Any]:
        left, value = inner.input("b_n", I64), inner.input("b_x", F32, 32)
        rest = inner.apply_one("subtract", left, inner.constant(1, dtype=I64))
        return [rest, inner.apply_one("cumulative", value, dimension=0, reducer="sum")]

    found = b.apply("while", n, x, subgraphs=(branch(b, "condition", condition), branch(b, "body", body)))
    return compile_graph(b.build([found[1]]))


def add_up(profile: Profile) -> None:
    assert sum(step.share for step in profile.steps) == pytest.approx(1.0)
    assert sum(step.seconds for step in profile.steps) == pytest.approx(profile.seconds)
    assert [s.seconds for s in profile.slowest] == sorted((s.seconds for s in profile.steps), reverse=True)
    assert all(step.seconds >= 0 and step.runs >= 1 for step in profile.steps)
    assert profile.call_seconds > 0


def test_the_steps_of_a_chain(chained: Executable) -> None:
    x = np.ones((300, 4), np.float32)
    profile = chained.profile(x, calls=3)
    assert [step.name for step in profile.steps] == [step.name for _, step in chained.plan.walk()]
    assert {step.kind for step in profile.steps} == {"kernel"}
    assert [step.operators for step in profile.steps] == [("cumulative",)] * 3
    assert all(step.runs == 1 for step in profile.steps)
    assert (profile.calls, profile.sizes, profile.threads) == (3, {"N": 300}, chained.threads)
    assert profile.machine == chained.explain().machine
    assert profile.plans == chained.plans
    assert [call.steps is None for call in profile.timeline] == [True, False] * 3
    starts = [call.start for call in profile.timeline]
    assert starts == sorted(starts)
    for call in profile.timeline:
        for step in call.steps or ():
            assert call.start <= step.start <= step.start + step.seconds <= call.start + call.seconds
    add_up(profile)
    np.testing.assert_array_equal(chained(x)[0], affine_wanted(x, 3))


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_work_is_counted_at_the_sizes_of_the_call(rows: int) -> None:
    profile = product().profile(x=np.ones((rows, 8), np.float32), calls=1)
    (step,) = profile.steps
    assert (step.origin, step.operators) == ("user's", ("dot_general",))
    assert (step.flops, step.bytes) == (2 * rows * 8 * 16, 4 * (rows * 8 + 8 * 16 + rows * 16))
    if rows and step.flops and step.bytes:
        assert step.flops_per_second == step.flops / step.seconds
        assert step.bytes_per_second == step.bytes / step.seconds
    text = str(profile)
    assert f"{step.name}: dot_general" in text
    assert "medians of 1" in text


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_steps_of_loops_run_several_times_a_call(trips: int) -> None:
    run = loop()
    profile = run.profile(np.asarray(trips), np.ones(32, np.float32), calls=2)
    found = {step.operators: step for step in profile.steps if step.operators}
    assert (("cumulative",) in found) == (trips > 0)
    if trips:
        step = found["cumulative",]
        region = next(r for r in run.explain().regions if r.name == step.name)
        assert region.bytes is not None
        assert (step.runs, step.bytes) == (trips, trips * int(region.bytes.evaluate({})))
    for step in profile.steps:
        if step.kind == "copy":
            assert step.flops == 0
            assert step.bytes is not None
            assert step.bytes > 0
    add_up(profile)


def _kept(node: Any, operands: Sequence[Any]) -> Sequence[Any]:
    return (operands[0][operands[0] > 0],)


def boxed() -> Executable:
    builder = GraphBuilder("g", [Symbol("N"), Symbol("K")])
    x = builder.apply_one("negate", builder.input("x", F32, "N"))
    (kept,) = builder.black_box("Kept", "tests", x, results=[tensor(F32, "K")], location="the/box")
    return compile_graph(builder.build([builder.apply_one("add", kept, kept)]), black_boxes={"Kept": _kept})


def test_black_boxes_are_steps() -> None:
    run = boxed()
    profile = run.profile(np.array([-1, 2, -3], np.float32), calls=2)
    (box,) = (step for step in profile.steps if step.kind == "black box")
    assert (box.name, box.origin, box.flops, box.bytes) == ("Kept", "the/box", None, None)
    assert len(profile.plans) == 2
    assert profile.threads == run.threads >= 1
    assert dict(profile.sizes)["K"] == 2
    add_up(profile)


def test_other_sizes_are_profiled_as_another_compilation_serves_them() -> None:
    """Two extents are taken to be equal, and then are not."""
    proto = model(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        {"a": (np.float32, ["N"]), "b": (np.float32, ["M"])},
        ["y"],
        {},
        18,
    )
    run = tilework.compile(proto)
    assert isinstance(run, Executable)
    three, one = np.ones(3, np.float32), np.ones(1, np.float32)
    assert run.profile(three, three, calls=1).plans == run.plans
    profile = run.profile(three, one, calls=1)
    assert profile.plans != run.plans
    assert len(profile.steps) == 1
    (found,), times = run.step_times(three, one)
    np.testing.assert_array_equal(found, [2, 2, 2])
    assert [time.name for time in times] == [step.name for step in profile.steps]
    with pytest.raises(CallError):
        run.step_times(three, np.ones(2, np.float32))


def test_models_that_are_compiled_for_each_call() -> None:
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    proto = model(nodes, {"x": (np.float32, ["n", 3]), "axes": (np.int64, ["k"])}, ["y"], {}, 13)
    run = tilework.compile(proto)
    assert isinstance(run, PerShape)
    for axes in ([0], [1]):
        profile = run.profile(np.ones((2, 3), np.float32), axes=np.array(axes), calls=1)
        assert profile.plans == run.plans
        assert profile.explanation is run.explain()


@pytest.mark.parametrize("calls", [0, -1, 1.5, True, "7", None])
def test_calls_are_counted_by_whole_numbers(chained: Executable, calls: Any) -> None:
    with pytest.raises(UsageError) as caught:
        chained.profile(np.ones((1, 4), np.float32), calls=calls)
    assert caught.value.code == 1002


def test_arguments_are_refused_as_by_a_call(chained: Executable) -> None:
    wrong: Mapping[int, tuple[Any, ...]] = {
        1701: (), 1702: (np.ones((1, 4)),), 1705: (np.ones((1, 3), np.float32),), 1704: (np.ones(4, np.float32),),
    }  # fmt: skip
    for code, given in wrong.items():
        with pytest.raises(CallError) as caught:
            chained.profile(*given)
        assert caught.value.code == code
    assert chained.profile(np.ones((1, 4), np.float32), calls=1).steps


def test_faults_are_raised_as_by_a_call() -> None:
    builder = GraphBuilder("g", [N])
    table, at = builder.input("table", F32, 5), builder.input("at", I64, "N")
    run = compile_graph(builder.build([builder.apply_one("take", table, at, dimension=0, location="the/gather")]))
    values = np.arange(5, dtype=np.float32)
    with pytest.raises(RunError) as caught:
        run.profile(values, np.array([1, 5]), calls=1)
    assert (caught.value.code, caught.value.where) == (1801, "the/gather")
    assert run.profile(values, np.array([1, 4]), calls=1).steps


def test_a_package_is_profiled(tmp_path: Path) -> None:
    compile_graph(affine(2)).save(tmp_path / "m.tilework")
    profile = tilework.load(tmp_path / "m.tilework").profile(np.ones((3, 4), np.float32), calls=1)
    assert [step.operators for step in profile.steps] == [("cumulative",)] * 2
    assert all(step.bytes == 2 * 3 * 4 * 4 for step in profile.steps)
