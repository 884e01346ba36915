"""Functions: those a model brings along, and operators of the standard that are imported through their body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, helper

from tests.frontends.onnx.models import assert_close, check_against_reference, codes_of, faults_of, model, one_node, run
from tilework.frontends.onnx.importer import import_model

DOMAIN = "custom"


def with_function(
    nodes: list[Any],
    calls: list[Any],
    inputs: list[str],
    attributes: list[str] | None = None,
    defaults: list[AttributeProto] | None = None,
) -> ModelProto:
    """A model y = f(x, ...) with a function f of its own."""
    function = helper.make_function(
        DOMAIN, "f", inputs, ["r"], nodes, [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)],
        attributes or [], defaults or [],
    )  # fmt: skip
    proto = model(calls, {"x": (np.float32, ["n", 3])}, ["y"])
    proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    proto.functions.append(function)
    return proto


def referring(name: str, outer: str, kind: AttributeProto.AttributeType) -> AttributeProto:
    return AttributeProto(name=name, ref_attr_name=outer, type=kind)


@pytest.fixture
def x() -> Any:
    return np.random.default_rng(27).standard_normal((2, 3)).astype(np.float32)


def test_a_function_is_put_in_the_calls_place(x: Any) -> None:
    body = [helper.make_node("Mul", ["a", "a"], ["t"]), helper.make_node("Add", ["t", "a"], ["r"])]
    calls = [
        helper.make_node("f", ["x"], ["h"], domain=DOMAIN, name="first"),
        helper.make_node("f", ["h"], ["y"], domain=DOMAIN, name="second"),
    ]
    proto = with_function(body, calls, ["a"])
    once = x * x + x
    assert_close(run(proto, {"x": x}), [once * once + once])
    graph = import_model(proto, check="own")
    assert [node.location for node in graph.nodes] == ["f first"] * 2 + ["f second"] * 2


def test_attributes_are_passed_and_have_defaults(x: Any) -> None:
    node = helper.make_node("LeakyRelu", ["a"], ["r"])
    node.attribute.append(referring("alpha", "slope", AttributeProto.FLOAT))
    variants: list[tuple[dict[str, Any], float]] = [({"slope": 0.25}, 0.25), ({}, 0.5)]
    for given, slope in variants:
        call = helper.make_node("f", ["x"], ["y"], domain=DOMAIN, **given)
        proto = with_function([node], [call], ["a"], defaults=[helper.make_attribute("slope", 0.5)])
        assert_close(run(proto, {"x": x}), [np.maximum(x, 0) + np.float32(slope) * np.minimum(x, 0)])
    call = helper.make_node("f", ["x"], ["y"], domain=DOMAIN)
    assert codes_of(with_function([node], [call], ["a"], attributes=["slope"])) == {1108}


def test_inputs_that_are_left_out(x: Any) -> None:
    body = [helper.make_node("Clip", ["a", "low", "high"], ["r"])]
    call = helper.make_node("f", ["x"], ["y"], domain=DOMAIN)
    assert_close(run(with_function(body, [call], ["a", "low", "high"]), {"x": x}), [x])


def test_functions_of_functions_and_endless_ones(x: Any) -> None:
    call = helper.make_node("f", ["x"], ["y"], domain=DOMAIN)
    endless = with_function([helper.make_node("f", ["a"], ["r"], domain=DOMAIN)], [call], ["a"])
    assert codes_of(endless) == {1104}


def test_faults_inside_a_function_are_found() -> None:
    call = helper.make_node("f", ["x"], ["y"], domain=DOMAIN)
    assert codes_of(with_function([helper.make_node("Add", ["a", "b"], ["r"])], [call], ["a"])) == {1113}
    assert codes_of(with_function([helper.make_node("Add", ["a"], ["r"])], [call], ["a"])) == {1117}
    assert codes_of(with_function([helper.make_node("Relu", ["a"], ["q"])], [call], ["a"])) == {1123}
    ((code, text),) = faults_of(with_function([helper.make_node("ImageDecoder", ["a"], ["r"])], [call], ["a"]))
    assert code == 1107
    assert "ImageDecoder" in text
    many = helper.make_node("f", ["x", "x"], ["y"], domain=DOMAIN)
    assert codes_of(with_function([helper.make_node("Relu", ["a"], ["r"])], [many], ["a"])) == {1117}


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_free_dims(causal: int) -> None:
    random = np.random.default_rng(28)
    q, k, v = (random.standard_normal((2, 4, length, 8)).astype(np.float32) for length in (5, 6, 6))
    proto = one_node("Attention", {"q": q, "k": k, "v": v}, opset=23, is_causal=causal)
    for declared, length in zip(proto.graph.input, ("s", "t", "t"), strict=True):
        declared.type.tensor_type.shape.dim[0].dim_param = "n"
        declared.type.tensor_type.shape.dim[2].dim_param = length
    check_against_reference(proto, {"q": q, "k": k, "v": v})


def test_rotary_embedding_and_windows() -> None:
    random = np.random.default_rng(29)
    feeds = {
        "x": random.standard_normal((2, 3, 4, 8)).astype(np.float32),
        "cos": random.standard_normal((2, 4, 4)).astype(np.float32),
        "sin": random.standard_normal((2, 4, 4)).astype(np.float32),
    }
    check_against_reference(one_node("RotaryEmbedding", feeds, opset=23), feeds)
    proto = one_node("HannWindow", {}, {"size": np.array(10)})
    check_against_reference(proto, {}, 1e-5)
