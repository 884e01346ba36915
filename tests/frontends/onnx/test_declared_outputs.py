"""Declared outputs: what can never be true is refused, all of it at once; what is left open contradicts nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.frontends.onnx.models import codes_of, faults_of, model
from tilework.frontends.onnx.importer import import_model

F, I32 = TensorProto.FLOAT, TensorProto.INT32
RELU = [helper.make_node("Relu", ["x"], ["y"])]
X: dict[str, Any] = {"x": (np.float32, ["n", 4])}


def declared(proto: ModelProto, *outputs: tuple[int, Any]) -> ModelProto:
    for output, (number, shape) in zip(proto.graph.output, outputs, strict=True):
        output.CopyFrom(helper.make_tensor_value_info(output.name, number, shape))
    return proto


@pytest.mark.parametrize(
    ("number", "shape", "words"),
    [
        (I32, ["n", 4], "elements of type int32, the model computes float32[n, 4]"),
        (TensorProto.STRING, ["n", 4], "elements of type string"),
        (99, None, "elements of type number 99"),
        (F, ["n", 5], "dimension 1 is declared as 5, the model computes float32[n, 4]"),
        (F, [None, 0], "dimension 1 is declared as 0"),
        (F, [4], "1 dimensions"),
        (F, ["n", 4, 7], "3 dimensions"),
        (F, ["n", -2], "dimension 1 is declared as -2"),
    ],
)
def test_what_can_never_be_true(number: int, shape: Any, words: str) -> None:
    ((code, text),) = faults_of(declared(model(RELU, X, ["y"]), (number, shape)))
    assert code == (1114 if "-2" in words else 1125)
    assert "output y" in text
    assert words in text


@pytest.mark.parametrize(
    ("number", "shape"),
    [
        (F, ["n", 4]),
        (F, ["m", "k"]),
        (F, [3, 4]),
        (F, [-1, -1]),
        (F, [None, 4]),
        (F, ["n"]),
        (F, []),
        (F, [None] * 3),
        (F, None),
        (0, [None, 4]),
    ],
)
def test_what_may_be_true(number: int, shape: Any) -> None:
    import_model(declared(model(RELU, X, ["y"]), (number, shape)), check="own")


def test_an_output_without_a_type_and_one_that_is_no_tensor() -> None:
    proto = model(RELU, X, ["y"])
    proto.graph.output[0].ClearField("type")
    import_model(proto, check="own")
    proto.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])))
    ((code, text),) = faults_of(proto)
    assert code == 1125
    assert "declared as a sequence" in text


def test_everything_is_listed() -> None:
    nodes = [*RELU, helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Identity", ["c"], ["z"])]
    proto = model(nodes, X, ["y", "s", "z", "x"], {"c": np.zeros((2, 3), np.int8)})
    faults = faults_of(declared(proto, (I32, ["n", 5]), (F, [3]), (TensorProto.INT8, [4, 5]), (F, [1])))
    assert [(code, text.split(": ")[0].split("] ")[1]) for code, text in faults] == [
        (1125, f"output {name}") for name in ("y", "y", "s", "s", "z", "z", "x")
    ]


def test_extents_that_were_given_contradict_nothing() -> None:
    """A model for batches of 1 that is used with 8, as exporters declare it: only its own extents count."""
    proto = declared(model(RELU, X, ["y"]), (F, [1, 4]))
    graph = import_model(proto, {"x": (8, -1)}, check="own")
    assert [str(value.type) for node in graph.nodes for value in node.outputs][-1] == "float32[8, 4]"


def test_extents_that_are_taken_for_granted_contradict_nothing() -> None:
    """n may be 1 where it meets 4; where it is contracted with 4 it is 4."""
    c = {"c": np.zeros(4, np.float32)}
    nodes = [helper.make_node("Add", ["x", "c"], ["y"]), helper.make_node("Identity", ["x"], ["z"])]
    import_model(declared(model(nodes, {"x": (np.float32, ["n"])}, ["y", "z"], c), (F, [4]), (F, [1])), check="own")
    nodes[0] = helper.make_node("MatMul", ["x", "c"], ["y"])
    proto = declared(model(nodes, {"x": (np.float32, ["n"])}, ["y", "z"], c), (F, []), (F, [1]))
    assert codes_of(proto) == {1125}
