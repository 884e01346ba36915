# pyright: reportUnknownArgumentType=false, reportArgumentType=false, reportUnknownMemberType=false, reportCallIssue=false
"""If, Loop and Scan that are decided when the model runs, against ONNX's evaluator and the standard's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilework
from tilework.errors import FrontendError, RunError

F, I64, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def constant(name: str, value: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value), name))


def whole(graph: GraphProto) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def check(model: ModelProto, **inputs: Any) -> None:
    executable = tilework.compile(model)
    wanted = ReferenceEvaluator(model).run(None, inputs)
    for found in (executable(**inputs), executable(**inputs)):
        for have, want in zip(found, wanted, strict=True):
            assert have.dtype == np.asarray(want).dtype
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("large", [True, False])
def test_a_branch_chosen_by_data(large: bool) -> None:
    """Values around it, a constant of its own, an initialiser, and one value returned twice."""
    then = helper.make_graph(
        [constant("two", np.float32(2)), helper.make_node("Mul", ["x", "two"], ["t"]),
         helper.make_node("Identity", ["x"], ["same"])],
        "then", [], [info("t", F, None, None), info("same", F, None, None), info("t", F, None, None)],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["e"]), helper.make_node("Neg", ["e"], ["n"])],
        "else", [], [info("n", F, None, None), info("e", F, None, None), info("x", F, None, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), constant("limit", np.float32(0)),
        helper.make_node("Greater", ["s", "limit"], ["p"]),
        helper.make_node("If", ["p"], ["a", "b", "c"], then_branch=then, else_branch=other),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]  # fmt: skip
    outputs = [info(n, F, None, None) for n in ("y", "c", "a")]
    w = numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    model = whole(helper.make_graph(nodes, "g", [info("x", F, "N", 3)], outputs, [w]))
    x = np.abs(np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32))
    check(model, x=x if large else -x)


def test_branches_of_different_sizes_get_code_for_each_condition() -> None:
    then = helper.make_graph([constant("t", np.zeros(2, np.float32))], "then", [], [info("t", F, 2)])
    other = helper.make_graph([constant("e", np.zeros(3, np.float32))], "else", [], [info("e", F, 3)])
    node = helper.make_node("If", ["p"], ["y"], then_branch=then, else_branch=other)
    executable = tilework.compile(whole(helper.make_graph([node], "g", [info("p", B)], [info("y", F, None)])))
    for decision, size in ((True, 2), (False, 3), (True, 2)):
        np.testing.assert_array_equal(executable(np.array(decision))[0], np.zeros(size))


def powers(trips: Any, start: Any, condition: list[Any], rows: bool) -> ModelProto:
    """x doubles each trip, plus the trip's number; with rows it is collected too."""
    nodes = [
        helper.make_node("Add", ["v", "v"], ["twice"]), helper.make_node("Cast", ["i"], ["number"], to=F),
        helper.make_node("Add", ["twice", "number"], ["v_out"]), *condition,
        helper.make_node("Neg", ["v_out"], ["row"]),
    ]  # fmt: skip
    outputs = [info("go_out", B), info("v_out", F, None), *([info("row", F, None)] if rows else [])]
    body = helper.make_graph(nodes, "body", [info("i", I64), info("go", B), info("v", F, None)], outputs)
    node = helper.make_node("Loop", [trips, start, "x"], ["y", *(["rows"] if rows else [])], body=body)
    inputs = [info("x", F, "N")]
    inputs += [info(n, k) for n, k in ((trips, I64), (start, B)) if n and n.startswith("in_")]
    held = [numpy_helper.from_array(np.array(5, np.int64), "five"), numpy_helper.from_array(np.array(True), "yes")]
    results = [info("y", F, None), *([info("rows", F, None, None)] if rows else [])]
    return whole(helper.make_graph([node], "g", inputs, results, held))


PASSED_ON = [helper.make_node("Identity", ["go"], ["go_out"])]
ALWAYS = [constant("go_out", True)]
SMALL = [
    constant("limit", np.float32(100)), helper.make_node("ReduceMax", ["v_out"], ["most"], keepdims=0),
    helper.make_node("Less", ["most", "limit"], ["go_out"]),
]  # fmt: skip
X = np.array([1.5, -2.0, 0.25], np.float32)


def run_powers(most: float, start: bool, limit: float, x: Any = None) -> tuple[Any, list[Any]]:
    """The loop as the standard words it (its reference evaluator takes an absent condition to be false)."""
    value, trip, going = X if x is None else x, 0, start
    rows: list[Any] = []
    while trip < most and going:
        value = value + value + np.float32(trip)
        rows.append(-value)
        going = bool(value.max() < limit)
        trip += 1
    return value, rows


