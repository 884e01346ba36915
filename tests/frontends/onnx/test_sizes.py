"""Free dimensions: what is assumed of them is checked at every call, and other sizes are served all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tilework
from tilework.errors import CallError, UsageError
from tilework.runtime.executable import Executable
from tilework.runtime.per_shape import PerShape

F, I64 = TensorProto.FLOAT, TensorProto.INT64


def model(nodes: list[Any], inputs: dict[str, list[Any]], outputs: list[str], **constants: Any) -> ModelProto:
    graph = helper.make_graph(
        nodes, "sizes", [helper.make_tensor_value_info(n, F, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, F, None) for n in outputs],
        [numpy_helper.from_array(np.array(v), n) for n, v in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def draw(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_two_free_dimensions_may_broadcast() -> None:
    """They are taken to be equal; calls in which one is 1 get code of their own, once."""
    executable = tilework.compile(
        model([helper.make_node("Add", ["x", "y"], ["z"])], {"x": ["N", 4], "y": ["M", 4]}, ["z"])
    )
    assert isinstance(executable, Executable)
    assert executable.variants is not None
    for n, m in ((3, 3), (3, 1), (1, 5), (3, 1), (1, 1)):
        x, y = draw(n, 4), draw(m, 4)
        np.testing.assert_array_equal(executable(x, y=y)[0], x + y)
    assert len(executable.variants.shapes) == 2
    with pytest.raises(CallError, match="dimension 0") as caught:
        executable(draw(3, 4), draw(2, 4))
    assert caught.value.code == 1706
    with pytest.raises(CallError, match="dimension 1"):
        executable(draw(3, 5), draw(3, 5))


def test_equal_expressions_are_assumed() -> None:
    """The first n of at most 6 positions and n elements are added: right up to 6, refused beyond."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Slice", ["table", "zero", "s"], ["head"]),
        helper.make_node("Add", ["x", "head"], ["y"]),
    ]  # fmt: skip
    built = model(nodes, {"x": ["N"]}, ["y"], table=np.arange(6, dtype=np.float32), zero=np.array([0]))
    executable = tilework.compile(built)
    for n in (2, 6, 0):
        np.testing.assert_array_equal(executable(draw(n))[0], draw(n) + np.arange(n, dtype=np.float32))
    with pytest.raises(CallError) as caught:
        executable(draw(9))
    assert caught.value.code == 1707
    assert "Add" in str(caught.value)


def test_squeeze_without_axes_drops_what_is_one() -> None:
    executable = tilework.compile(model([helper.make_node("Squeeze", ["x"], ["y"])], {"x": ["N", 1, 3]}, ["y"]))
    for n in (4, 1, 2):
        np.testing.assert_array_equal(executable(draw(n, 1, 3))[0], draw(n, 1, 3).squeeze())


def test_graphs_that_depend_on_sizes_are_compiled_for_each() -> None:
    """One branch has another rank: only sizes decide."""

    def branch(name: str, node: Any) -> Any:
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(node.output[0], F, None)])

    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1), helper.make_node("Equal", ["s", "one"], ["p"]),
        helper.make_node("If", ["p"], ["y"], else_branch=branch("e", helper.make_node("Neg", ["x"], ["b"])),
                         then_branch=branch("t", helper.make_node("Unsqueeze", ["x", "axes"], ["a"]))),
    ]  # fmt: skip
    executable = tilework.compile(model(nodes, {"x": ["N", "M"]}, ["y"], one=np.array([1]), axes=np.array([1])))
    assert isinstance(executable, PerShape)
    with pytest.raises(UsageError, match="call it once"):
        executable.explain()
    for shape in ((3, 2), (3, 1), (5, 2), (3, 2)):
        x = draw(*shape)
        np.testing.assert_array_equal(executable(x=x)[0], x[:, None] if shape[1] == 1 else -x)
    assert len(executable.variants.shapes) == 3
    assert [port.name for port in executable.outputs] == ["y"]
    for wrong in ((), (draw(2, 2), draw(2, 2))):
        with pytest.raises(CallError) as caught:
            executable(*wrong)
        assert caught.value.code == 1701
    with pytest.raises(CallError, match="by name"):
        executable(z=draw(2, 2))
