"""Free dimensions: symbols, what shape arithmetic makes of them, the bounds that operators leave on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.frontends.onnx.models import assert_close, codes_of, faults_of, model, run
from tilework.dims import Symbol, dim
from tilework.errors import UsageError
from tilework.frontends.onnx.importer import import_model
from tilework.graph.graph import Graph


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(22)


def output_shape(graph: Graph, place: int = 0) -> list[str]:
    return [str(extent) for extent in graph.values[graph.outputs[place]].tensor.shape]


def imported(nodes: Any, shape: Any, constants: Any = None, **options: Any) -> Graph:
    return import_model(model(nodes, {"x": (np.float32, shape)}, ["y"], constants), check="own", **options)


def test_one_graph_serves_every_batch(random: np.random.Generator) -> None:
    weights = {f"w{place}": random.standard_normal((64, 64)).astype(np.float32) / 8 for place in range(3)}
    nodes: list[Any] = []
    last = "x"
    for name in weights:
        nodes.append(helper.make_node("MatMul", [last, name], [f"{name}m"]))
        nodes.append(helper.make_node("Relu", [f"{name}m"], [f"{name}r"]))
        last = f"{name}r"
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    graph = imported(nodes, ["batch", 64], weights)
    assert output_shape(graph) == ["batch", "64"]
    assert [symbol.name for symbol in graph.symbols] == ["batch"]
    for batch in (0, 1, 3, 64):
        x = expected = random.standard_normal((batch, 64)).astype(np.float32)
        for weight in weights.values():
            expected = np.maximum(expected @ weight, 0)
        assert_close(run(graph, {"x": x}), [expected])


def test_names_become_identifiers_and_unnamed_dims_are_apart() -> None:
    proto = model(
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["z"], ["w"])],
        {"x": (np.float32, ["batch-size", "2 seq", None, "for"]), "z": (np.float32, ["batch-size", None, -1, "max"])},
        ["y", "w"],
    )  # fmt: skip
    graph = import_model(proto, check="own")
    assert output_shape(graph, 0) == ["batch_size", "dim_2_seq", "x_2", "dim_for"]
    assert output_shape(graph, 1) == ["batch_size", "z_1", "z_2", "dim_max"]


def test_names_that_sanitise_alike_stay_apart() -> None:
    graph = imported([helper.make_node("Relu", ["x"], ["y"])], ["a-b", "a_b", "a b"])
    assert len(set(output_shape(graph))) == 3


@pytest.mark.parametrize(
    ("shape", "wanted", "result"),
    [
        (["n", 12], [0, 3, 4], ["n", "3", "4"]), (["n", 12], [0, -1], ["n", "12"]), (["n", 12], [-1, 6], ["2*n", "6"]),
        (["n", "m", 4], [0, -1, 2], ["n", "2*m", "2"]), (["n", "m"], [-1], ["m*n"]), (["n", 1], [-1], ["n"]),
    ],
)  # fmt: skip
def test_reshape_solves_for_the_free_extent(shape: Any, wanted: Any, result: Any) -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    assert output_shape(imported([node], shape, {"s": np.array(wanted)})) == result


def test_shape_arithmetic_leaves_nothing_in_the_graph(random: np.random.Generator) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["s32"], to=TensorProto.INT32),
        helper.make_node("Slice", ["s32", "i0", "i1", "i0"], ["batch"]),
        helper.make_node("Slice", ["s32", "i1", "i2"], ["length"]),
        helper.make_node("Mul", ["batch", "length"], ["rows"]),
        helper.make_node("Div", ["rows", "two"], ["half"]),
        helper.make_node("Mul", ["half", "two"], ["again"]),
        helper.make_node("Concat", ["again", "minus"], ["shape32"], axis=0),
        helper.make_node("Cast", ["shape32"], ["shape"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants = {
        "i0": np.array([0]), "i1": np.array([1]), "i2": np.array([2]), "two": np.array([2], np.int32),
        "minus": np.array([-1], np.int32),
    }  # fmt: skip
    proto = model(nodes, {"x": (np.float32, ["n", 6, 2])}, ["y"], constants)
    graph = import_model(proto, check="own")
    assert [node.operator for node in graph.nodes] == ["reshape"]
    assert not graph.constants
    assert output_shape(graph) == ["6*n", "2"]
    x = random.standard_normal((3, 6, 2)).astype(np.float32)
    assert_close(run(graph, {"x": x}), [x.reshape(18, 2)])


def test_a_shape_can_be_data_too(random: np.random.Generator) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)]
    proto = model(nodes, {"x": (np.float32, ["n", "m"])}, ["y", "s"])
    graph = import_model(proto, check="own")
    x = random.standard_normal((3, 4)).astype(np.float32)
    assert_close(run(graph, {"x": x}), [np.array([3, 4], np.float32), np.array([3, 4])])


def test_expand_to_a_shape_where_minus_one_was_replaced(random: np.random.Generator) -> None:
    """Where(Equal(shape, -1), 1, shape): decided, for an extent is never negative."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Equal", ["s", "minus"], ["is"]),
        helper.make_node("Where", ["is", "ones", "s"], ["w"]), helper.make_node("Expand", ["c", "w"], ["y"]),
    ]  # fmt: skip
    constants = {"minus": np.array([-1, -1]), "ones": np.array([1, 1]), "c": np.float32(3)}
    graph = import_model(model(nodes, {"x": (np.float32, ["n", "m"])}, ["y"], constants), check="own")
    assert output_shape(graph) == ["n", "m"]
    x = random.standard_normal((2, 3)).astype(np.float32)
    assert_close(run(graph, {"x": x}), [np.full((2, 3), 3, np.float32)])