@pytest.mark.parametrize("condition", [PASSED_ON, ALWAYS])
@pytest.mark.parametrize("start", ["", "yes"])
def test_a_loop_that_runs_so_often(condition: list[Any], start: str) -> None:
    value, rows = run_powers(5, True, np.inf)
    found = tilework.compile(powers("five", start, condition, rows=True))(x=X)
    np.testing.assert_array_equal(found[0], value)
    np.testing.assert_array_equal(found[1], np.stack(rows))


@pytest.mark.parametrize(("trips", "start"), [("", ""), ("five", ""), ("in_trips", "in_start"), ("", "in_start")])
@pytest.mark.parametrize("go", [True, False])
def test_a_loop_that_data_end(trips: str, start: str, go: bool) -> None:
    given = {"in_trips": np.array(3), "in_start": np.array(go)}
    executable = tilework.compile(powers(trips, start, SMALL, rows=False))
    found = executable(x=X, **{n: given[n] for n in (trips, start) if n in given})
    most = {"": np.inf, "five": 5, "in_trips": 3}[trips]
    np.testing.assert_array_equal(found[0], run_powers(most, go or start != "in_start", 100)[0])


@pytest.mark.parametrize("trips", ["five", "in_trips", ""])
def test_rows_whose_number_data_decide(trips: str) -> None:
    given = {"in_trips": np.array(2)} if trips == "in_trips" else {}
    executable = tilework.compile(powers(trips, "", SMALL, rows=True))
    most = {"": np.inf, "five": 5, "in_trips": 2}[trips]
    for x in (X, X * 100, X / 16):
        value, rows = run_powers(most, True, 100, x)
        found = executable(x=x, **given)
        np.testing.assert_array_equal(found[0], value)
        np.testing.assert_array_equal(found[1], np.stack(rows))


@pytest.mark.parametrize("back", [0, 1])
def test_scan(back: int) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "r"], ["s_out"]), helper.make_node("Mul", ["s_out", "r"], ["row"])],
        "body", [info("s", F, None), info("r", F, None)], [info("s_out", F, None), info("row", F, None)],
    )  # fmt: skip
    node = helper.make_node("Scan", ["x", "m"], ["y", "rows"], body=body, num_scan_inputs=1, scan_input_axes=[-1],
                            scan_input_directions=[back], scan_output_axes=[1])  # fmt: skip
    outputs = [info("y", F, None), info("rows", F, None, None)]
    model = whole(helper.make_graph([node], "g", [info("x", F, 3), info("m", F, 3, "T")], outputs))
    m = np.random.default_rng(1).standard_normal((3, 6)).astype(np.float32)
    state = X
    rows: list[Any] = []
    for t in reversed(range(6)) if back else range(6):
        state = state + m[:, t]
        rows.append(state * m[:, t])
    found = tilework.compile(model)(x=X, m=m)
    np.testing.assert_allclose(found[0], state, rtol=1e-6)
    np.testing.assert_allclose(found[1], np.stack(rows, 1), rtol=1e-5, atol=1e-6)


def concatenations(first: bool, second: bool) -> ModelProto:
    """An `If` with a branch or two that cannot be: there is no axis 7."""
    names = ("then", "else")
    graphs = [
        helper.make_graph(
            [helper.make_node("Concat", "xq", [name], axis=7) if wrong else helper.make_node("Neg", "x", [name])],
            name, [], [info(name, F, None)],
        )
        for name, wrong in zip(names, (first, second), strict=True)
    ]  # fmt: skip
    node = helper.make_node("If", ["p"], ["y"], then_branch=graphs[0], else_branch=graphs[1])
    inputs = [info("p", B), info("x", F, 3), info("q", F, 3)]
    return whole(helper.make_graph([node], "g", inputs, [info("y", F, None)]))


def test_faults_inside_are_named() -> None:
    with pytest.raises(FrontendError, match="Concat"):
        tilework.compile(concatenations(True, True))


@pytest.mark.parametrize("wrong", [True, False])
def test_a_branch_that_does_not_fit_is_an_error_where_it_runs(wrong: bool) -> None:
    executable = tilework.compile(concatenations(wrong, not wrong))
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(executable(np.array(not wrong), x, x)[0], -x)
    with pytest.raises(RunError, match="Concat") as caught:
        executable(np.array(wrong), x, x)
    assert caught.value.code == 1804
