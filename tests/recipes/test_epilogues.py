"""Products with what follows them, element by element: one region, one pass, where the code stays short."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilework
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.frontends.compile import load_graph
from tilework.loops.program import statements
from tilework.runtime.context import ContextOptions

Array = np.ndarray[Any, np.dtype[Any]]
Nodes = list[onnx.NodeProto]
node = helper.make_node


def model(
    nodes: Nodes,
    inputs: Mapping[str, tuple[int | str, ...]],
    constants: Mapping[str, Array],
    outputs: tuple[str, ...] = ("y",),
) -> onnx.ModelProto:
    """A model in float32; shapes of outputs are inferred."""
    graph = helper.make_graph(
        nodes, "epilogue",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def exact(given: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """What the reference evaluator gives for the same model in float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(given)
    for tensor in wide.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    evaluator: Any = ReferenceEvaluator(wide)
    return list(evaluator.run(None, {name: array.astype(np.float64) for name, array in inputs.items()}))


def regions(given: onnx.ModelProto) -> list[tuple[str, ...]]:
    """The operators of each region."""
    kernels = lower_graph(load_graph(given), CompileOptions()).kernels
    return [kernel.region.operators for kernel in kernels]


def run(given: onnx.ModelProto, inputs: Mapping[str, Array], threads: int = 1, **options: Any) -> list[Array]:
    with tilework.Context(ContextOptions(threads=threads)) as context:
        return [np.array(value) for value in tilework.compile(given, context=context, **options)(**inputs)]


def integers(random: np.random.Generator, *shape: int) -> Array:
    """Small integers: sums of their products are exact in any order."""
    return random.integers(-3, 4, shape).astype(np.float32)


TAILS: dict[str, Callable[[str, Array], tuple[Nodes, dict[str, Array]]]] = {
    "bias": lambda t, b: ([node("Add", [t, "b"], ["y"])], {"b": b}),
    "bias and relu": lambda t, b: ([node("Add", [t, "b"], ["u"]), node("Relu", ["u"], ["y"])], {"b": b}),
    "scale, shift and clip": lambda t, b: (
        [node("Mul", [t, "s"], ["u"]), node("Add", ["u", "b"], ["v"]), node("Clip", ["v", "low", "high"], ["y"])],
        {"b": b, "s": np.array(0.5), "low": np.array(-4.0), "high": np.array(6.0)},
    ),
    "two uses": lambda t, b: (
        [node("Add", [t, "b"], ["u"]), node("HardSigmoid", ["u"], ["v"]), node("Mul", ["u", "v"], ["y"])],
        {"b": b},
    ),
    "hard swish": lambda t, b: (
        [
            node("Add", [t, "b"], ["u"]),
            node("Add", ["u", "three"], ["v"]),
            node("Clip", ["v", "low", "high"], ["w1"]),
            node("Mul", ["u", "w1"], ["p"]),
            node("Div", ["p", "six"], ["y"]),
        ],
        {"b": b, "three": np.array(3.0), "low": np.array(0.0), "high": np.array(6.0), "six": np.array(6.0)},
    ),
    "a long function": lambda t, b: ([node("Add", [t, "b"], ["u"]), node("Erf", ["u"], ["y"])], {"b": b}),
}


