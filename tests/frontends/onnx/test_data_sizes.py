# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
"""Operators whose results are as large as data decide, and those that sort, against numpy and ONNX's evaluator."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import FrontendError, RunError
from tilework.runtime.context import Context, ContextOptions
from tilework.runtime.executable import Executable

I64, F, B = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
SHAPES = [(), (0,), (1,), (17,), (3, 4), (2, 0, 3), (2, 3, 5), (7, 1, 11)]


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def free(shape: tuple[int, ...], prefix: str = "d") -> tuple[str, ...]:
    return tuple(f"{prefix}{place}" for place in range(len(shape)))


def integers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Small integers with zeros, negative zeros, NaN and infinities among them where the type has them."""
    generator = np.random.default_rng([seed, *shape])
    found = generator.integers(0 if np.dtype(dtype).kind in "ub" else -3, 3, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        for number in (-0.0, np.nan, np.inf, -np.inf):
            found = np.where(generator.random(shape) < 0.1, number, found).astype(dtype)
    return found


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_nonzero(shape: tuple[int, ...], symbolic: bool) -> None:
    dtype = [np.float32, np.bool_, np.int64, np.uint8][len(shape)]
    x = integers(shape, dtype)
    declared = free(shape) if symbolic else shape
    executable = tilework.compile(model([node("NonZero", "x", "y")], {"x": (dtype, declared)}, ["y"]), checked=True)
    wanted = np.array(np.nonzero(x)) if shape else np.zeros((0, int(bool(x))), np.int64)
    for _ in range(2):
        (found,) = executable(x)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, wanted.reshape(found.shape))


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_compress(axis: int | None) -> None:
    x = integers((3, 4), np.float32)
    attributes = {} if axis is None else {"axis": axis}
    made = model(
        [node("Compress", "x c", "y", **attributes)], {"x": (np.float32, ("a", 4)), "c": (np.bool_, ("n",))}, ["y"]
    )
    executable = tilework.compile(made)
    for length in range(4):
        condition = np.random.default_rng(length).random(length) < 0.6
        np.testing.assert_array_equal(executable(x, condition)[0], np.compress(condition, x, axis))


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("declared", [("a", "b"), (2, "b"), (0, 3)])
def test_of_a_condition_that_is_too_long_the_rest_is_dropped(declared: tuple[Any, Any], checked: bool) -> None:
    for axis, conditions in ((0, (B, ("n",))), (1, (B, (7,))), (None, (B, ("n",)))):
        attributes = {} if axis is None else {"axis": axis}
        made = model([node("Compress", "x c", "y", **attributes)], {"x": (F, declared), "c": conditions}, ["y"])
        executable = tilework.compile(made, checked=checked)
        for shape in ((2, 3), (2, 0), (0, 3), (2, 1)):
            if any(isinstance(extent, int) and extent != e for extent, e in zip(declared, shape, strict=True)):
                continue
            x = integers(shape, np.float32)
            for condition in (np.ones(7, np.bool_), np.arange(7) % 2 == 0, np.zeros(7, np.bool_)):
                within = condition[: x.size if axis is None else shape[axis]]
                np.testing.assert_array_equal(executable(x, condition)[0], np.compress(within, x, axis))


def test_sizes_that_are_measured_go_on() -> None:
    """What is chosen is computed with, reduced, joined, and its size is a number of the model's own."""
    nodes = [
        node("NonZero", "x", "at"), node("Transpose", "at", "rows"), node("GatherND", "x rows", "values"),
        node("Mul", "values values", "squares"), node("Concat", "squares values", "both", axis=0),
        node("ReduceSum", "both", "total", keepdims=0), node("Shape", "values", "size"),
        node("Expand", "one size", "ones"), node("Sub", "values ones", "less"),
        node("Unsqueeze", "less zero", "row"), node("MatMul", "row column", "product"),
        node("Unsqueeze", "values last", "column"),
    ]  # fmt: skip
    nodes.insert(10, nodes.pop())
    constants = {"one": np.float32(1), "zero": np.array([0], np.int64), "last": np.array([1], np.int64)}
    names = ["both", "total", "size", "less", "product"]
    made = model(nodes, {"x": (np.float32, ("a", "b"))}, names, constants)
    for shape in ((3, 4), (1, 1), (0, 5), (20, 30)):
        x = np.random.default_rng(shape[0]).integers(-2, 3, shape).astype(np.float32)
        values = x[np.nonzero(x)]
        both, total, size, less, product = tilework.compile(made)(x)
        np.testing.assert_array_equal(both, np.concatenate([values**2, values]))
        assert (total, list(size)) == (both.sum(), [len(values)])
        np.testing.assert_array_equal(less, values - 1)
        np.testing.assert_array_equal(product, [[float((values - 1) @ values)]])


