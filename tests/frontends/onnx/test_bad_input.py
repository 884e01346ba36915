"""Damaged, foreign and absurd models: each is imported or refused with a code that lists every fault."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from tests.frontends.onnx.models import codes_of, faults_of, model, one_node, run
from tilework.error_codes import CODES
from tilework.errors import FrontendError, UsageError
from tilework.frontends.onnx.full_check import checker_words
from tilework.frontends.onnx.importer import import_model
from tilework.frontends.onnx.source import LoadedModel, load, scan


def small() -> ModelProto:
    """A valid model with a convolution, shape arithmetic, a subgraph and constants."""
    random = np.random.default_rng(23)
    branches: dict[str, Any] = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(operator, ["y", "y"], [f"{name}_out"])], name, [],
            [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None)],
        )
        for name, operator in (("then", "Add"), ("else", "Mul"))
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["b"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "at0"], ["n1"]),
        helper.make_node("Concat", ["n1", "minus"], ["flat"], axis=0),
        helper.make_node("Reshape", ["b", "flat"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["y"], alpha=0.5),
        helper.make_node("If", ["c"], ["z"], **branches), helper.make_node("Softmax", ["z"], ["out"], axis=-1),
    ]  # fmt: skip
    constants = {
        "k": random.standard_normal((2, 1, 3, 3)).astype(np.float32),
        "w": random.standard_normal((8, 3)).astype(np.float32),
        "zero": np.array(0), "at0": np.array([0]), "minus": np.array([-1]), "c": np.array(True),
    }  # fmt: skip
    proto = model(nodes, {"x": (np.float32, ["n", 1, 4, 4])}, ["out"], constants)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 3]))
    return proto


def survives(source: Any) -> bool:
    """Whether it is imported; anything but a coded error fails the test."""
    try:
        import_model(source, check="own")
    except FrontendError as error:
        unknown = {error.code, *(fault.code for fault in error.faults)} - set(CODES)
        if unknown or not str(error):
            pytest.fail(f"codes without a page: {unknown}")
        return False
    return True


def test_the_valid_model_is_imported() -> None:
    x = np.random.default_rng(24).standard_normal((2, 1, 4, 4)).astype(np.float32)
    (got,) = run(small(), {"x": x})
    np.testing.assert_allclose(got.sum(1), 1, rtol=1e-6)


# -- bytes -------------------------------------------------------------------------------------------------------------
def test_every_truncation() -> None:
    content = small().SerializeToString()
    imported = sum(survives(content[:length]) for length in range(len(content)))
    assert imported < 12  # cuts after the last field that matters


def test_random_bytes() -> None:
    random = np.random.default_rng(25)
    for _ in range(500):
        assert not survives(random.bytes(int(random.integers(0, 400))))


def test_flipped_and_moved_bytes() -> None:
    random = np.random.default_rng(26)
    content = small().SerializeToString()
    for _ in range(1500):
        changed = bytearray(content)
        for _ in range(int(random.integers(1, 4))):
            changed[int(random.integers(len(changed)))] = int(random.integers(256))
        start, end = sorted(random.integers(0, len(changed), 2))
        if random.integers(4) == 0:
            del changed[start:end]
        survives(bytes(changed))


def test_names_that_are_no_text() -> None:
    content = small().SerializeToString().replace(b"\x04conv", b"\x04c\xff\xfev")
    assert codes_of(content) == {1103}


def test_bytes_that_are_something_else() -> None:
    for content in (b"", b"PK\x03\x04 a zip file", b"<html></html>", b"\x7fELF" + bytes(100), bytes(1000)):
        assert codes_of(content) <= {1102, 1103}


def nested(depth: int) -> bytes:
    """A model whose `If` nodes lie in each other: written by hand, for protobuf's own writer stops earlier."""

    def field(number: int, body: bytes) -> bytes:
        size, prefix = len(body), bytearray()
        for rest in (number << 3 | 2, size):
            while rest > 127:
                prefix.append(rest & 127 | 128)
                rest >>= 7
            prefix.append(rest)
        return bytes(prefix) + body

    graph = b""
    for _ in range(depth):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        graph = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attribute))
    return b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")


def test_a_graph_nested_a_thousand_deep() -> None:
    assert scan(nested(1000)) == (1001, None)
    for depth in (31, 40, 1000, 5000):
        assert 1104 in codes_of(nested(depth))


def test_deep_nesting_in_memory() -> None:
    proto = ModelProto()
    proto.opset_import.add().version = 17
    graph = proto.graph
    for _ in range(600):
        node = graph.node.add(op_type="If", input=["c"], output=["y"])
        graph = node.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g
    assert 1104 in codes_of(proto)