def test_shifted_slices_have_equal_shapes(random: np.random.Generator) -> None:
    nodes = [
        helper.make_node("Slice", ["x", "one", "end", "axis"], ["a"]),
        helper.make_node("Slice", ["x", "zero", "minus", "axis"], ["b"]), helper.make_node("Sub", ["a", "b"], ["y"]),
    ]  # fmt: skip
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "minus": np.array([-1]), "axis": np.array([1]),
        "end": np.array([2**63 - 1]),
    }  # fmt: skip
    graph = imported(nodes, ["n", "t"], constants)
    assert output_shape(graph) == ["n", "t - 1"]
    for length in (1, 2, 9):
        x = random.standard_normal((2, length)).astype(np.float32)
        assert_close(run(graph, {"x": x}), [x[:, 1:] - x[:, :-1]])


def test_bounds_come_from_what_operators_need() -> None:
    weight = np.zeros((1, 1, 5), np.float32)
    graph = imported([helper.make_node("Conv", ["x", "w"], ["y"], strides=[2])], ["n", 1, "t"], {"w": weight})
    assert Symbol("t", 5) in graph.symbols
    assert graph.values[graph.outputs[0]].tensor.shape[2] == (dim("t") - 5) // 2 + 1
    ends = {"s": np.array([0]), "e": np.array([10**9])}
    graph = imported([helper.make_node("Slice", ["x", "s", "e"], ["y"])], ["n"], ends)
    assert graph.symbols == (Symbol("n", 0, 10**9),)
    assert output_shape(graph) == ["n"]


def test_an_end_that_may_clamp_stays_a_minimum(random: np.random.Generator) -> None:
    constants = {"s": np.array([0]), "e": np.array([4])}
    graph = imported([helper.make_node("Slice", ["x", "s", "e"], ["y"])], ["n"], constants)
    for extent in (0, 3, 4, 9):
        x = random.standard_normal(extent).astype(np.float32)
        assert_close(run(graph, {"x": x}), [x[:4]])