def test_sizes_that_must_be_equal() -> None:
    nodes = [node("Compress", "x p", "a"), node("Compress", "x q", "b"), node("Add", "a b", "y", name="sum of both")]
    made = model(nodes, {"x": (F, ("n",)), "p": (B, ("n",)), "q": (B, ("n",))}, ["y"])
    executable = tilework.compile(made)
    x = np.arange(4, dtype=np.float32)
    one, other = np.array([1, 0, 1, 0], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    np.testing.assert_array_equal(executable(x, one, other)[0], [1, 5])
    with pytest.raises(RunError, match="sum of both") as caught:
        executable(x, one, ~other | other)
    assert caught.value.code == 1803


NUMBER = [
    node("ReduceMax", "x", "most", keepdims=0), node("Cast", "most", "k", to=I64), node("Reshape", "k one", "ks"),
]  # fmt: skip
"""The largest element, as float, integer and list."""


@pytest.mark.parametrize(
    "nodes",
    [
        [node("ConstantOfShape", "ks", "y")],
        [node("Range", "zero k two", "y")],
        [node("Range", "k zero back", "y")],
        [node("Range", "half most step", "y")],
        [node("Slice", "v first ks one", "y")],
        [node("Slice", "v ks first one backs", "y")],
        [node("Concat", "ks one", "shape", axis=0), node("Expand", "most shape", "y")],
        [node("Tile", "x ks", "y")],
    ],
)
def test_shapes_ranges_and_slices_that_data_decide(nodes: list[Any]) -> None:
    constants = {
        "one": np.array([1], np.int64), "zero": np.array(0, np.int64), "two": np.array(2, np.int64),
        "back": np.array(-2, np.int64), "backs": np.array([-2], np.int64), "half": np.float32(0.5),
        "step": np.float32(0.75), "first": np.array([0], np.int64), "v": np.arange(12, dtype=np.float32).reshape(3, 4),
    }  # fmt: skip
    used = {name for one in (*NUMBER, *nodes) for name in one.input}
    made = model([*NUMBER, *nodes], {"x": (F, ("n",))}, ["y"], {n: a for n, a in constants.items() if n in used})
    executable = tilework.compile(made)
    for x in ([1, 3, 2], [0, 0], [2], [9], *([[-1], [-7]] if nodes[0].op_type in ("Range", "Slice") else [])):
        given = np.array(x, np.float32)
        every: Any = ReferenceEvaluator(made).run(None, {"x": given})
        wanted = every[0]
        (found,) = executable(given)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    assert executable.plan.symbols if isinstance(executable, Executable) else False


# -- sorting -----------------------------------------------------------------------------------------------------------
def ranked(x: Any, axis: int, largest: bool) -> Any:
    """Positions in order, equal ones as they stand, NaN the largest."""
    rows = np.moveaxis(x, axis, -1)
    found = np.empty(rows.shape, np.int64)
    for at in np.ndindex(*rows.shape[:-1]):
        numbers = [float("nan") if v != v else v for v in rows[at].tolist()]
        keys = [(int(v != v), 0 if v != v else v) for v in numbers]
        sign = -1 if largest else 1
        found[at] = sorted(range(len(keys)), key=lambda i: (sign * keys[i][0], sign * keys[i][1], i))
    return np.moveaxis(found, -1, axis)


@pytest.mark.parametrize(("dtype", "largest"), [
    (np.float32, 1), (np.float32, 0), (np.float64, 1), (np.float16, 0), (np.int64, 1), (np.uint64, 0), (np.int32, 1),
])  # fmt: skip
@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [
        ((1,), 0, 1),
        ((7,), 0, 7),
        ((5, 40), 1, 5),
        ((40, 3), 0, 20),
        ((3, 301), -1, 30),
        ((2, 300), 1, 300),
        ((9,), 0, 0),
    ],
)
def test_top_k(shape: tuple[int, ...], axis: int, count: int, dtype: Any, largest: int) -> None:
    x = integers(shape, dtype)
    if dtype in (np.uint64, np.int32):  # the smallest and largest numbers
        x = np.where(x == 2, np.iinfo(dtype).max, np.where(x == 1, np.iinfo(dtype).min, x)).astype(dtype)
    wanted = np.take(ranked(x, axis, bool(largest)), range(count), axis)
    ways = [(shape, False), (free(shape), False), (free(shape), True)]
    for declared, given in ways if dtype == np.float32 else ways[1:2]:
        inputs: dict[str, Any] = {"x": (dtype, declared)} | ({"k": (np.int64, (1,))} if given else {})
        made = model(
            [node("TopK", "x k", "v i", axis=axis, largest=largest)], inputs, ["v", "i"],
            {} if given else {"k": np.array([count], np.int64)},
        )  # fmt: skip
        executable = tilework.compile(made)
        values, places = executable(x, np.array([count])) if given else executable(x)
        np.testing.assert_array_equal(places, wanted)
        np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis))