def test_a_long_chain_is_no_deep_nesting() -> None:
    nodes = [helper.make_node("Neg", [f"v{place}"], [f"v{place + 1}"]) for place in range(3000)]
    proto = model(nodes, {"v0": (np.float32, [2])}, ["v3000"])
    assert len(import_model(proto, check="own").nodes) == 3000
    shuffled = model(nodes[::-1], {"v0": (np.float32, [2])}, ["v3000"])
    assert len(import_model(shuffled, check="own").nodes) == 3000


def test_where_the_damage_is_found() -> None:
    content = small().SerializeToString()
    ((code, text),) = faults_of(content[:100])
    assert code == 1102
    assert "begins at byte" in text


# -- files -------------------------------------------------------------------------------------------------------------
def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.onnx", tmp_path, "a\0b", ""):
        assert codes_of(path) == {1101}
    assert "is empty" in faults_of("")[0][1]
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert codes_of(tmp_path / "empty.onnx") == {1102}


def test_files_bytes_and_messages_give_the_same(tmp_path: Path) -> None:
    proto = small()
    before = proto.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(before)
    sources = (proto, before, bytearray(before), memoryview(before), path, str(path))
    graphs = [import_model(source) for source in sources]
    assert len({len(graph.nodes) for graph in graphs}) == 1
    assert len({graph.outputs for graph in graphs}) == 1
    assert proto.SerializeToString() == before


# -- structure ---------------------------------------------------------------------------------------------------------
def chain(*nodes: Any, **options: Any) -> ModelProto:
    return model(list(nodes), {"x": (np.float32, ["n"])}, ["y"], **options)


def test_no_graph_no_output_no_operator_set() -> None:
    assert codes_of(ModelProto(ir_version=8).SerializeToString()) == {1103}
    proto = small()
    del proto.graph.output[:]
    assert codes_of(proto) == {1114}
    proto = small()
    del proto.opset_import[:]
    assert 1105 in codes_of(proto)
    proto = small()
    proto.opset_import.add(domain="ai.onnx", version=9)
    assert 1103 in codes_of(proto)


def test_operator_sets_imported_twice() -> None:
    """Under both names of the standard set, or twice under one: accepted where the versions agree."""
    proto = small()
    for domain in ("ai.onnx", "", "elsewhere", "elsewhere"):
        proto.opset_import.add(domain=domain, version=17)
    import_model(proto, check="own")
    proto.opset_import.add(domain="elsewhere", version=1)
    ((code, text),) = faults_of(proto)
    assert code == 1103
    assert "elsewhere is imported twice, as 17 and 1" in text


def test_all_unsupported_operators_in_one_error() -> None:
    proto = chain(
        helper.make_node("LabelEncoder", ["x"], ["a"], domain="ai.onnx.ml", name="labels"),
        helper.make_node("Mystery", ["a"], ["b"], domain="com.example", name="first"),
        helper.make_node("Mystery", ["b"], ["c"], domain="com.example", name="second"),
        helper.make_node("NoSuchBoxes", ["c", "c"], ["d"], name="boxes"),
        helper.make_node("NoSuchThing", ["d"], ["y"]),
    )
    found = faults_of(proto)
    text = "\n".join(message for _, message in found)
    assert len(found) == 4
    assert {code for code, _ in found} == {1105, 1107}
    for word in ("labels", "first", "second", "boxes", "NoSuchThing", "com.example", "imports no version", "2 nodes"):
        assert word in text


def test_duplicate_names() -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    assert codes_of(chain(relu, relu)) == {1112}
    assert 1112 in codes_of(chain(helper.make_node("Relu", ["x"], ["x"]), relu))
    proto = chain(relu, constants={"w": np.ones(3, np.float32)})
    proto.graph.initializer.append(proto.graph.initializer[0])
    proto.graph.input.append(proto.graph.input[0])
    found = faults_of(proto)
    assert {code for code, _ in found} == {1112}
    assert len(found) == 2


def test_undefined_and_cyclic_names() -> None:
    assert codes_of(chain(helper.make_node("Add", ["x", "nowhere"], ["y"]))) == {1113}
    assert codes_of(chain(helper.make_node("Relu", ["x"], ["z"]))) == {1113}
    found = faults_of(
        chain(
            helper.make_node("Add", ["x", "c"], ["a"], name="one"), helper.make_node("Relu", ["a"], ["b"], name="two"),
            helper.make_node("Relu", ["b"], ["c"], name="three"), helper.make_node("Relu", ["c"], ["y"]),
        )
    )  # fmt: skip
    assert [code for code, _ in found] == [1113]
    for word in ("one", "two", "three"):
        assert word in found[0][1]
    assert codes_of(chain(helper.make_node("Relu", ["y"], ["y"]))) == {1113}


