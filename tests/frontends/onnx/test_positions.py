"""Positions: constant ones are checked at import, others where they run, each of a tuple on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import helper

from tests.frontends.onnx.models import assert_close, codes_of, faults_of, model, one_node, run
from tilework.dims import Symbol
from tilework.errors import RunError, TileworkError
from tilework.frontends.compile import compile as compile_model
from tilework.frontends.onnx.importer import import_model

OUTSIDE = ([[0, 5]], [[0, -6]], [[-5, 0]], [[1, -8]], [[100_000_000, 0]])
"""Tuples of which one position is outside a matrix of 4 x 5; flattened, most name an element of it."""
X = np.arange(20, dtype=np.float32).reshape(4, 5)


def gather(shape: Any, index: Any) -> Any:
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="the_node")
    return model([node], {"x": (np.float32, shape)}, ["y"], {"i": np.array(index)})


@pytest.mark.parametrize("index", [4, -5, 100_000_000, [4], [0, -5], [3, 100_000_000]])
def test_constants_outside_a_fixed_dimension(index: Any) -> None:
    ((code, text),) = faults_of(gather([4, 5], index))
    assert code == 1119
    assert "the_node" in text
    assert "from -4 to 3" in text


@pytest.mark.parametrize(("index", "least"), [(4, 5), (-5, 5), ([0, -7, 2], 7), ([6, -2], 7), ([[0]], 1)])
def test_constants_bound_a_free_dimension(index: Any, least: int) -> None:
    proto = gather(["n", "m", "k"], index)
    graph = import_model(proto, check="own")
    assert Symbol("n", least) in graph.symbols
    x = np.arange(least * 6, dtype=np.float32).reshape(least, 2, 3)
    assert_close(run(graph, {"x": x}), [x[np.array(index)]])
    with pytest.raises(TileworkError) as caught:
        compile_model(proto)(x[: least - 1])
    assert caught.value.code == 1707


def test_a_constant_into_a_sum_of_free_dims_is_checked_where_it_runs() -> None:
    nodes = [
        helper.make_node("Concat", ["x", "z"], ["c"], axis=0), helper.make_node("Gather", ["c", "i"], ["y"]),
        helper.make_node("Gather", ["c", "j"], ["w"]),
    ]  # fmt: skip
    inputs: Any = {"x": (np.float32, ["n"]), "z": (np.float32, ["m"])}
    proto = model(nodes, inputs, ["y", "w"], {"i": np.array([3, -4]), "j": np.array(-4)})
    running = compile_model(proto)
    x = np.arange(4, dtype=np.float32)
    got = running(x[:2], x[2:])
    np.testing.assert_array_equal(got[0], [3, 0])
    np.testing.assert_array_equal(got[1], 0)
    with pytest.raises(TileworkError) as caught:
        running(x[:2], x[3:])
    assert caught.value.code in (1707, 1801)


@pytest.mark.parametrize("operator", ["GatherElements", "ScatterElements"])
@pytest.mark.parametrize("index", [4, -5])
def test_elements_outside(operator: str, index: int) -> None:
    indices = np.array([[0, 3, -4, 1, index]])
    inputs = {"x": X} if operator == "GatherElements" else {"x": X, "u": np.ones((1, 5), np.float32)}
    proto = one_node(operator, inputs, {"i": indices}, order=["x", "i", "u"][: len(inputs) + 1])
    assert codes_of(proto) == {1119}
    inputs = {**inputs, "i": indices}
    proto = one_node(operator, inputs, order=["x", "i", "u"][: len(inputs)])
    with pytest.raises(RunError) as caught:
        compile_model(proto)(*inputs.values())
    assert caught.value.code == 1801


@pytest.mark.parametrize("tuples", OUTSIDE)
@pytest.mark.parametrize("operator", ["GatherND", "ScatterND"])
def test_each_position_of_a_constant_tuple(operator: str, tuples: Any) -> None:
    inputs = {"x": X} if operator == "GatherND" else {"x": X, "u": np.ones(1, np.float32)}
    proto = one_node(operator, inputs, {"i": np.array(tuples)}, order=["x", "i", "u"][: len(inputs) + 1])
    ((code, text),) = faults_of(proto)
    assert code == 1119
    assert "the_node" in text


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("operator", ["GatherND", "ScatterND"])
def test_each_position_of_a_tuple_that_is_an_input(operator: str, symbolic: bool) -> None:
    inputs = {"x": X, "i": np.array([[0, 0]])}
    if operator == "ScatterND":
        inputs["u"] = np.ones(1, np.float32)
    shapes: dict[str, Any] = {name: (array.dtype, list(array.shape)) for name, array in inputs.items()}
    shapes["x"] = (np.float32, ["n", "m"] if symbolic else [4, 5])
    proto = model([helper.make_node(operator, [*inputs], ["y"])], shapes, ["y"])
    running = compile_model(proto)
    for tuples in OUTSIDE:
        feeds = {**inputs, "i": np.array(tuples)}
        with pytest.raises(RunError) as caught:
            run(proto, feeds)
        assert caught.value.code == 1801
        with pytest.raises(RunError) as caught:
            running(*feeds.values())
        assert caught.value.code == 1801
    feeds = {**inputs, "i": np.array([[-4, -1]])}
    (got,) = running(*feeds.values())
    np.testing.assert_array_equal(got, run(proto, feeds)[0])
    assert got.reshape(-1)[4 if operator == "ScatterND" else 0] == (1 if operator == "ScatterND" else 4)


def test_batches_of_tuples_that_meet_are_one() -> None:
    inputs: Any = {"x": (np.float32, ["b", 3]), "i": (np.int64, ["c", 1])}
    proto = model([helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=1)], inputs, ["y"])
    x, i = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[0], [2], [-3], [1]])
    assert_close(run(proto, {"x": x, "i": i}), [x[np.arange(4), i[:, 0]]])
    assert codes_of(one_node("GatherND", {"x": X, "i": np.zeros((3, 2, 1), np.int64)}, batch_dims=1)) == {1119}
    updates = {"x": X, "i": np.zeros((3, 1), np.int64), "u": np.zeros((3, 4), np.float32)}
    assert codes_of(one_node("ScatterND", updates)) == {1119}
    assert codes_of(one_node("ScatterND", {**updates, "u": np.zeros(15, np.float32)})) == {1119}


@pytest.mark.parametrize("known", ["a range", "an extent"])
def test_positions_that_follow_from_shapes_are_checked_too(known: str) -> None:
    nodes = [helper.make_node("Shape", ["z"], ["s"]), helper.make_node("Squeeze", ["s"], ["d"])]
    if known == "a range":
        nodes += [
            helper.make_node("Range", ["zero", "d", "one"], ["r"]), helper.make_node("Gather", ["x", "r"], ["y"]),
        ]  # fmt: skip
    else:
        nodes += [helper.make_node("Sub", ["d", "one"], ["e"]), helper.make_node("Gather", ["x", "e"], ["y"])]
    inputs: Any = {"x": (np.float32, ["m", 3]), "z": (np.float32, ["n"])}
    running = compile_model(model(nodes, inputs, ["y"], {"zero": np.array(0), "one": np.array(1)}))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for extent in (1, 4):
        (got,) = running(x, np.zeros(extent, np.float32))
        np.testing.assert_array_equal(got, x[:extent] if known == "a range" else x[extent - 1])
    for extent in (5, 1000):
        with pytest.raises(RunError) as caught:
            running(x, np.zeros(extent, np.float32))
        assert caught.value.code == 1801


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_one_hot_deeper_than_the_type_of_its_indices(dtype: Any) -> None:
    i = np.array([0, 44, 100, -1, -3]).astype(dtype)
    proto = one_node("OneHot", {"i": i}, {"d": np.array(300), "v": np.array([0, 1], np.float32)})
    expected = (i.astype(np.int64) % 300)[:, None] == np.arange(300)
    assert_close(run(proto, {"i": i}), [expected.astype(np.float32)])


def test_the_position_of_the_largest_of_none() -> None:
    empty = np.zeros((3, 0), np.float32)
    ((code, text),) = faults_of(one_node("ArgMax", {"x": empty}, axis=1))
    assert code == 1119
    assert "the_node" in text
    (got,) = run(one_node("ArgMin", {"x": empty}, axis=0), {"x": empty})
    assert got.shape == (1, 0)
    free = model([helper.make_node("ArgMax", ["x"], ["y"], axis=1)], {"x": (np.float32, ["n", "m"])}, ["y"])
    running = compile_model(free)
    np.testing.assert_array_equal(running(np.array([[1, 3, 2]], np.float32))[0], [[1]])
    with pytest.raises(TileworkError) as caught:
        running(empty)
    assert caught.value.code == 1707
    assert_close(run(one_node("Hardmax", {"x": empty}, axis=1), {"x": empty}), [empty])


BIG = 1 << 61
"""As the place of an image or a row, an offset made of it is one of the first elements again, by overflow."""
IMAGES = np.arange(2 * 1 * 4 * 4, dtype=np.float32).reshape(2, 1, 4, 4)


def from_front(operator: str, number: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Operands and attributes of an operator whose positions count from the front; `number` is one of them."""
    rows = IMAGES.reshape(2, 4, 4)
    if operator.startswith("RoiAlign"):
        feeds = {"x": IMAGES, "r": np.array([[0, 0, 3, 3]], np.float32), "b": np.array([number], np.int64)}
        ratio = int(operator.endswith("evenly")) * 2
        return feeds, {"opset": 16, "output_height": 2, "output_width": 2, "sampling_ratio": ratio}
    if operator == "MaxRoiPool":
        return {"x": IMAGES, "r": np.array([[number, 0, 0, 3, 3]], np.float32)}, {"pooled_shape": [2, 2]}
    if operator == "ReverseSequence":
        return {"x": rows, "n": np.array([1, number], np.int64)}, {"batch_axis": 0, "time_axis": 1}
    if operator == "TensorScatter":
        return {"c": rows, "u": rows[:, :2], "w": np.array([0, number], np.int64)}, {"opset": 24}
    places = np.array([[[[0, 3], [5, number]]]], np.int64)
    return {"x": IMAGES[:1, :, :2, :2], "i": places}, {"kernel_shape": [2, 2], "strides": [2, 2]}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("operator", "inside", "outside"),
    [
        ("RoiAlign evenly", (0, 1), (-1, -2, 2, BIG, -BIG)),
        ("RoiAlign as needed", (0, 1), (-1, -2, 2, BIG, -BIG)),
        ("MaxRoiPool", (0, 1), (-1, -2, 2, 3e38, float("nan"))),
        ("ReverseSequence", (0, 4), (-1, 5, BIG, -BIG)),
        ("TensorScatter", (0, 2), (-1, 3, 4, BIG, -BIG)),
        ("MaxUnpool", (0, 15), (-1, -16, 16, BIG, -BIG)),
    ],
)
def test_positions_that_do_not_count_from_the_end(
    operator: str, inside: tuple[float, ...], outside: tuple[float, ...], symbolic: bool
) -> None:
    name = operator.split(maxsplit=1)[0]
    feeds, attributes = from_front(operator, 0)
    proto = one_node(name, feeds, symbolic=symbolic, **attributes)
    compiled = compile_model(proto)
    for number in (*inside, *outside):
        feeds, _ = from_front(operator, number)
        if number in inside:
            assert_close(run(proto, feeds), [np.asarray(compiled(*feeds.values())[0])])
            continue
        with pytest.raises(RunError) as caught:
            run(proto, feeds)
        assert caught.value.code == 1801
        with pytest.raises(RunError) as caught:
            compiled(*feeds.values())
        assert caught.value.code == 1801
        assert name in str(caught.value)


