# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""Branches with results of different ranks, chosen by data: what follows is carried into both branches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import tilework
from tests.frontends.onnx.models import codes_of, model
from tilework.errors import FrontendError, RunError
from tilework.frontends.onnx.carried import MOST_NODES
from tilework.runtime.executable import Executable

F = TensorProto.FLOAT
X: dict[str, Any] = {"x": (F, (1, "N"))}


def chosen(result: str, condition: str) -> NodeProto:
    """x without its first dimension, or x as it is."""
    axis = numpy_helper.from_array(np.array([0]), "axis")
    then = helper.make_graph([helper.make_node("Squeeze", ["x", "axis"], ["flat"])], "then", [],
                             [helper.make_empty_tensor_value_info("flat")], [axis])  # fmt: skip
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["same"])], "else", [],
                              [helper.make_empty_tensor_value_info("same")])  # fmt: skip
    return helper.make_node("If", [condition], [result], name=f"choose {result}", then_branch=then, else_branch=other)


def positive(of: str, condition: str) -> list[NodeProto]:
    return [
        helper.make_node("ReduceSum", [of], [f"{condition}_sum"], keepdims=0),
        helper.make_node("Greater", [f"{condition}_sum", "zero"], [condition]),
    ]


ZERO = {"zero": np.zeros((), np.float32)}


def check(nodes: list[NodeProto], outputs: list[str], wanted: Callable[[Any], Any]) -> None:
    executable = tilework.compile(model(nodes, X, outputs, ZERO))
    assert isinstance(executable, Executable)
    for x in ([[1, 2, 3]], [[-1, -2]], [[0]], [[]], [[5]]):
        array = np.array(x, np.float32).reshape(1, -1)
        for found, one in zip(executable(array), wanted(array), strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-6)
            assert found.shape == np.shape(one)


def result_of(x: Any) -> Any:
    return x[0] if x.sum() > 0 else -x


def test_what_follows_goes_into_the_branches() -> None:
    nodes = [
        *positive("x", "c"), chosen("r", "c"), helper.make_node("Mul", ["r", "r"], ["s"]),
        helper.make_node("Sqrt", ["zero"], ["apart"]), helper.make_node("Flatten", ["s"], ["y"], axis=0),
        helper.make_node("ReduceSum", ["r"], ["z"], keepdims=0),
    ]  # fmt: skip
    check(nodes, ["y", "z", "apart"], lambda x: ((x * x).reshape(1, -1), result_of(x).sum(), np.float32(0)))


def test_branches_after_it_that_read_its_result() -> None:
    inner = helper.make_graph([helper.make_node("Flatten", ["r"], ["a"], axis=0)], "then", [],
                              [helper.make_empty_tensor_value_info("a")])  # fmt: skip
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "else", [],
                              [helper.make_empty_tensor_value_info("b")])  # fmt: skip
    nodes = [
        *positive("x", "c"), chosen("r", "c"), *positive("r", "d"),
        helper.make_node("If", ["d"], ["y"], then_branch=inner, else_branch=other),
    ]  # fmt: skip
    check(nodes, ["y"], lambda x: (result_of(x).reshape(1, -1) if result_of(x).sum() > 0 else -x,))


def test_one_choice_after_another() -> None:
    nodes = [
        *positive("x", "c"), chosen("r", "c"), chosen("q", "c"), helper.make_node("Add", ["r", "q"], ["s"]),
        helper.make_node("ReduceSum", ["s"], ["y"], keepdims=0),
    ]  # fmt: skip
    check(nodes, ["y"], lambda x: (2 * result_of(x).sum(),))


def test_results_that_nothing_reads() -> None:
    nodes = [*positive("x", "c"), chosen("r", "c"), helper.make_node("Abs", ["r"], ["unread"]),
             helper.make_node("Neg", ["x"], ["y"])]  # fmt: skip
    check(nodes, ["y"], lambda x: (-x,))


def test_outputs_of_two_ranks_are_refused() -> None:
    nodes = [*positive("x", "c"), chosen("r", "c"), helper.make_node("Abs", ["r"], ["y"])]
    assert codes_of(model(nodes, {"x": (F, (1, 3))}, ["y"], ZERO)) == {1120}