def test_nodes_in_any_order_are_sorted() -> None:
    proto = chain(helper.make_node("Neg", ["a"], ["y"]), helper.make_node("Relu", ["x"], ["a"]))
    (got,) = run(proto, {"x": np.array([-1, 2], np.float32)})
    np.testing.assert_array_equal(got, [0, -2])


def test_inputs_that_are_no_tensors() -> None:
    proto = chain(helper.make_node("Relu", ["x"], ["y"]))
    proto.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])))
    assert codes_of(proto) == {1115}
    proto.graph.input[0].ClearField("type")
    assert codes_of(proto) == {1114}
    proto.graph.input[0].type.tensor_type.elem_type = 1
    assert codes_of(proto) == {1114}
    proto.graph.input[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.STRING, [2]))
    assert codes_of(proto) == {1119}  # strings come in, but Relu does not take them
    proto.graph.input[0].type.CopyFrom(helper.make_tensor_type_proto(1, [2**60]))
    assert codes_of(proto) == {1124}


def test_wrong_numbers_of_operands() -> None:
    assert codes_of(chain(helper.make_node("Add", ["x"], ["y"]))) == {1117}
    assert codes_of(chain(helper.make_node("Add", ["x", "x", "x"], ["y"]))) == {1117}
    assert codes_of(chain(helper.make_node("Add", ["x", ""], ["y"]))) == {1117}
    assert codes_of(chain(helper.make_node("Relu", ["x"], ["y", "z"]))) == {1117}
    assert codes_of(chain(helper.make_node("Concat", [], ["y"], axis=0))) == {1117}


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("Softmax", {"axis": 7}), ("Softmax", {"axis": -(2**63)}), ("Softmax", {"axis": 1.5}), ("Softmax", {"axes": 1}),
        ("Transpose", {"perm": [0, 0, 1]}), ("Transpose", {"perm": [0]}), ("Concat", {}), ("Concat", {"axis": "x"}),
        ("AveragePool", {"kernel_shape": [0]}), ("AveragePool", {"kernel_shape": [2**40]}),
        ("AveragePool", {"kernel_shape": [1, 1]}),
        ("MaxPool", {"kernel_shape": [2], "pads": [-1, 0]}), ("MaxPool", {"kernel_shape": [2], "strides": [0]}),
        ("LRN", {"size": -1}), ("LpPool", {"kernel_shape": [1], "p": 0}), ("Cast", {}),
        ("GroupNormalization", {"num_groups": 0}), ("ConvTranspose", {"output_shape": [1] * 1000}),
        ("ConvTranspose", {"output_shape": [9, 9]}), ("ConvTranspose", {"output_shape": [-1]}),
    ],
)  # fmt: skip
def test_absurd_attributes(operator: str, attributes: Any) -> None:
    x = np.ones((2, 4, 5), np.float32)
    constants = {
        "GroupNormalization": {"s": np.ones(4, np.float32), "b": np.ones(4, np.float32)},
        "ConvTranspose": {"w": np.ones((4, 2, 3), np.float32)},
    }.get(operator)
    assert codes_of(one_node(operator, {"x": x}, constants, opset=21, **attributes)) == {1108}


def test_attributes_without_a_value_or_given_twice() -> None:
    proto = chain(helper.make_node("Softmax", ["x"], ["y"], axis=0))
    proto.graph.node[0].attribute[0].ClearField("i")
    assert codes_of(proto) == {1108}
    proto.graph.node[0].attribute[0].i = 0
    import_model(proto)
    proto.graph.node[0].attribute.append(proto.graph.node[0].attribute[0])
    assert codes_of(proto) == {1108}
    proto = chain(helper.make_node("Softmax", ["x"], ["y"], axis=0))
    proto.graph.node[0].attribute[0].ref_attr_name = "outer"
    assert codes_of(proto) == {1108}


def test_every_fault_of_every_node_is_listed() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[3], name="turned"),
        helper.make_node("Relu", ["a"], ["b"], name="follows"),  # reads what could not be made: no fault of its own
        helper.make_node("Add", ["x", "w"], ["c"], name="broken"),
        helper.make_node("Softmax", ["x"], ["d"], axis=5, name="far"),
        helper.make_node("Add", ["x", "i"], ["e"], name="mixed"),
    ]
    constants = {"w": np.ones((2, 3), np.float32), "i": np.ones(2, np.int32)}
    proto = model(nodes, {"x": (np.float32, [2])}, ["b", "c", "d", "e"], constants)
    found = faults_of(proto)
    assert len(found) == 4
    for (_, text), name in zip(found, ("turned", "broken", "far", "mixed"), strict=True):
        assert name in text


