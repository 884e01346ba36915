"""Encoders of ai.onnx.ml: keys of every type, unknown ones, strings and maps at the ends of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilework
from tests.frontends.onnx.ml_models import compiled, interpreted, ml_model
from tests.frontends.onnx.models import faults_of
from tilework.errors import CallError, RunError
from tilework.frontends.onnx.importer import import_model
from tilework.graph.parse import parse
from tilework.graph.text import constants_by_digest, to_text


def words(*texts: str) -> Any:
    return np.array(texts, object)


def both(operator: str, inputs: dict[str, Any], version: int = 3, outputs: int = 1, **attributes: Any) -> list[Any]:
    """The results of a compiled model, which are those of the interpreter."""
    proto = ml_model(operator, inputs, outputs, version, symbolic=True, **attributes)
    found = compiled(proto, inputs, checked=True)
    for one, other in zip(found, interpreted(proto, inputs), strict=True):
        np.testing.assert_array_equal(one, other)
    return list(found)


@pytest.mark.parametrize("count", [1, 2, 7, 256, 257, 1000])
@pytest.mark.parametrize("kind", ["int64", "float"])
def test_label_encoders_of_many_keys(count: int, kind: str) -> None:
    random = np.random.default_rng(count)
    keys = random.permutation(4000)[:count]
    values = random.integers(-50, 50, count)
    x = np.concatenate([random.integers(-10, 4010, 40), keys[: 40 // count + 40]])
    table = dict(zip(keys.tolist(), values.tolist(), strict=True))
    wanted = [table.get(entry, -7) for entry in x.tolist()]
    if kind == "int64":
        attributes: dict[str, Any] = {
            "keys_int64s": keys.tolist(),
            "values_int64s": values.tolist(),
            "default_int64": -7,
        }
    else:
        x = x.astype(np.float32)
        attributes = {
            "keys_floats": keys.astype(float).tolist(), "values_floats": values.astype(float).tolist(),
            "default_float": -7.0,
        }  # fmt: skip
    (found,) = both("LabelEncoder", {"x": x}, 2, **attributes)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("version", [2, 4])
def test_label_encoders_of_strings(version: int) -> None:
    x = words("a", "zz", "b", "a")
    keys: dict[str, Any] = {"keys_strings": ["a", "b", "a"]}  # of equal keys the last counts
    (found,) = both("LabelEncoder", {"x": x}, version, values_int64s=[1, 2, 3], default_int64=9, **keys)
    assert found.tolist() == [3, 9, 2, 3]
    (found,) = both("LabelEncoder", {"x": x}, version, values_floats=[0.5, 1.5, 2.5], **keys)
    assert found.tolist() == [2.5, 0.0, 1.5, 2.5]
    assert np.signbit(found[1])
    (found,) = both("LabelEncoder", {"x": x}, version, values_strings=["x", "y", "z"], **keys)
    assert found.tolist() == ["z", "_Unused", "y", "z"]
    numbers = np.array([2, 5, 1])
    (found,) = both(
        "LabelEncoder", {"x": numbers}, version, keys_int64s=[1, 2], values_strings=["one", "two"], default_string="?"
    )
    assert found.tolist() == ["two", "?", "one"]


def test_nan_is_a_key_and_zeros_are_one() -> None:
    x = np.array([np.nan, 0.0, -0.0, np.inf, 2.0], np.float32)
    (found,) = both("LabelEncoder", {"x": x}, 4, keys_floats=[float("nan"), 0.0, float("inf")], values_int64s=[1, 2, 3])
    assert found.tolist() == [1, 2, 2, 3, -1]


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_label_encoders_of_tensors(kind: Any) -> None:
    x = np.array([[3, 1], [9, 3]], kind)
    tables: dict[str, Any] = {
        "keys_tensor": numpy_helper.from_array(np.array([1, 3], kind)),
        "values_tensor": numpy_helper.from_array(np.array([10, 30], np.int16)),
        "default_tensor": numpy_helper.from_array(np.array([-5], np.int16)),
    }
    (found,) = both("LabelEncoder", {"x": x}, 4, **tables)
    assert found.dtype == np.int16
    assert found.tolist() == [[30, 10], [-5, 30]]


def test_the_first_version_of_label_encoder() -> None:
    (found,) = both("LabelEncoder", {"x": words("b", "c")}, 1, classes_strings=["a", "b"], default_int64=-4)
    assert found.tolist() == [1, -4]
    (found,) = both("LabelEncoder", {"x": np.array([1, 0, 2, -1])}, 1, classes_strings=["a", "b"], default_string="?")
    assert found.tolist() == ["b", "a", "?", "?"]


def test_category_mapper() -> None:
    cats: dict[str, Any] = {"cats_strings": ["a", "b"], "cats_int64s": [10, 20]}
    (found,) = both("CategoryMapper", {"x": words("b", "q")}, default_int64=-3, **cats)
    assert found.tolist() == [20, -3]
    (found,) = both("CategoryMapper", {"x": np.array([10, 11])}, default_string="none", **cats)
    assert found.tolist() == ["a", "none"]


def test_one_hot_encoder() -> None:
    (found,) = both("OneHotEncoder", {"x": np.array([[5, 1], [7, 5]])}, cats_int64s=[1, 5])
    np.testing.assert_array_equal(found, [[[0, 1], [1, 0]], [[0, 0], [0, 1]]])
    (found,) = both("OneHotEncoder", {"x": np.array([5.9, -1.5], np.float32)}, cats_int64s=[-1, 5])
    np.testing.assert_array_equal(found, [[0, 1], [1, 0]])
    (found,) = both("OneHotEncoder", {"x": words("b", "?")}, cats_strings=["a", "b"])
    np.testing.assert_array_equal(found, [[0, 1], [0, 0]])


def test_unknown_categories_stop_the_call_where_zeros_are_forbidden() -> None:
    proto = ml_model("OneHotEncoder", {"x": np.array([1, 2])}, cats_int64s=[1, 2], zeros=0)
    executable = tilework.compile(proto)
    np.testing.assert_array_equal(executable(np.array([2, 1]))[0], [[0, 1], [1, 0]])
    with pytest.raises(RunError) as caught:
        executable(np.array([2, 3]))
    assert caught.value.code == 1801
    assert "the_node" in str(caught.value)


def test_imputer() -> None:
    x = np.array([[np.nan, 1, 2], [1, np.nan, -0.0]], np.float32)
    (found,) = both("Imputer", {"x": x}, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"))
    np.testing.assert_array_equal(found, np.array([[7, 1, 2], [1, 8, 0]], np.float32))
    (found,) = both("Imputer", {"x": x}, imputed_value_floats=[5.0], replaced_value_float=0.0)
    np.testing.assert_array_equal(found, np.array([[np.nan, 1, 2], [1, np.nan, 5]], np.float32))
    for kind in (np.int32, np.int64):
        (found,) = both("Imputer", {"x": np.array([[1, 2]], kind)}, imputed_value_int64s=[5, 6], replaced_value_int64=2)
        assert found.dtype == kind
        assert found.tolist() == [[1, 6]]
    huge: dict[str, Any] = {"imputed_value_int64s": [2**40], "replaced_value_int64": 2}
    assert faults_of(ml_model("Imputer", {"x": np.array([[1]], np.int32)}, **huge))[0][0] == 1108
    assert faults_of(ml_model("Imputer", {"x": x}, imputed_value_floats=[1.0, 2.0]))[0][0] == 1119


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_array_feature_extractor(shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    for y in (np.array([3]), np.array([[2, 0]])):
        (found,) = both("ArrayFeatureExtractor", {"x": x, "y": y})
        np.testing.assert_array_equal(found, x[..., y.reshape(-1)].reshape(*(shape[:-1] or (1,)), -1))
    for wrong in (-1, -4, 4, -(2**63)):
        y = np.array([1, wrong])
        with pytest.raises(RunError, match="TW1801"):
            compiled(ml_model("ArrayFeatureExtractor", {"x": x, "y": y}, symbolic=True), {"x": x, "y": y})
        if wrong < 0:
            proto = ml_model("ArrayFeatureExtractor", {"x": x, "y": y}, symbolic=True)
            del proto.graph.input[1]
            proto.graph.initializer.append(numpy_helper.from_array(y, "y"))
            assert faults_of(proto)[0][0] == 1119


# -- strings and maps --------------------------------------------------------------------------------------------------
def test_zip_map() -> None:
    x = np.array([[0.25, 0.5], [1, 2], [3, 4]], np.float32)
    proto = ml_model("ZipMap", {"x": x}, symbolic=True, classlabels_strings=["u", "v"])
    executable = tilework.compile(proto)
    assert executable(x)[0] == [{"u": 0.25, "v": 0.5}, {"u": 1, "v": 2}, {"u": 3, "v": 4}]
    assert executable(x[:0])[0] == []
    (box,) = executable.explain().black_boxes
    assert box.operator == "ZipMap"
    assert "the_node" in box.step
    assert faults_of(ml_model("ZipMap", {"x": x}, classlabels_int64s=[1, 2, 3]))[0][0] == 1119


def test_maps_become_rows() -> None:
    (row,) = compiled(
        ml_model("DictVectorizer", {"m": {"a": 1.0}}, string_vocabulary=["a", "c", "b"]), {"m": {"b": 4.0}}
    )
    np.testing.assert_array_equal(row, np.array([[0, 0, 4]], np.float32))
    proto = ml_model("CastMap", {"m": {1: 1.0}})
    executable = tilework.compile(proto)
    for given, wanted in (({5: 1.0, 2: 3.0}, [[3, 1]]), ({}, np.zeros((1, 0)))):
        np.testing.assert_array_equal(executable(m=given)[0], np.asarray(wanted, np.float32))
    (found,) = compiled(ml_model("CastMap", {"m": {1: 1.0}}, map_form="SPARSE", max_map=3), {"m": {2: 1.5}})
    np.testing.assert_array_equal(found, np.array([[0, 0, 1.5]], np.float32))
    sparse = tilework.compile(ml_model("CastMap", {"m": {1: 1.0}}, map_form="SPARSE", max_map=3))
    with pytest.raises(RunError) as caught:
        sparse({7: 1.0})
    assert caught.value.code == 1805
    with pytest.raises(CallError) as refused:
        executable(np.zeros(3))
    assert refused.value.code == 1702
    (found,) = compiled(ml_model("CastMap", {"m": {1: "x"}}, cast_to="TO_INT64"), {"m": {4: "12", 1: "-3"}})
    assert found.tolist() == [[-3, 12]]


def pipeline() -> Any:
    """Categories and numbers to a label in words, its number, and a map of scores."""
    ml = "ai.onnx.ml"
    nodes = [
        helper.make_node("OneHotEncoder", ["s"], ["hot"], domain=ml, cats_strings=["a", "b"]),
        helper.make_node("Flatten", ["hot"], ["flat"]),
        helper.make_node("Concat", ["flat", "x"], ["features"], axis=1),
        helper.make_node(
            "LinearClassifier", ["features"], ["word", "scores"], domain=ml, coefficients=[1.0, 0, 1, 0, 1, -1],
            intercepts=[0.0, 0.25], classlabels_strings=["low", "high"],
        ),
        helper.make_node("ZipMap", ["scores"], ["map"], domain=ml, classlabels_strings=["low", "high"]),
        helper.make_node("Unsqueeze", ["word", "one"], ["column"]),
        helper.make_node("LabelEncoder", ["column"], ["number"], domain=ml, keys_strings=["high"], values_int64s=[1],
                         default_int64=0),
        helper.make_node("Identity", ["s"], ["same"]),
    ]  # fmt: skip
    kinds = {"s": (TensorProto.STRING, ["N", 1]), "x": (TensorProto.FLOAT, ["N", 1])}
    outputs = ["word", "column", "number", "map", "same", "s"]
    graph = helper.make_graph(
        nodes, "pipeline", [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.array([1]), "one")],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(ml, 3)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def test_strings_at_both_ends() -> None:
    executable = tilework.compile(pipeline())
    for count in (3, 1, 0, 8):
        s = np.resize(words("a", "b", "?"), count).reshape(-1, 1)
        x = np.full((count, 1), 0.5, np.float32)
        word, column, number, maps, same, again = executable(s=s, x=x)
        wanted = np.resize(words("low", "high", "low"), count)
        assert word.tolist() == wanted.tolist()
        assert column.tolist() == [[entry] for entry in wanted]
        assert number.tolist() == [[int(entry == "high")] for entry in wanted]
        assert [list(entry) for entry in maps] == [["low", "high"]] * count
        assert same.tolist() == again.tolist() == s.tolist()
    assert {box.operator for box in executable.explain().black_boxes} >= {"PlaceOfStrings", "StringsAtPlaces", "ZipMap"}
    assert [str(port.type) for port in executable.inputs] == ['opaque "tensor(string)"', "float32[N, 1]"]


def test_arguments_that_do_not_fit() -> None:
    executable = tilework.compile(pipeline())
    x = np.zeros((2, 1), np.float32)
    for s, code in ((np.zeros((2, 1)), 1702), (words("a", "b"), 1704), (words("a").reshape(1, 1), 1706)):
        with pytest.raises(CallError) as caught:
            executable(s=s, x=x)
        assert caught.value.code == code
    with pytest.raises(CallError) as caught:
        executable(words("a").reshape(1, 1))
    assert caught.value.code == 1701


def test_graphs_with_strings_have_a_text_that_comes_back() -> None:
    graph = import_model(pipeline())
    text = to_text(graph)
    assert 'opaque "tensor(string)"' in text
    assert to_text(parse(text, constants_by_digest(graph))) == text


def test_operators_that_take_no_strings_refuse_them() -> None:
    proto = pipeline()
    proto.graph.node.append(helper.make_node("TopK", ["s", "one"], ["p", "q"]))
    assert 1119 in {code for code, _ in faults_of(proto)}