MADE = {
    "slice": ("r = Slice(x, one, four)", 3), "every second": ("r = Slice(x, one, six, zero, two)", 3),
    "spread": ("r = Expand(s, eight)", 8), "repeated": ("r = Tile(x, two)", 12), "padded": ("r = Pad(x, ends)", 8),
    "reversed": ("r = Slice(x, six, before, zero, back)", 6), "joined": ("r = Concat<axis=0>(x, x)", 12),
    "counted": ("q = Range(none, n, step) r = Cast<to=1>(q)", 5), "selected": ("r = Where(c, s, x)", 6),
    "negated": ("r = Neg(x)", 6),
}  # fmt: skip
HELD = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] six = {6}, "
    "int64[1] eight = {8}, int64[1] back = {-1}, int64[1] before = {-100}, int64[2] ends = {1, 1}, "
    "int64 none = {0}, int64 step = {1}, bool[1] c = {1}"
)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("free", ["6", "a"])
def test_positions_are_checked_in_what_is_computed_where_it_is_read(name: str, free: str) -> None:
    """A part of a tensor does not read on in the whole, and a spread number is not read anywhere."""
    made, size = MADE[name]
    text = f"g (float[{free}] x, float s, int64 n, int64[b] i) => (float[b] y) <{HELD}> {{ {made} y = Gather(r, i) }}"
    executable = compile_model(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]>\n{text}'))
    x, s, n = np.arange(6, dtype=np.float32) + 1, np.array(9, np.float32), np.array(5)
    whole = executable(x, s, n, np.arange(size))[0]
    np.testing.assert_array_equal(executable(x, s, n, np.arange(-size, 0))[0], whole)
    for wrong in (size, -size - 1, size + 1, -size - 2, 2**40, -(2**63)):
        with pytest.raises(RunError, match="TW1801"):
            executable(x, s, n, np.array([0, wrong]))