def test_top_k_of_older_versions_and_of_a_size_that_the_model_computes() -> None:
    x = integers((3, 6), np.float32)
    made = model([node("TopK", "x", "v i", k=2)], {"x": (F, ("a", 6))}, ["v", "i"], opset=9)
    np.testing.assert_array_equal(tilework.compile(made)(x)[1], ranked(x, 1, True)[:, :2])
    nodes = [
        node("ReduceMax", "x", "m", keepdims=0), node("Cast", "m", "k", to=I64), node("Reshape", "k one", "ks"),
        node("TopK", "x ks", "v i", axis=0),
    ]  # fmt: skip
    made = model(nodes, {"x": (F, ("a",))}, ["v", "i"], {"one": np.array([1], np.int64)})
    executable = tilework.compile(made)
    for x in (np.array([1, 3, 2, 0], np.float32), np.array([0, -1], np.float32)):
        most = int(x.max())
        np.testing.assert_array_equal(executable(x)[1], ranked(x, 0, True)[:most])
    with pytest.raises(RunError, match="TopK") as caught:
        executable(np.array([5], np.float32))
    assert caught.value.code == 1803
    with pytest.raises(RunError) as caught:
        executable(np.array([-5], np.float32))
    assert caught.value.code == 1424


def test_k_that_never_fits() -> None:
    with pytest.raises(FrontendError, match="k is 7"):
        tilework.compile(
            model([node("TopK", "x k", "v i")], {"x": (F, (2, 6))}, ["v", "i"], {"k": np.array([7], np.int64)})
        )


