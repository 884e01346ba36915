# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""Branches with results of different ranks, chosen by data: what follows is carried into both branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import tilework
from tests.frontends.onnx.models import codes_of, model
from tilework.errors import FrontendError
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
