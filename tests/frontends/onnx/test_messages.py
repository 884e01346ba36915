# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""What errors of a running model say: the node, tensor and dimension as the model calls them, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, parser

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import CallError, RunError, TileworkError

F, I64 = TensorProto.FLOAT, TensorProto.INT64
X: dict[str, Any] = {"x": (F, ("N", 3))}


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def refused(nodes: list[NodeProto], inputs: dict[str, Any], *arguments: Any, checked: bool = False) -> TileworkError:
    executable = tilework.compile(model(nodes, inputs, ["y"]), checked=checked)
    with pytest.raises(TileworkError) as caught:
        executable(*arguments)
    return caught.value


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    ("node", "shape", "index", "says"),
    [
        (
            helper.make_node("Gather", ["x", "i"], ["y"], name="pick", axis=1),
            ("K",),
            [0, 5],
            "dimension 1 of x, float32[N, 3]",
        ),
        (
            helper.make_node("GatherElements", ["x", "i"], ["y"], axis=0),
            ("K", 3),
            [[0, 9, 0]],
            "dimension 0 of x, float32[N, 3]",
        ),
        (
            helper.make_node("GatherND", ["x", "i"], ["y"], name="nd"),
            ("K", 2),
            [[0, 7]],
            "dimensions 0 to 1 of x, float32[N, 3]",
        ),
        (
            helper.make_node("GatherND", ["x", "i"], ["y"], name="nd"),
            ("K", 1),
            [[7]],
            "dimension 0 of x, float32[N, 3]",
        ),
    ],
)
def test_positions_outside(node: NodeProto, shape: Any, index: list[Any], says: str, checked: bool) -> None:
    error = refused([node], {**X, "i": (I64, shape)}, ones(2, 3), np.array(index), checked=checked)
    assert isinstance(error, RunError)
    assert error.code == 1801
    assert error.message.endswith(f"a position in i is outside {says}")
    assert node.op_type in error.where
    assert "indices" in error.hint


@pytest.mark.parametrize("kind", [F, TensorProto.DOUBLE, TensorProto.INT64])
def test_ranges_without_a_length(kind: int) -> None:
    """A step of 0 is told where it is known, and where it is computed."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    nodes = [
        helper.make_node("ReduceSum", ["s"], ["step"], keepdims=0),
        helper.make_node("Cast", ["step"], ["cast"], to=kind),
        helper.make_node("Range", ["a", "b", "cast"], ["y"], name="count"),
    ]  # fmt: skip
    inputs = {"a": (kind, ()), "b": (kind, ()), "s": (F, ("N",))}
    for end in (0, 5):
        error = refused(nodes, inputs, np.array(0, dtype), np.array(end, dtype), np.array([1, -1], np.float32))
        assert error.code == 1801
        assert error.message.endswith("in Range count: there is no step other than 0")
    if kind != TensorProto.INT64:
        for end, step in ((np.inf, 1), (np.nan, 1), (1, np.nan)):
            error = refused(nodes, inputs, np.array(0, dtype), np.array(end, dtype), np.array([step], np.float32))
            assert error.message.endswith("in Range count: there is no finite length of the range")


def test_sizes_that_leave_less_than_nothing() -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2], strides=[2], ceil_mode=1),
        helper.make_node("AveragePool", ["p"], ["y"], kernel_shape=[5], name="mean"),
    ]  # fmt: skip
    error = refused(nodes, {"x": (F, (1, 1, "N"))}, np.ones((1, 1, 1), np.float32))
    assert error.code == 1707
    assert "N = 1" in error.message
    assert "dimension 2" in f"{error.message} {error.where}"


def test_what_nodes_make_is_called_by_the_node() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="cut"), helper.make_node("Gather", ["r", "i"], ["g"], name="pick"),
        helper.make_node("Neg", ["g"], ["y"]),
    ]  # fmt: skip
    error = refused(nodes, {**X, "i": (I64, ("K",))}, ones(2, 3), np.array([2]))
    assert "outside dimension 0 of the result of Relu cut, float32[N, 3]" in error.message
    nodes = [
        helper.make_node("Add", ["i", "i"], ["d"], name="twice"), helper.make_node("Gather", ["v", "d"], ["y"]),
    ]  # fmt: skip
    error = refused(nodes, {"v": (F, ("N",)), "i": (I64, ("K",))}, ones(2), np.array([1]))
    assert "outside dimension 0 of v, float32[N]" in error.message


def test_sizes_of_inputs() -> None:
    """No other compilation serves these either."""
    nodes = [
        helper.make_node("Concat", ["a", "a"], ["c"], axis=0), helper.make_node("Add", ["c", "b"], ["y"], name="plus"),
    ]  # fmt: skip
    error = refused(nodes, {"a": (F, ("N",)), "b": (F, ("M",))}, ones(3), ones(4))
    assert isinstance(error, CallError)
    assert error.code == 1707
    wanted = "Add plus needs M = 2*N, but M = 4 (dimension 0 of input b), N = 3 (dimension 0 of input a)"
    assert error.message == wanted
    assert error.where == "dimension 0 of input b"
    assert "shapes" in error.hint


def test_sizes_that_nodes_measure() -> None:
    nodes = [
        helper.make_node("NonZero", ["a"], ["p"], name="first"),
        helper.make_node("NonZero", ["b"], ["q"], name="second"),
        helper.make_node("Add", ["p", "q"], ["y"], name="plus"),
    ]  # fmt: skip
    error = refused(nodes, {"a": (F, ("N",)), "b": (F, ("M",))}, ones(3), ones(4))
    assert isinstance(error, RunError)
    assert error.code == 1803
    assert error.where == "Add plus"
    assert "= 3 (of NonZero first)" in error.message
    assert "= 4 (of NonZero second)" in error.message
    error = refused([helper.make_node("TopK", ["v", "k"], ["y", "p"], name="top")],
                    {"v": (F, ("N",)), "k": (I64, (1,))}, ones(3), np.array([5]))  # fmt: skip
    assert error.message == "TopK top needs N >= k, but N = 3 (dimension 0 of input v), k = 5 (of TopK top)"


def test_what_does_not_fit_whatever_the_sizes_are_is_said_to_the_end() -> None:
    """A branch that nothing of a call could make fit."""
    proto = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (float[a, b, 1, 7] x, bool c) => (float[?, ?, ?, ?] y)'
        "<float[2, 3, 2, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>"
        "{ y = If(c)<then_branch: graph = t () => (float[?, ?, ?, ?] u) { u = ConvTranspose<group = 2>(x, w) },"
        "else_branch: graph = e () => (float[?, ?, ?, ?] v) { v = Neg(x) }> }"
    )
    with pytest.raises(RunError) as caught:
        tilework.compile(proto)(ones(2, 4, 1, 7), np.array(True))
    assert caught.value.message.endswith("channels of input and weights must be equal: 4 and 2")