@pytest.mark.parametrize(("dtype", "ordered"), [(np.float32, 1), (np.float32, 0), (np.int64, 1)])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((0,), None), ((1,), None), ((50,), None), ((6, 5), None), ((300,), None), ((6, 2), 0), ((2, 9), 1), ((4, 0), 0),
     ((0, 3), 0), ((5, 2, 2), -2), ((290, 2), 0)],
)  # fmt: skip
def test_unique(shape: tuple[int, ...], axis: int | None, dtype: Any, ordered: int) -> None:
    x = np.random.default_rng(len(shape)).integers(0, 3, shape).astype(dtype)
    if axis is None and np.dtype(dtype).kind == "f":
        x = integers(shape, dtype)
    attributes: dict[str, Any] = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    names = ["y", "first", "inverse", "counts"]
    made = model([node("Unique", "x", " ".join(names), **attributes)], {"x": (dtype, free(shape))}, names)
    found, first, inverse, counts = tilework.compile(made, checked=len(shape) > 1)(x)
    if not x.shape[axis or 0]:
        assert (len(first), len(inverse), len(counts), found.size) == (0, 0, 0, 0)
        return
    if x.size:
        wanted = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    else:
        wanted = (x[:1], np.array([0]), np.zeros(len(x), np.int64), np.array([len(x)]))
    order = np.arange(len(wanted[1])) if ordered else np.argsort(wanted[1], kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    np.testing.assert_array_equal(found, np.take(wanted[0], order, axis or 0))
    np.testing.assert_array_equal(first, wanted[1][order])
    np.testing.assert_array_equal(inverse, back[wanted[2].reshape(-1)])
    np.testing.assert_array_equal(counts, wanted[3][order])


# -- loops -------------------------------------------------------------------------------------------------------------
def info(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def collecting(trips: int | None, growing: bool) -> ModelProto:
    """Counts down from n; rows are what is left; with `growing` a vector gets each of them too."""
    nodes = [
        node("Sub", "v one", "less"), node("Greater", "less zero", "go_out"), node("Mul", "less less", "row"),
        *([node("Concat", "list less", "longer", axis=0)] if growing else [node("Add", "list less", "longer")]),
    ]  # fmt: skip
    body = helper.make_graph(
        nodes, "body", [info("i", I64), info("go", B), info("v", F, 1), info("list", F, None)],
        [info("go_out", B), info("less", F, 1), info("longer", F, None), info("row", F, 1)],
    )  # fmt: skip
    constants: dict[str, Any] = {
        "one": np.ones(1, np.float32),
        "zero": np.zeros(1, np.float32),
        "start": np.zeros(1, np.float32),
    }
    if trips is not None:
        constants["most"] = np.array(trips, np.int64)
    loop = helper.make_node(
        "Loop", ["most" if trips is not None else "", "", "n", "start"], ["last", "all", "rows"], body=body
    )
    return model([loop], {"n": (F, (1,))}, ["last", "all", "rows"], constants)


@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("trips", [None, 0, 3, 2**62])
def test_loops_that_collect_until_data_end_them(trips: int | None, growing: bool) -> None:
    executable = tilework.compile(collecting(trips, growing))
    for start in (1, 2, 50, 300):
        most = start if trips is None else min(trips, start)
        left = [float(start - 1 - t) for t in range(most)]
        last, everything, rows = executable(np.array([start], np.float32))
        assert last[0] == (left[-1] if left else start)
        np.testing.assert_array_equal(everything, [0, *left] if growing else [sum(left)])
        np.testing.assert_array_equal(rows, np.array(left, np.float32).reshape(-1, 1) ** 2)


def test_a_counted_loop_whose_state_grows() -> None:
    body = helper.make_graph(
        [node("Identity", "go", "go_out"), node("Concat", "v v", "twice", axis=0)], "body",
        [info("i", I64), info("go", B), info("v", F, None)], [info("go_out", B), info("twice", F, None)],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["five", "", "x"], ["y"], body=body)
    made = model([loop], {"x": (F, ("n",))}, ["y"], {"five": np.array(5, np.int64)})
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(tilework.compile(made)(x)[0], np.tile(x, 32))


def test_a_loop_inside_a_loop_and_choices_inside_both() -> None:
    """Every trip measures anew: sizes go up and down."""
    inner = helper.make_graph(
        [node("Greater", "w nought", "picks"), node("Compress", "w picks", "some"), node("Neg", "w", "w_out"),
         node("ReduceSum", "some", "row2", keepdims=0), node("ReduceMax", "w", "top", keepdims=0),
         node("Greater", "top nought", "go2_out")],
        "inner", [info("j", I64), info("go2", B), info("w", F, None)],
        [info("go2_out", B), info("w_out", F, None), info("row2", F)],
    )  # fmt: skip
    outer = helper.make_graph(
        [helper.make_node("Loop", ["three", "", "v"], ["w_last", "rows2"], body=inner),
         node("ReduceSum", "rows2", "row", keepdims=0), node("Sub", "v unit", "v_out"),
         node("ReduceMax", "v_out", "highest", keepdims=0), node("Greater", "highest nought", "go_out")],
        "outer", [info("i", I64), info("go", B), info("v", F, None)],
        [info("go_out", B), info("v_out", F, None), info("row", F)],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["", "", "x"], ["y", "rows"], body=outer)
    constants = {"three": np.array(3, np.int64), "nought": np.float32(0), "unit": np.float32(1)}
    made = model([loop], {"x": (F, ("n",))}, ["y", "rows"], constants)
    x = np.array([3, -2, 5, 1], np.float32)
    wanted_rows: list[float] = []
    v = x
    while True:
        total, w, going = 0.0, v, True
        for _ in range(3):
            if not going:
                break
            total += w[w > 0].sum()
            going = bool(w.max() > 0)
            w = -w
        wanted_rows.append(total)
        v = v - 1
        if not v.max() > 0:
            break
    for _ in range(2):
        found = tilework.compile(made)(x)
        np.testing.assert_array_equal(found[0], v)
        np.testing.assert_array_equal(found[1], wanted_rows)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_2_to_the_62_trips_are_interrupted() -> None:
    body = helper.make_graph(
        [node("Identity", "go", "go_out"), node("Neg", "v", "v_out")], "body",
        [info("i", I64), info("go", B), info("v", F, None)], [info("go_out", B), info("v_out", F, None)],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["most", "on", "x"], ["y"], body=body)
    made = model([loop], {"x": (F, ("n",)), "on": (B, ())}, ["y"], {"most": np.array(2**62, np.int64)})
    executable = tilework.compile(made)
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(executable(x, np.array(False))[0], x)

    class Enough(Exception):  # noqa: N818
        pass

    def stop(*_: Any) -> None:
        raise Enough

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Enough):
            executable(x, np.array(True))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(executable(x, np.array(False))[0], x)


def test_results_are_the_same_with_any_number_of_threads() -> None:
    nodes = [
        node("NonZero", "x", "at"),
        node("Unique", "x", "u first inverse counts"),
        node("TopK", "x k", "v i", axis=0),
    ]
    names = ["at", "u", "first", "inverse", "counts", "v", "i"]
    made = model(nodes, {"x": (F, ("n",))}, names, {"k": np.array([40], np.int64)})
    x = integers((5000,), np.float32)
    results: set[bytes] = set()
    for threads in (1, 2, 3, 8):
        with Context(ContextOptions(threads=threads)) as context:
            found = tilework.compile(made, context=context)(x)
            results.add(b"".join(array.tobytes() for array in found))
    assert len(results) == 1


def test_the_numbers_of_an_initialiser_are_found_at_import() -> None:
    made = model(
        [node("NonZero", "c", "y"), node("Add", "x c", "z")], {"x": (F, (4,))}, ["y", "z"],
        {"c": np.array([0, 1, 0, 2], np.float32)},
    )  # fmt: skip
    np.testing.assert_array_equal(tilework.compile(made)(np.ones(4, np.float32))[0], [[1, 3]])