def test_a_start_far_from_the_end_bounds_nothing_unless_shapes_need_it(random: np.random.Generator) -> None:
    constants = {"s": np.array([-20]), "e": np.array([2**62]), "a": np.array([1])}
    last = helper.make_node("Slice", ["x", "s", "e", "a"], ["l"])
    graph = imported([last, helper.make_node("Relu", ["l"], ["y"])], ["n", "t"], constants)
    for extent in (0, 3, 20, 25):
        x = random.standard_normal((2, extent)).astype(np.float32)
        assert_close(run(graph, {"x": x}), [np.maximum(x[:, -20:], 0)])
    # 20 numbers are added: there must be as many
    constants["p"] = np.ones((1, 20), np.float32)
    graph = imported([last, helper.make_node("Add", ["l", "p"], ["y"])], ["n", "t"], constants)
    assert output_shape(graph) == ["n", "20"]
    assert next(symbol for symbol in graph.symbols if symbol.name == "t").lower == 20


def test_free_dims_that_meet_are_one(random: np.random.Generator) -> None:
    proto = model(
        [helper.make_node("Add", ["x", "z"], ["s"]), helper.make_node("Concat", ["s", "x"], ["y"], axis=1)],
        {"x": (np.float32, ["n", 3]), "z": (np.float32, [None, 3])}, ["y"],
    )  # fmt: skip
    graph = import_model(proto, check="own")
    assert graph.inputs[0].tensor.shape == graph.inputs[1].tensor.shape
    assert len(graph.symbols) == 1
    x, z = (random.standard_normal((4, 3)).astype(np.float32) for _ in range(2))
    assert_close(run(graph, {"x": x, "z": z}), [np.concatenate([x + z, x], 1)])


def test_a_fixed_reshape_fixes_the_batch() -> None:
    graph = imported([helper.make_node("Reshape", ["x", "s"], ["y"])], ["n", 3, 4], {"s": np.array([2, 12])})
    assert graph.inputs[0].tensor.shape == (2, 3, 4)
    assert not graph.symbols


def test_given_shapes(random: np.random.Generator) -> None:
    inputs: dict[str, Any] = {"x": (np.float32, ["n", "k"]), "z": (np.float32, ["k", None])}
    proto = model([helper.make_node("MatMul", ["x", "z"], ["y"])], inputs, ["y"])
    graph = import_model(proto, {"x": (2, -1)}, check="own")
    assert output_shape(graph) == ["2", "z_1"]
    graph = import_model(proto, {"x": (-1, 5), "z": (5, 7)}, check="own")
    assert graph.inputs[0].tensor.shape == (dim("n"), 5)
    assert output_shape(graph) == ["n", "7"]
    for shapes in ({"q": (1,)}, {"x": (1,)}, {"x": (-2, 3)}, {"x": (1, 2), "z": (3, 4)}, {"x": (2**60, 1)}):
        assert codes_of(proto, shapes=shapes) == {1118}
    assert len(faults_of(proto, shapes={"q": (1,), "x": (1,)})) == 2
    alike: list[Any] = [[2, 5], np.array([2, 5]), (np.int32(2), 5)]
    for shape in alike:
        assert import_model(proto, {"x": shape}, check="own").inputs[0].tensor.shape == (2, 5)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((2.5, 3), "dimension 0 is 2.5"), ((None, 3), "dimension 0 is None"), ((2, True), "dimension 1 is True"),
        ("23", "it is '23'"), (5, "it is 5"), (None, "it is None"), ((2, "3"), "dimension 1 is '3'"), ({2: 3}, "it is"),
        ((np.float32(2), 3), "it must be an integer"), ((np.bool_(True), 3), "it must be an integer"),
    ],
)  # fmt: skip
def test_shapes_that_are_none(shape: Any, said: str) -> None:
    inputs: dict[str, Any] = {"x": (np.float32, ["n", "k"])}
    proto = model([helper.make_node("Relu", ["x"], ["y"])], inputs, ["y"])
    ((code, text),) = faults_of(proto, shapes={"x": shape})
    assert code == 1118
    assert said in text
    assert "shape of x" in text


