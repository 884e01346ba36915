"""Branches of an `If` that return different sizes, chosen when the model runs, against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import RunError
from tilework.runtime.executable import Executable

F32 = np.float32


def branch(name: str, *nodes: NodeProto) -> Any:
    """A branch that returns what its last node returns."""
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in nodes[-1].output]
    return helper.make_graph(list(nodes), name, [], outputs)


def choice(then: Any, other: Any, extents: list[Any], results: int = 1) -> ModelProto:
    """y, ... = then(x, w) where the sum of x is positive, else other(x, w); z is 2 y."""
    names = ["y", *(f"y{n}" for n in range(1, results))]
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "zero"], ["p"]),
        helper.make_node("If", ["p"], names, then_branch=then, else_branch=other),
        helper.make_node("Add", ["y", "y"], ["z"]),
    ]  # fmt: skip
    inputs = {"x": (F32, extents), "w": (np.bool_, extents[:1])}
    held = {"zero": np.array(0, F32), "two": np.array([2]), "from": np.array([0]), "four": np.ones((4, 3), F32)}
    return model(nodes, inputs, ["z", *names], held, 13)


def check(proto: ModelProto, executable: Any, **feed: Any) -> None:
    expected: list[Any] = list(ReferenceEvaluator(proto).run(None, feed))  # pyright: ignore[reportUnknownMemberType]
    for got, wanted in zip(executable(**feed), expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_array_equal(got, wanted)


ALL = helper.make_node("Identity", ["x"], ["all"])
CHOSEN = helper.make_node("Compress", ["x", "w"], ["chosen"], axis=0)
TWICE = helper.make_node("Concat", ["x", "x"], ["twice"], axis=0)
FIRST = helper.make_node("Slice", ["x", "from", "two"], ["first"])
FIXED = helper.make_node("Identity", ["four"], ["fixed"])
OTHER = helper.make_node("Compress", ["four", "w"], ["chosen_too"], axis=0)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("one", "other"), [(ALL, CHOSEN), (CHOSEN, FIXED), (ALL, TWICE), (FIXED, FIRST), (TWICE, FIXED), (CHOSEN, TWICE)]
)
def test_one_executable_serves_both(one: NodeProto, other: NodeProto, checked: bool) -> None:
    rng = np.random.default_rng(len(one.output[0]) + len(other.output[0]))
    proto = choice(branch("then", one), branch("else", other), ["n", 3])
    executable = tilework.compile(proto, checked=checked)
    assert isinstance(executable, Executable)
    for n in (4, 1, 7, 2):
        for sign in (1, -1):
            x = (sign * rng.integers(1, 9, (n, 3))).astype(F32)
            check(proto, executable, x=x, w=rng.integers(0, 2, n) == 1)
    check(proto, executable, x=np.zeros((3, 3), F32), w=np.zeros(3, np.bool_))
    check(proto, executable, x=np.zeros((0, 3), F32), w=np.zeros(0, np.bool_))


def test_results_that_differ_in_the_same_extent() -> None:
    """Both results have the extent that data decide; their sum needs no proof."""
    square = helper.make_node("Mul", ["chosen", "chosen"], ["squares"])
    same = helper.make_node("Neg", ["all"], ["minus"])
    then = helper.make_graph([CHOSEN, square], "then", [], [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("chosen", "squares")
    ])  # fmt: skip
    other = helper.make_graph([ALL, same], "else", [], [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("all", "minus")
    ])  # fmt: skip
    proto = choice(then, other, [5, 3], 2)
    proto.graph.node.append(helper.make_node("Add", ["y", "y1"], ["sum of both"]))
    proto.graph.output.append(helper.make_tensor_value_info("sum of both", TensorProto.FLOAT, None))
    executable = tilework.compile(proto)
    assert not any("Check" in type(step).__name__ for _, step in executable.plan.walk())
    rng = np.random.default_rng(5)
    for sign in (1, -1):
        x = (sign * rng.integers(1, 9, (5, 3))).astype(F32)
        check(proto, executable, x=x, w=np.array([1, 0, 1, 1, 0]) == 1)


def test_a_branch_that_does_not_fit_beside_one_of_measured_size() -> None:
    wrong = helper.make_node("Concat", ["x", "w"], ["wrong"], axis=0)
    wrong.input[1] = "four"
    wrong.attribute[0].i = 1
    proto = choice(branch("then", CHOSEN), branch("else", wrong), [5, 3])
    executable = tilework.compile(proto)
    check(proto, executable, x=np.ones((5, 3), F32), w=np.ones(5, np.bool_))
    with pytest.raises(RunError) as caught:
        executable(x=-np.ones((5, 3), F32), w=np.ones(5, np.bool_))
    assert caught.value.code == 1804


def test_inside_a_loop() -> None:
    """A state that grows in one trip and is cut in the next."""
    then = branch("then", helper.make_node("Concat", ["v", "v"], ["grown"], axis=0))
    other = branch("else", helper.make_node("Slice", ["v", "from", "two"], ["cut"]))
    body_nodes = [
        helper.make_node("Shape", ["v"], ["size"]), helper.make_node("Squeeze", ["size"], ["plain"]),
        helper.make_node("Less", ["plain", "limit"], ["small"]),
        helper.make_node("If", ["small"], ["next"], then_branch=then, else_branch=other),
        helper.make_node("Identity", ["go"], ["go_on"]),
    ]  # fmt: skip
    body = helper.make_graph(
        body_nodes, "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
        ],
    )  # fmt: skip
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    held = {"limit": np.array(9), "from": np.array([0]), "two": np.array([2])}
    proto = model([node], {"x": (F32, ["n"]), "trips": (np.int64, [])}, ["y"], held, 13)
    executable = tilework.compile(proto)
    for trips in range(6):
        value = [0.0, 1.0, 2.0]
        for _ in range(trips):
            value = value * 2 if len(value) < 9 else value[:2]
        np.testing.assert_array_equal(executable(x=np.arange(3, dtype=F32), trips=np.array(trips))[0], value)