@pytest.mark.parametrize("tail", sorted(TAILS))
@pytest.mark.parametrize(
    "shape", [(1, 7, 5), (13, 33, 47), (128, 64, 96), (5, 300, 16), (17, 8, 5), (7, 8, 33), (5, 8, 17), (24, 3, 3)]
)
def test_matrix_products(shape: tuple[int, int, int], tail: str) -> None:
    m, k, n = shape
    random = np.random.default_rng(m)
    nodes, constants = TAILS[tail]("t", integers(random, n))
    w = integers(random, k, n)
    given = model([node("MatMul", ["x", "w"], ["t"]), *nodes], {"x": (m, k)}, {**constants, "w": w})
    inputs = {"x": integers(random, m, k)}
    for level in ("default", "strict"):
        for found, expected in zip(run(given, inputs, numerics=level), exact(given, inputs), strict=True):
            np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-6)
    assert len(regions(given)) == 1


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((1, 5, 9, 17), (12, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "1x1": ((2, 16, 8, 8), (24, 16, 1, 1), {}),
    "stride 2": ((1, 3, 15, 14), (8, 3, 5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}),
    "groups": ((1, 8, 6, 7), (8, 2, 3, 3), {"group": 4}),
    "depthwise": ((1, 24, 14, 14), (24, 1, 3, 3), {"group": 24, "pads": [1, 1, 1, 1]}),
    "dilated": ((1, 4, 16, 16), (16, 4, 3, 3), {"dilations": [2, 2]}),
    "one dimension": ((3, 6, 50), (10, 6, 4), {}),
}


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("name", sorted(CONVOLUTIONS))
def test_convolutions(name: str, residual: bool) -> None:
    shape, weights, attributes = CONVOLUTIONS[name]
    random = np.random.default_rng(len(name))
    nodes = [node("Conv", ["x", "w", "b"], ["t"], **attributes), node("Relu", ["t"], ["u" if residual else "y"])]
    constants = {"w": integers(random, *weights), "b": integers(random, weights[0])}
    inputs = {"x": integers(random, *shape)}
    extents: dict[str, tuple[int | str, ...]] = {"x": shape}
    if residual:
        small = model([*nodes[:1], node("Relu", ["t"], ["y"])], extents, constants)
        result = exact(small, inputs)[0].shape
        nodes.append(node("Add", ["u", "r"], ["y"]))
        inputs["r"], extents["r"] = integers(random, *result), result
    given = model(nodes, extents, constants)
    found = run(given, inputs, threads=2)
    np.testing.assert_array_equal(found[0], exact(given, inputs)[0])
    assert len(regions(given)) == 1


def test_a_free_batch() -> None:
    random = np.random.default_rng(3)
    constants = {"w": integers(random, 20, 30), "b": integers(random, 30)}
    nodes = [node("MatMul", ["x", "w"], ["t"]), node("Add", ["t", "b"], ["u"]), node("Relu", ["u"], ["y"])]
    given = model(nodes, {"x": ("n", 20)}, constants)
    executable = tilework.compile(given)
    for rows in (0, 1, 2, 5, 6, 7, 64, 129):
        x = integers(random, rows, 20)
        np.testing.assert_array_equal(executable(x)[0], np.maximum(x @ constants["w"] + constants["b"], 0))


def stored(given: onnx.ModelProto) -> int:
    """Statements of all kernels that write a whole array in memory."""
    count = 0
    for kernel in lower_graph(load_graph(given), CompileOptions()).kernels:
        program = kernel.candidate.schedule().program
        names = {s.target.buffer for s in statements(program.body)}
        count += sum(program.buffers[name].scope == "global" for name in names)
    return count


def test_short_tails_are_one_pass_and_long_ones_are_not() -> None:
    random = np.random.default_rng(1)
    counts: dict[str, int] = {}
    for tail, make in TAILS.items():
        nodes, constants = make("t", integers(random, 96))
        constants["w"] = integers(random, 64, 96)
        counts[tail] = stored(model([node("MatMul", ["x", "w"], ["t"]), *nodes], {"x": (120, 64)}, constants))
    assert counts.pop("a long function") == 2
    assert set(counts.values()) == {1}


def test_what_does_not_join() -> None:
    random = np.random.default_rng(2)
    constants = {"w": integers(random, 8, 8), "v": integers(random, 8, 8)}
    first = node("MatMul", ["x", "w"], ["t"])
    both = model([first, node("Relu", ["t"], ["y"])], {"x": (8, 8)}, constants, ("y", "t"))
    assert len(regions(both)) == 2, "the product's own results are wanted too"
    two = model([first, node("MatMul", ["x", "v"], ["u"]), node("Add", ["t", "u"], ["y"])], {"x": (8, 8)}, constants)
    assert len(regions(two)) == 2, "a region has one product"
    turned = model([first, node("Transpose", ["t"], ["u"]), node("Relu", ["u"], ["y"])], {"x": (8, 8)}, constants)
    wider = model([first, node("Add", ["t", "z"], ["y"])], {"x": (1, 8), "z": (5, 8)}, constants)
    for given, inputs in (
        (both, {"x": integers(random, 8, 8)}),
        (two, {"x": integers(random, 8, 8)}),
        (turned, {"x": integers(random, 8, 8)}),
        (wider, {"x": integers(random, 1, 8), "z": integers(random, 5, 8)}),
    ):
        for found, expected in zip(run(given, inputs), exact(given, inputs), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_what_a_product_reads_is_computed_once() -> None:
    random = np.random.default_rng(6)
    constants = {"w": integers(random, 8, 8)}
    nodes = [node("Relu", ["x"], ["r"]), node("MatMul", ["r", "w"], ["t"]), node("Add", ["t", "r"], ["y"])]
    given = model(nodes, {"x": (8, 8)}, constants)
    assert regions(given) == [("maximum",), ("dot_general", "add")]
    inputs = {"x": integers(random, 8, 8)}
    np.testing.assert_array_equal(run(given, inputs)[0], exact(given, inputs)[0])
    nodes = [node("Transpose", ["x"], ["r"]), node("MatMul", ["r", "w"], ["t"]), node("Relu", ["t"], ["y"])]
    given = model(nodes, {"x": (8, 8)}, constants)
    assert len(regions(given)) == 1, "a move is only another index"
    np.testing.assert_array_equal(run(given, inputs)[0], exact(given, inputs)[0])


def test_special_values() -> None:
    random = np.random.default_rng(4)
    w, b = integers(random, 16, 40), integers(random, 40)
    x = integers(random, 9, 16)
    x[1, 2], x[2, 3], x[3, 4] = np.nan, np.inf, -np.inf
    nodes = [node("MatMul", ["x", "w"], ["t"]), node("Add", ["t", "b"], ["u"]), node("Relu", ["u"], ["y"])]
    with np.errstate(invalid="ignore"):
        expected = np.maximum(x.astype(np.float64) @ w + b, 0)
    np.testing.assert_array_equal(run(model(nodes, {"x": (9, 16)}, {"w": w, "b": b}), {"x": x})[0], expected)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_same_bits_for_any_number_of_threads(threads: int) -> None:
    random = np.random.default_rng(5)
    constants = {"w": random.standard_normal((200, 130)), "b": random.standard_normal(130)}
    nodes = [node("MatMul", ["x", "w"], ["t"]), node("Add", ["t", "b"], ["u"]), node("Relu", ["u"], ["y"])]
    given = model(nodes, {"x": (150, 200)}, constants)
    inputs = {"x": random.standard_normal((150, 200), np.float32)}
    assert run(given, inputs)[0].tobytes() == run(given, inputs, threads)[0].tobytes()