@pytest.mark.parametrize("shapes", [5, [], (2, 3), "x", [("x", (2, 3))]])
def test_shapes_must_be_by_name(shapes: Any) -> None:
    with pytest.raises(UsageError) as caught:
        import_model(model([helper.make_node("Relu", ["x"], ["y"])], {"x": (np.float32, ["n"])}, ["y"]), shapes)
    assert caught.value.code == 1002
    assert "shapes" in str(caught.value)


def test_shapes_that_depend_on_data_are_refused_by_name() -> None:
    proto = model(
        [helper.make_node("Reshape", ["x", "s"], ["y"], name="to_data")],
        {"x": (np.float32, ["n"]), "s": (np.int64, [2])}, ["y"],
    )  # fmt: skip
    ((code, text),) = faults_of(proto)
    assert code == 1116
    assert "to_data" in text
    assert "'s'" in text


def test_range_and_fill_of_a_free_length(random: np.random.Generator) -> None:
    one = helper.make_tensor("v", TensorProto.INT64, [1], [1])
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=1), helper.make_node("Squeeze", ["s"], ["t"]),
        helper.make_node("Range", ["zero", "t", "two"], ["even"]),
        helper.make_node("ConstantOfShape", ["s"], ["ones"], value=one),
        helper.make_node("Tile", ["ones", "two1"], ["y"]),
    ]  # fmt: skip
    constants = {"zero": np.array(0), "two": np.array(2), "two1": np.array([2])}
    proto = model(nodes, {"x": (np.float32, ["n", "t"])}, ["even", "y"], constants)
    graph = import_model(proto, check="own")
    for length in (0, 1, 6, 7):
        x = random.standard_normal((1, length)).astype(np.float32)
        assert_close(run(graph, {"x": x}), [np.arange(0, length, 2), np.ones(2 * length, np.int64)])


def test_branches_decided_by_the_rank_are_put_in_place_others_run() -> None:
    def branch(name: str, operator: str) -> Any:
        node = helper.make_node(operator, ["x"], [f"{name}_out"])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(f"{name}_out", 1, None)])

    def whole(condition: list[Any]) -> Any:
        branches = {"then_branch": branch("a", "Neg"), "else_branch": branch("b", "Abs")}
        last = helper.make_node("If", ["c"], ["y"], name="fork", **branches)
        constants = {"two": np.array(2), "axis": np.array([0])}
        return model([*condition, last], {"x": (np.float32, ["n", 3])}, ["y"], constants)

    shape = helper.make_node("Shape", ["x"], ["s"])
    rank = [shape, helper.make_node("Size", ["s"], ["r"]), helper.make_node("Equal", ["r", "two"], ["c"])]
    x = np.array([[-1, 2, -3]], np.float32)
    assert_close(run(whole(rank), {"x": x}), [-x])
    extent = [helper.make_node("Gather", ["s", "axis"], ["b"]), helper.make_node("Equal", ["b", "two"], ["c"])]
    by_extent = whole([shape, *extent])
    assert_close(run(by_extent, {"x": x}), [np.abs(x)])
    assert_close(run(by_extent, {"x": np.vstack([x, x])}), [-np.vstack([x, x])])


def test_extents_that_are_called_alike_and_by_no_name_are_not_equal() -> None:
    """Exporters write "?" or "-1" for every extent that they do not know."""
    for placeholder in ("?", "-1", "*"):
        graph = imported([helper.make_node("Relu", ["x"], ["y"])], [placeholder, 3, placeholder])
        assert output_shape(graph) == ["x_0", "3", "x_2"]
    graph = imported([helper.make_node("Relu", ["x"], ["y"])], ["n", 3, "n"])
    assert output_shape(graph) == ["n", "3", "n"]
