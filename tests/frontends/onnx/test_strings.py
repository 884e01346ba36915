"""Operators on strings, which ONNX's reference runs around the compiled graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import tilework
from tests.frontends.onnx.models import codes_of
from tilework.errors import CodegenError, RunError


def model(nodes: list[NodeProto], inputs: dict[str, tuple[int, list[Any]]], outputs: list[str]) -> Any:
    graph = helper.make_graph(
        nodes, "strings", [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def words(*texts: str) -> Any:
    return np.array(texts, object)


STRINGS = (TensorProto.STRING, ["N"])


def test_one_box_after_another_before_and_after_what_is_compiled() -> None:
    """Joined strings are looked up, the numbers doubled, written out, and joined again."""
    nodes = [
        helper.make_node("StringConcat", ["a", "b"], ["both"]),
        helper.make_node(
            "LabelEncoder", ["both"], ["n"], domain="ai.onnx.ml", keys_strings=["xy", "yx"], values_int64s=[1, 2]
        ),
        helper.make_node("Add", ["n", "n"], ["twice"]),
        helper.make_node("Cast", ["twice"], ["written"], to=TensorProto.STRING),
        helper.make_node("StringConcat", ["written", "a"], ["last"]),
        helper.make_node("Equal", ["a", "b"], ["same"]),
    ]
    executable = tilework.compile(model(nodes, {"a": STRINGS, "b": STRINGS}, ["twice", "last", "same", "both"]))
    for a, b in ((words("x", "y", "x"), words("y", "x", "x")), (words("x"), words("x"))):
        twice, last, same, both = executable(a, b)
        numbers = [{"xy": 2, "yx": 4}.get(one + other, -2) for one, other in zip(a, b, strict=True)]
        assert twice.tolist() == numbers
        assert last.tolist() == [f"{number}{one}" for number, one in zip(numbers, a, strict=True)]
        assert same.tolist() == [one == other for one, other in zip(a, b, strict=True)]
        assert both.tolist() == [one + other for one, other in zip(a, b, strict=True)]
    boxes = {box.operator: box.provider for box in executable.explain().black_boxes}
    assert boxes["StringConcat"] == "onnx.reference"
    assert boxes["Cast"] == "tilework.frontends.onnx"


def test_how_many_parts_there_are_is_a_size_of_what_follows() -> None:
    nodes = [
        helper.make_node("StringSplit", ["s"], ["parts", "counts"], delimiter="-"),
        helper.make_node("LabelEncoder", ["parts"], ["n"], domain="ai.onnx.ml", keys_strings=["a", "b", ""],
                         values_int64s=[1, 2, 0]),
        helper.make_node("ReduceSum", ["n", "axes"], ["sum"], keepdims=0),
    ]  # fmt: skip
    proto = model(nodes, {"s": STRINGS}, ["sum", "counts"])
    proto.graph.initializer.append(helper.make_tensor("axes", TensorProto.INT64, [1], [1]))
    executable = tilework.compile(proto)
    for texts, sums, counts in ((("a-b-b", "a"), [5, 1], [3, 1]), (("b",), [2], [1])):
        found = executable(words(*texts))
        assert found[0].tolist() == sums
        assert found[1].tolist() == counts


def test_numbers_that_are_written_as_strings() -> None:
    nodes = [helper.make_node("Cast", ["s"], ["x"], to=TensorProto.FLOAT), helper.make_node("Neg", ["x"], ["y"])]
    executable = tilework.compile(model(nodes, {"s": STRINGS}, ["y"]))
    np.testing.assert_array_equal(executable(words("1.5", "-2", "1e3"))[0], [-1.5, 2, -1000])


def test_boxes_between_compiled_operations() -> None:
    """Numbers are written out, matched, and counted; what was measured before is a size afterwards."""
    nodes = [
        helper.make_node("Neg", ["x"], ["y"]),
        helper.make_node("Cast", ["y"], ["s"], to=TensorProto.STRING, name="write"),
        helper.make_node("RegexFullMatch", ["s"], ["m"], pattern="-.*", name="match"),
        helper.make_node("Not", ["m"], ["z"]),
        helper.make_node("Compress", ["y", "z"], ["rest"], axis=0),
        helper.make_node("Cast", ["rest"], ["words"], to=TensorProto.STRING, name="write again"),
        helper.make_node("StringSplit", ["words"], ["parts", "counts"], delimiter="."),
        helper.make_node("Size", ["x"], ["all"]),
        helper.make_node("Add", ["counts", "all"], ["sum"]),
        helper.make_node("Concat", ["rest", "x"], ["both"], axis=0),
    ]
    executable = tilework.compile(model(nodes, {"x": (TensorProto.FLOAT, ["N"])}, ["z", "sum", "parts", "both"]))
    for x in ([1.5, -2, 3, -4.5], [-1], [2], []):
        array = np.array(x, np.float32)
        z, total, parts, both = executable(array)
        rest = -array[array < 0]
        assert z.tolist() == [not value > 0 for value in x]
        assert total.tolist() == [len(f"{value:g}".split(".")) + len(x) for value in rest.tolist()]
        wanted = [f"{value:g}".split(".") for value in rest.tolist()]
        longest = max(map(len, wanted), default=0)
        assert parts.tolist() == [[*one, *[""] * (longest - len(one))] for one in wanted]
        np.testing.assert_array_equal(both, [*rest, *array])
    assert [box.step for box in executable.explain().black_boxes][:2] == ["Cast write", "RegexFullMatch match"]
    _, times = executable.step_times(np.ones(3, np.float32))
    assert {"Cast write", "RegexFullMatch match", "Cast write again"} <= {time.origin for time in times}


def test_boxes_in_branches_are_refused() -> None:
    def branch(name: str, value: str) -> Any:
        nodes = [
            helper.make_node("Cast", [value], [f"{name}_s"], to=TensorProto.STRING, name=f"write {name}"),
            helper.make_node("RegexFullMatch", [f"{name}_s"], [f"{name}_m"], pattern="-.*"),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(f"{name}_m")])

    nodes = [
        helper.make_node("If", ["c"], ["m"], then_branch=branch("then", "x"), else_branch=branch("else", "y")),
    ]
    kinds = (TensorProto.FLOAT, ["N"])
    proto = model(nodes, {"c": (TensorProto.BOOL, []), "x": kinds, "y": kinds}, ["m"])
    with pytest.raises(CodegenError) as caught:
        tilework.compile(proto)
    assert caught.value.code == 1652
    assert "body" in str(caught.value)


def test_numbers_where_strings_are_wanted() -> None:
    nodes = [helper.make_node("StringConcat", ["x", "x"], ["y"])]
    assert codes_of(model(nodes, {"x": (TensorProto.FLOAT, ["N"])}, ["y"])) == {1119}
    nodes = [helper.make_node("Loop", ["n", "", "s"], ["y"], body=helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("StringConcat", ["v", "v"], ["w"])], "body",
        [helper.make_empty_tensor_value_info(name) for name in "icv"],
        [helper.make_empty_tensor_value_info(name) for name in "dw"],
    ))]  # fmt: skip
    assert codes_of(model(nodes, {"n": (TensorProto.INT64, []), "s": STRINGS}, ["y"])) == {1115}


# -- numbers and words -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numbers_in_words_are_plain(kind: Any) -> None:
    x = np.array([3, 4e4, 0.1, 1 / 3, 1e-5, -0.0, -2.5, np.nan, np.inf, -np.inf, 0, 1e4], kind)
    to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING), helper.make_node("Cast", ["s"], ["y"], to=to),
    ]  # fmt: skip
    texts, back = tilework.compile(model(nodes, {"x": (to, ["N"])}, ["s", "y"]))(x)
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(np.signbit(back), np.signbit(x))
    assert not any("e" in text for text in texts)
    assert texts[[0, 1, 5, 6, 7, 8, 9]].tolist() == ["3", "40000", "-0", "-2.5", "NaN", "INF", "-INF"]


@pytest.mark.parametrize(
    ("value", "text"), [(4e6, "4000000"), (1e10, "10000000000"), (0.1, "0.1"), (1e-7, "0.0000001")]
)
def test_large_and_small_numbers_have_no_exponent(value: float, text: str) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING)]
    executable = tilework.compile(model(nodes, {"x": (TensorProto.FLOAT, ["N"])}, ["s"]))
    assert executable(np.array([value], np.float32))[0].tolist() == [text]


def test_words_that_are_numbers() -> None:
    def read(to: int, *texts: str) -> Any:
        nodes = [helper.make_node("Cast", ["s"], ["x"], to=to)]
        return tilework.compile(model(nodes, {"s": STRINGS}, ["x"]))(words(*texts))[0]

    found = read(TensorProto.FLOAT, "+INF", "inf", "-Inf", "nan", "1E8", "-3.25", " 7 ")
    np.testing.assert_array_equal(found, np.array([np.inf, np.inf, -np.inf, np.nan, 1e8, -3.25, 7], np.float32))
    assert read(TensorProto.INT64, "12", "-3", "100.5", str(2**63 - 1)).tolist() == [12, -3, 100, 2**63 - 1]
    assert read(TensorProto.UINT8, "255").tolist() == [255]
    assert read(TensorProto.BOOL, "0", "1", "True", "false", "2.5").tolist() == [False, True, True, False, True]
    assert read(TensorProto.BFLOAT16, "1.5").astype(np.float32).tolist() == [1.5]
    for to, text in ((TensorProto.FLOAT, "Hello"), (TensorProto.INT64, str(2**63)), (TensorProto.INT8, "200")):
        with pytest.raises(RunError, match=r"TW1805.*Cast"):
            read(to, text)


def test_flags_are_written_as_digits() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING)]
    for kind, number, text in ((TensorProto.BOOL, True, "1"), (TensorProto.INT8, -7, "-7")):
        executable = tilework.compile(model(nodes, {"x": (kind, ["N"])}, ["s"]))
        assert executable(np.array([number], helper.tensor_dtype_to_np_dtype(kind)))[0].tolist() == [text]


@pytest.mark.parametrize("rows", [False, True])
def test_normalised_strings(rows: bool) -> None:
    """Words are left out, then letters change; accents stay, and no letter becomes two."""

    def normalised(texts: Any, **how: Any) -> list[str]:
        kind = (TensorProto.STRING, [1, "N"] if rows else ["N"])
        executable = tilework.compile(
            model([helper.make_node("StringNormalizer", ["s"], ["t"], **how)], {"s": kind}, ["t"])
        )
        found = executable(words(*texts).reshape((1, -1) if rows else (-1,)))[0]
        assert found.ndim == 1 + rows
        return found.reshape(-1).tolist()

    assert normalised(["\u00c9a", "\u00df", "\u0130"], case_change_action="LOWER") == ["\u00e9a", "\u00df", "i"]
    assert normalised(["\u00e9a", "\u00df"], case_change_action="UPPER") == ["\u00c9A", "\u00df"]
    texts = ["Monday", "monday", "", "Tuesday"]
    assert normalised(texts) == texts
    assert normalised(texts, stopwords=["monday"]) == ["", "Tuesday"]
    assert normalised(texts, stopwords=["monday"], is_case_sensitive=1) == ["Monday", "", "Tuesday"]
    upper = normalised(texts, stopwords=["monday"], is_case_sensitive=1, case_change_action="UPPER")
    assert upper == ["MONDAY", "", "TUESDAY"]
    assert normalised(["a", "A"], stopwords=["a"]) == [""]
