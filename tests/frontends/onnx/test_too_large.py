"""Values that no array can hold are refused when a model is imported or compiled, by the node's or the input's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import tilework
from tests.frontends.onnx.models import Shape, codes_of, faults_of, model, one_node
from tilework import dtypes
from tilework.errors import OutOfMemoryError, VerificationError
from tilework.ops.builder import GraphBuilder


def one(operator: str, shapes: dict[str, Shape], **constants: Any) -> ModelProto:
    inputs: dict[str, tuple[Any, Shape]] = {name: (np.float32, shape) for name, shape in shapes.items()}
    node = helper.make_node(operator, [*shapes, *constants], ["a"], name="the_node")
    return model([node], inputs, ["a"], {name: np.array(value) for name, value in constants.items()}, opset=21)


MODELS: dict[str, tuple[ModelProto, str, str]] = {
    "more elements than 2**63": (one("Pad", {"x": [4]}, w=[2**62, 2**62]), "the_node", "2**63 or more"),
    "whatever the free size": (one("Pad", {"x": ["n"]}, w=[2**62, 2**62]), "the_node", "needs at least"),
    "an input": (one("Relu", {"x": [2**40, 2**40]}), "input x", "2**63 or more"),
    "an input with free sizes": (one("Relu", {"x": [2**40, "n", 2**40]}), "input x", "2**63 or more"),
    "an outer product": (one("MatMul", {"x": [2**40, 1], "y": [1, 2**40]}), "the_node", "2**63 or more"),
    "nothing, in numpy's count": (one("Expand", {"x": [1]}, s=[2**40, 0, 2**40]), "the_node", "2**63 or more"),
    "65 dimensions of an input": (one("Identity", {"x": [1] * 65}), "input x", "65 dimensions"),
    "65 dimensions of a result": (one("Unsqueeze", {"x": [1] * 64}, axes=[0]), "the_node", "65 dimensions"),
    "65 dimensions of a constant": (one("ConstantOfShape", {}, s=[1] * 65), "the_node", "65 dimensions"),
    "79 dimensions of a shape": (one("Reshape", {"x": ["n"]}, s=[1] * 79), "the_node", "79 dimensions"),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_what_no_array_can_hold(name: str) -> None:
    proto, where, words = MODELS[name]
    ((code, text),) = faults_of(proto)
    assert code == 1124
    assert where in text
    assert words in text


def test_a_stored_tensor() -> None:
    proto = one("Relu", {}, c=[1.0])
    proto.graph.initializer[0].CopyFrom(TensorProto(name="c", data_type=1, dims=[1] * 65, raw_data=bytes(4)))
    ((code, text),) = faults_of(proto)
    assert code == 1124
    assert "initialiser c" in text


def test_a_known_integer_of_65_dimensions() -> None:
    x: dict[str, tuple[Any, Shape]] = {"x": (np.float32, ["n"])}
    for operator, operand in (
        ("Reshape", np.ones(65, np.int64)), ("Unsqueeze", np.arange(64)), ("Gather", np.zeros((1,) * 64, np.int64)),
    ):  # fmt: skip
        nodes = [
            helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Unsqueeze", ["s", "at"], ["t"]),
            helper.make_node(operator, ["t", "c"], ["a"], name="the_node"),
        ]  # fmt: skip
        ((code, text),) = faults_of(model(nodes, x, ["a"], {"c": operand, "at": np.array([0])}))
        assert code == 1124
        assert "the_node" in text
        assert " dimensions, at most 64" in text


@pytest.mark.parametrize("extent", [-2, -(2**62)])
def test_negative_extents(extent: int) -> None:
    """-1 is how some exporters write a free dimension; nothing else below 0 means anything."""
    ((code, text),) = faults_of(one("Relu", {"x": [4, extent]}))
    assert code == 1114
    assert f"dimension 1 is declared as {extent}" in text
    assert tilework.compile(one("Relu", {"x": [-1]}))(np.array([-1, 2], np.float32))[0].tolist() == [0, 2]


def test_a_graph_of_ones_own() -> None:
    builder = GraphBuilder("large")
    x = builder.input("x", dtypes.float32, *(1,) * 64)
    y = builder.apply_one("reshape", x, shape=(1,) * 65)
    with pytest.raises(VerificationError, match="65 dimensions") as caught:
        tilework.compile(builder.build([y]))
    assert caught.value.code == 1213


@pytest.mark.parametrize(("operator", "shape", "sizes"), [
    ("Tile", (0,), [2**59]), ("Tile", (3, 0), [2**59, 1]), ("Tile", ("n",), [2**59]), ("Tile", ("n", 3), [1, 2**50]),
    ("Expand", (1, 0), [2**59, 0]), ("Expand", (1, "n"), [2**50, 1]),
])  # fmt: skip
def test_nothing_many_times_is_no_work(operator: str, shape: tuple[int | str, ...], sizes: list[int]) -> None:
    node = helper.make_node(operator, ["x", "sizes"], ["y"])
    proto = model([node], {"x": (np.float32, shape)}, ["y"], {"sizes": np.array(sizes, np.int64)})
    x = np.zeros([extent if isinstance(extent, int) else 0 for extent in shape], np.float32)
    (found,) = tilework.compile(proto)(x)
    assert found.size == 0


# -- tables that an import would compute -------------------------------------------------------------------------------
@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_a_window_that_no_memory_holds(operator: str) -> None:
    """It is the run that needs the memory, and that has a limit."""
    executable = tilework.compile(one_node(operator, {}, {"size": np.array(2**40)}), memory_limit=2**20)
    with pytest.raises(OutOfMemoryError, match="TW1710"):
        executable()


def test_a_mel_scale_that_no_memory_holds() -> None:
    numbers = {"a": np.array(2**23), "b": np.array(2**23), "c": np.array(8000)}
    assert codes_of(one_node("MelWeightMatrix", {}, {**numbers, "d": np.float32(0), "e": np.float32(4000)})) == {1124}


def test_an_attribute_that_counts_what_is_not_there() -> None:
    """A list as long as the attribute says is never made."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "rs"]
    body = helper.make_graph([helper.make_node("Identity", ["r"], ["s"])], "body", ends[:1], ends[1:])
    for opset, names in ((8, ["", "x"]), (17, ["x"])):
        for count in (2**40, 2**62, -(2**63)):
            scan = helper.make_node("Scan", names, ["y"], num_scan_inputs=count, body=body)
            assert codes_of(model([scan], {"x": (np.float32, [1, 3])}, ["y"], opset=opset)) == {1117}


@pytest.mark.parametrize(("scale", "expected"), [(1e38, 1124), (np.inf, 1119), (np.nan, 1119)])
def test_a_scale_beyond_numbers(scale: float, expected: int) -> None:
    x = np.ones((1, 4), np.float32)
    scales = np.array([1, scale], np.float32)
    ((code, text),) = faults_of(one_node("Resize", {"x": x}, {"scales": scales}, order=["x", "", "scales"]))
    assert code == expected
    assert "the_node" in text


def test_memory_that_is_not_there_is_the_nodes_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the import of an operator asks for it that checks no size."""

    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError("Unable to allocate 8.00 TiB")

    monkeypatch.setattr("tilework.frontends.onnx.operators.signals.np.arange", full)
    ((code, text),) = faults_of(one_node("HannWindow", {}, {"size": np.array(8)}))
    assert code == 1124
    assert "the_node" in text