def test_huge_extents_cost_nothing() -> None:
    started = time.perf_counter()
    fill = chain(helper.make_node("ConstantOfShape", ["s"], ["y"]), constants={"s": np.array([2**40, 2**20])})
    assert codes_of(fill) == {1124}
    tall = chain(helper.make_node("ConstantOfShape", ["s"], ["y"]), constants={"s": np.array([2**40])})
    import_model(tall)
    spread = chain(helper.make_node("Expand", ["x", "s"], ["y"]), constants={"s": np.array([2**44, 1])})
    import_model(spread)
    count = chain(
        helper.make_node("Range", ["a", "b", "c"], ["y"]),
        constants={"a": np.array(0), "b": np.array(2**60), "c": np.array(1)},
    )
    assert codes_of(count) == {1124}
    assert time.perf_counter() - started < 5


def test_sparse_and_textual_constants() -> None:
    proto = small()
    proto.graph.sparse_initializer.add().values.name = "sparse"
    assert 1115 in codes_of(proto)
    assert codes_of(chain(helper.make_node("Constant", [], ["y"], value_string="text"))) == {1115}


# -- ONNX's own checker ------------------------------------------------------------------------------------------------
def test_the_checker_runs_in_a_child_on_demand() -> None:
    proto = small()
    import_model(proto, check="full")
    proto.ir_version = 0  # nothing that the import needs: only the checker minds
    import_model(proto)
    assert codes_of(proto, check="full") == {1122}


def test_the_checker_adds_its_words_to_damage() -> None:
    proto = chain(helper.make_node("Add", ["x"], ["y"]))
    assert codes_of(proto, check="own") == {1117}
    assert codes_of(proto, check="auto") == {1117, 1122}


def test_a_crash_of_the_checker_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilework.frontends.onnx.full_check._CHILD", "import os; os.abort()")
    words = checker_words(LoadedModel(small(), None, "test"))
    assert words is not None
    assert "crashed" in words
    monkeypatch.setattr("tilework.frontends.onnx.full_check._CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr("tilework.frontends.onnx.full_check.TIME_LIMIT_S", 0.2)
    words = checker_words(load(small()).__class__(small(), None, "test"))
    assert words is not None
    assert "did not end" in words


# -- use ---------------------------------------------------------------------------------------------------------------
def test_errors_can_be_pickled_and_the_options_are_checked() -> None:
    with pytest.raises(FrontendError) as caught:
        import_model(chain(helper.make_node("Add", ["x"], ["y"])), check="own")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.faults == caught.value.faults
    with pytest.raises(UsageError):
        import_model(small(), check="thorough")  # type: ignore[arg-type]


def test_constants_among_the_inputs_are_constants() -> None:
    """Before version 4 of the format every initialiser had to be listed as an input."""
    proto = chain(helper.make_node("Add", ["x", "w"], ["y"]), constants={"w": np.ones(1, np.float32)})
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]))
    graph = import_model(proto)
    assert [value.name for value in graph.inputs] == ["x"]


def names(proto: ModelProto) -> Iterator[tuple[str, ...]]:
    graph = import_model(proto, check="own")
    yield tuple(value.name for value in graph.inputs)
    yield graph.outputs


def test_inputs_and_outputs_keep_their_names() -> None:
    nodes = [
        helper.make_node("Relu", ["in:0"], ["add"]), helper.make_node("Add", ["add", "w"], ["out/1"]),
        helper.make_node("Identity", ["out/1"], ["same"]), helper.make_node("Identity", ["in:0"], ["through"]),
        helper.make_node("Identity", ["w"], ["constant"]), helper.make_node("Neg", ["out/1"], ["relu"]),
    ]  # fmt: skip
    outputs = ["out/1", "same", "through", "constant", "add", "relu", "in:0", "w"]
    proto = model(nodes, {"in:0": (np.float32, ["n"])}, outputs, {"w": np.float32(2)})
    assert list(names(proto)) == [("in:0",), tuple(outputs)]
    x = np.array([-1, 3], np.float32)
    up = np.maximum(x, 0)
    wanted = [up + 2, up + 2, x, np.float32(2), up, -(up + 2), x, np.float32(2)]
    for got, expected in zip(run(proto, {"in:0": x}), wanted, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_importing_the_importer_brings_in_no_onnx() -> None:
    code = "import sys, tilework.frontends.onnx.importer; print([m for m in ('onnx', 'google') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**os.environ})
    assert done.stdout.strip() == "[]"


def test_missing_onnx_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilework.errors import MissingPackageError

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"tilework\[onnx\]"):
        import_model(b"x")


def test_a_large_constant_is_not_copied() -> None:
    weight = np.ones((64, 64), np.float32)
    tensor = numpy_helper.from_array(weight, "w")
    from tilework.frontends.onnx.tensors import to_array

    assert not to_array(tensor, None).flags.owndata