def test_more_than_is_copied_is_refused() -> None:
    nodes = [*positive("x", "c"), chosen("r", "c")]
    nodes += [helper.make_node("Neg", [f"v{n}" if n else "r"], [f"v{n + 1}"]) for n in range(MOST_NODES)]
    nodes.append(helper.make_node("ReduceSum", [f"v{MOST_NODES}"], ["y"], keepdims=0))
    with pytest.raises(FrontendError) as caught:
        tilework.compile(model(nodes, {"x": (F, (1, 3))}, ["y"], ZERO))(np.ones((1, 3), np.float32))
    assert {fault.code for fault in caught.value.faults} == {1120}


def wrapped(nodes: list[NodeProto], result: str, kind: str) -> NodeProto:
    """These nodes as a branch, beside one that returns x as a vector, or as the body of a loop of one trip."""
    flat = helper.make_node("Reshape", ["x", "all"], ["as_it_is"])
    if kind == "branch":
        graphs = [
            helper.make_graph(inner, name, [], [helper.make_empty_tensor_value_info(inner[-1].output[0])])
            for name, inner in (("then", nodes), ("else", [flat]))
        ]
        return helper.make_node("If", ["outer"], [result], then_branch=graphs[0], else_branch=graphs[1])
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (
        ("trip", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("state", F, [None]))]  # fmt: skip
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["go"], ["go_on"])], "body", inputs,
        [helper.make_empty_tensor_value_info(name) for name in ("go_on", nodes[-1].output[0])],
    )  # fmt: skip
    return helper.make_node("Loop", ["one", "", "x_flat"], [result], body=body)


@pytest.mark.parametrize("choices", [1, 2])
@pytest.mark.parametrize("kind", ["branch", "loop"])
def test_inside_control_flow(kind: str, choices: int) -> None:
    inner = [*positive("x", "c"), chosen("r", "c"), helper.make_node("Mul", ["r", "r"], ["s"])]
    if choices == 2:
        inner += [*positive("s", "d"), chosen("t", "d"), helper.make_node("Add", ["s", "t"], ["u"])]
    inner.append(helper.make_node("Reshape", ["u" if choices == 2 else "s", "all"], ["made"]))
    nodes = [
        helper.make_node("ReduceMax", ["x_or_more"], ["largest"], keepdims=0),
        helper.make_node("Less", ["largest", "four"], ["outer"]), helper.make_node("Reshape", ["x", "all"], ["x_flat"]),
        wrapped(inner, "y", kind),
    ]  # fmt: skip
    nodes.insert(0, helper.make_node("Concat", ["x", "some"], ["x_or_more"], axis=1))
    held = {
        **ZERO, "all": np.array([-1]), "one": np.array(1), "four": np.array(4, np.float32),
        "some": np.array([[-9]], np.float32),
    }  # fmt: skip
    executable = tilework.compile(model(nodes, X, ["y"], held))
    for x in ([[1, 2, 3]], [[-1, -2]], [[0]], [[5]]):
        array = np.array(x, np.float32)
        squared = result_of(array) ** 2
        if choices == 2:
            squared = squared + (array[0] if squared.sum() > 0 else -array)
        wanted = squared.ravel() if kind == "loop" or array.max() < 4 else array.ravel()
        (found,) = executable(array)
        np.testing.assert_array_equal(found, wanted)


def test_many_choices_inside_control_flow_end() -> None:
    """Each doubles what the next one is in: after some, what follows one more is an error where it runs."""
    inner: list[NodeProto] = []
    last = "x"
    for place in range(12):
        inner += [*positive(last, f"c{place}"), chosen(f"r{place}", f"c{place}")]
        last = f"r{place}"
    nodes = [
        *positive("x", "outer"),
        wrapped([*inner, helper.make_node("Reshape", [last, "all"], ["y0"])], "y", "branch"),
    ]
    executable = tilework.compile(model(nodes, {"x": (F, (1, 3))}, ["y"], {**ZERO, "all": np.array([-1])}))
    for x in ([[1, 2, 3]], [[-1, -2, 1]], [[5, -9, 1]]):
        array = wanted = np.array(x, np.float32)
        for _ in range(12 * (array.sum() > 0)):
            wanted = array.ravel() if wanted.sum() > 0 else -array
        results: list[Any] = []
        with contextlib.suppress(RunError):
            results = list(executable(array))
        if results or array.sum() <= 0:
            np.testing.assert_array_equal(results[0], wanted.ravel())
