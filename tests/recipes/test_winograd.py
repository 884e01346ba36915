"""Convolutions of 3x3 taps by Winograd's algorithm: where it is chosen, and that it computes the convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilework
from tilework import dtypes
from tilework.algorithms.convolution import convolution_of
from tilework.algorithms.winograd import transformed, winograd
from tilework.candidates.region import region_of
from tilework.codegen.cpu.kernel import emit_kernel
from tilework.compiler.compile import lower_graph
from tilework.compiler.options import CompileOptions
from tilework.frontends.compile import load_graph
from tilework.graph.graph import Graph
from tilework.loops.interpret import interpret
from tilework.loops.verify import verify
from tilework.machine.finder import machine
from tilework.numerics import Level, numerics
from tilework.ops.builder import GraphBuilder
from tilework.recipes.cpu.winograd import block_of, scheduled
from tilework.runtime.context import ContextOptions

Array = np.ndarray[Any, np.dtype[Any]]
WINOGRAD = "Winograd F(2x2, 3x3)"
TAILS = ("nothing", "bias", "relu", "residual")


def model(
    weights: Array, shape: Sequence[int | str], pads: Sequence[int], tail: str = "nothing", **attributes: Any
) -> onnx.ModelProto:
    """A convolution from `x` to `y`, with what is computed from its elements; a residual is an input `r`."""
    kind = helper.np_dtype_to_tensor_dtype(weights.dtype)
    held = [numpy_helper.from_array(weights, "w")]
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    names = ["x", "w"]
    if tail != "nothing":
        names.append("b")
        held.append(numpy_helper.from_array(bias(weights), "b"))
    nodes = [helper.make_node("Conv", names, ["c"], pads=list(pads), **attributes)]
    last = "c"
    if tail == "residual":
        inputs.append(helper.make_tensor_value_info("r", kind, [shape[0], weights.shape[0], None, None]))
        nodes.append(helper.make_node("Add", ["c", "r"], ["d"]))
        last = "d"
    if tail in ("relu", "residual"):
        nodes.append(helper.make_node("Relu", [last], ["e"]))
        last = "e"
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", kind, None)], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def bias(weights: Array) -> Array:
    """One for each filter, always the same."""
    return drawn(np.random.default_rng(1), weights.shape[0], dtype=weights.dtype)


def expected(x: Array, weights: Array, pads: Sequence[int], tail: str = "nothing", r: Array | None = None) -> Array:
    """The convolution in float64, tap by tap."""
    top, left, bottom, right = pads
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    high, across = wide.shape[2] - 2, wide.shape[3] - 2
    total: Array = np.zeros((x.shape[0], weights.shape[0], high, across))
    for i in range(3):
        for j in range(3):
            taps = weights[:, :, i, j].astype(np.float64)
            total += np.einsum("ncyx,oc->noyx", wide[:, :, i : i + high, j : j + across], taps)
    if tail != "nothing":
        total += bias(weights)[:, None, None]
    if r is not None:
        total += r
    return np.maximum(total, 0) if tail in ("relu", "residual") else total


def drawn(random: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    return random.standard_normal(shape).astype(dtype)


def algorithms(given: onnx.ModelProto | Graph, level: Level = "default") -> list[str]:
    graph = given if isinstance(given, Graph) else load_graph(given)
    return [kernel.candidate.algorithm for kernel in lower_graph(graph, CompileOptions(numerics=level)).kernels]


def compiled(given: onnx.ModelProto, threads: int = 2, **options: Any) -> Any:
    return tilework.compile(given, context=tilework.Context(ContextOptions(threads=threads)), **options)


def close(found: Array, wanted: Array, depth: int) -> None:
    """Within a few roundings of sums of 9 * depth products of numbers around 1."""
    assert found.shape == wanted.shape
    unit = 2.0**-53 if found.dtype == np.float64 else 2.0**-24
    np.testing.assert_allclose(found, wanted, rtol=0, atol=40 * unit * np.sqrt(9 * depth))


@pytest.mark.parametrize("case", range(10))
def test_random_shapes(case: int) -> None:
    random = np.random.default_rng(40 + case)
    depth, filters = (int(n) for n in random.integers(16, 40, 2))
    high, wide = (int(n) for n in random.integers(6, 40, 2))
    pads = [int(n) for n in random.integers(0, 2, 4)]
    tail = TAILS[case % 4]
    dtype = np.float64 if case == 5 else np.float32
    weights = drawn(random, filters, depth, 3, 3, dtype=dtype)
    x = drawn(random, int(random.integers(1, 4)), depth, high, wide, dtype=dtype)
    wanted = expected(x, weights, pads)
    r = drawn(random, *wanted.shape, dtype=dtype) if tail == "residual" else None
    given = model(weights, x.shape, pads, tail)
    assert WINOGRAD in algorithms(given)
    assert WINOGRAD not in algorithms(given, "strict")
    arrays = (x,) if r is None else (x, r)
    found = [np.asarray(compiled(given, threads, checked=threads == 1)(*arrays)[0]) for threads in (1, 2, 3, 8)]
    close(found[0], expected(x, weights, pads, tail, r), depth)
    if dtype == np.float32:  # a checked build computes the same
        assert all(other.tobytes() == found[0].tobytes() for other in found)


def test_free_batch_and_free_sides() -> None:
    random = np.random.default_rng(3)
    weights = drawn(random, 17, 20, 3, 3)
    given = model(weights, ("n", 20, "h", "w"), (1, 1, 1, 1), "relu")
    assert WINOGRAD in algorithms(given)
    for checked in (False, True):
        executable = compiled(given, checked=checked)
        for n, high, wide in ((1, 1, 1), (2, 2, 3), (1, 33, 7), (3, 8, 64), (1, 65, 66), (0, 8, 8)):
            x = drawn(random, n, 20, high, wide)
            close(np.asarray(executable(x)[0]), expected(x, weights, (1, 1, 1, 1), "relu"), 20)


@pytest.mark.parametrize("sides", [(12, 16), (13, 9)])
def test_channels_beside_each_other(sides: tuple[int, int]) -> None:
    random = np.random.default_rng(5)
    x, weights = drawn(random, 2, *sides, 24), drawn(random, 3, 3, 24, 32)
    builder = GraphBuilder("g")
    image = builder.input("x", dtypes.float32, *x.shape)
    result = builder.apply_one(
        "convolution", image, builder.constant(weights, "w"), window_strides=(1, 1), padding=((1, 1), (1, 1)),
        feature_group_count=1, input_dimensions=(0, 3, 1, 2), kernel_dimensions=(3, 2, 0, 1),
        output_dimensions=(0, 3, 1, 2),
    )  # fmt: skip
    graph = builder.build([result])
    assert algorithms(graph) == [WINOGRAD]
    found = np.asarray(tilework.compile(graph)(x)[0])
    wanted = expected(x.transpose(0, 3, 1, 2), weights.transpose(3, 2, 0, 1), (1, 1, 1, 1))
    close(found, wanted.transpose(0, 2, 3, 1), 24)


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((1, 8, 20, 20), {}),  # few channels: the transforms would outweigh the products
        ((1, 32, 20, 20), {"strides": [2, 2]}),
        ((1, 32, 20, 20), {"dilations": [2, 2]}),
        ((1, 32, 20, 20), {"group": 2}),
        ((1, 32, 3, 20), {"pads": [0, 0, 0, 0]}),  # one row of results
    ],
)
def test_other_convolutions_are_computed_directly(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    pads = attributes.pop("pads", [1, 1, 1, 1])
    weights = np.ones((32, shape[1] // attributes.get("group", 1), 3, 3), np.float32)
    assert WINOGRAD not in algorithms(model(weights, shape, pads, **attributes))


def test_weights_that_are_an_input_are_computed_directly() -> None:
    declared = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [1, 32, 9, 9]), ("w", [32, 32, 3, 3]))]
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", declared, [helper.make_tensor_value_info("y", 1, None)])
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    assert WINOGRAD not in algorithms(given)


@pytest.mark.parametrize("block", [(1, 1), (1, 3), (2, 2), (4, 5)])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (0, 0, 0, 0), (2, 0, 1, 0)])
def test_every_block_gives_the_convolution(block: tuple[int, int], pads: tuple[int, ...]) -> None:
    """The loop program itself, by the interpreter."""
    random = np.random.default_rng(7)
    weights, x = drawn(random, 3, 2, 3, 3), drawn(random, 2, 2, 7, 9)
    graph = load_graph(model(weights, x.shape, pads))
    computation = region_of(graph, "r", graph.nodes).definition.computation
    found = convolution_of(computation)
    assert found is not None
    program = winograd(found, *block)
    verify(program)
    wanted = expected(x, weights, pads)
    arrays = {found.image.buffer: x, found.weights.buffer: transformed(found, weights)}
    arrays[found.output.name] = np.full(wanted.shape, np.nan, np.float32)
    interpret(program, arrays)
    close(arrays[found.output.name], wanted, 2)


def test_nan_reaches_the_results_that_it_is_part_of_and_no_other() -> None:
    random = np.random.default_rng(8)
    weights, x = drawn(random, 16, 16, 3, 3), drawn(random, 1, 16, 11, 10)
    for y, column in ((0, 0), (4, 5), (5, 4), (10, 9)):
        x[0, 3, y, column] = np.nan
        found = np.asarray(compiled(model(weights, x.shape, (1, 1, 1, 1)))(x)[0])
        wanted = expected(x, weights, (1, 1, 1, 1))
        assert (np.isnan(found) == np.isnan(wanted)).all()
        x[0, 3, y, column] = 0


def test_code_for_other_machines() -> None:
    graph = load_graph(model(np.ones((64, 64, 3, 3), np.float32), (1, 64, 56, 56), (1, 1, 1, 1)))
    computation = region_of(graph, "r", graph.nodes).definition.computation
    found = convolution_of(computation)
    assert found is not None
    contract = numerics("default")
    for name in ("x86-64-v4", "aarch64", "alderlake"):
        target = machine(name)
        schedule = scheduled(found, block_of(found, target), frozenset((found.weights.buffer,)), target, contract)
        assert "fma" in emit_kernel(schedule.program, target, contract, name="k").ir


def test_parts_of_larger_tensors() -> None:
    """Images that are some channels of a tensor, and results that are some of a concatenation's, are where they are."""
    random = np.random.default_rng(9)
    x, weights = drawn(random, 2, 40, 12, 14), [drawn(random, 24, 20, 3, 3) for _ in range(2)]
    node = helper.make_node
    nodes = [node("Split", ["x"], ["x0", "x1"], axis=1, num_outputs=2)]
    for n in range(2):
        nodes += [node("Conv", [f"x{n}", f"w{n}"], [f"c{n}"], pads=[1] * 4), node("Relu", [f"c{n}"], [f"y{n}"])]
    nodes.append(node("Concat", ["y0", "y1"], ["y"], axis=1))
    held = [numpy_helper.from_array(array, f"w{n}") for n, array in enumerate(weights)]
    inputs, outputs = (helper.make_tensor_value_info(*entry) for entry in (("x", 1, x.shape), ("y", 1, None)))
    graph = helper.make_graph(nodes, "g", [inputs], [outputs], held)
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    found = lower_graph(load_graph(given), CompileOptions()).kernels
    assert [kernel.candidate.algorithm for kernel in found] == [WINOGRAD] * 2
    parts = [expected(part, w, (1,) * 4, "nothing") for part, w in zip(np.split(x, 2, 1), weights, strict=True)]
    for checked in (False, True):
        result = np.asarray(compiled(given, checked=checked)(x)[0])
        close(result, np.maximum(np.concatenate(parts, 1), 0), 20)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64])
def test_integers_are_computed_directly(dtype: dtypes.DType) -> None:
    """Half of a weight is no integer."""
    random = np.random.default_rng(10)
    x, weights = (random.integers(-5, 6, shape).astype(dtype.numpy) for shape in ((1, 16, 9, 10), (16, 16, 3, 3)))
    builder = GraphBuilder("g")
    result = builder.apply_one(
        "convolution", builder.input("x", dtype, *x.shape), builder.constant(weights, "w"), window_strides=(1, 1),
        padding=((1, 1), (1, 1)), feature_group_count=1, input_dimensions=(0, 1, 2, 3),
        kernel_dimensions=(0, 1, 2, 3), output_dimensions=(0, 1, 2, 3),
    )  # fmt: skip
    graph = builder.build([result])
    assert algorithms(graph) == ["direct"]
    assert np.array_equal(np.asarray(tilework.compile(graph)(x)[0]), expected(x, weights, (1, 1, 1, 1)))


def integers(random: np.random.Generator, *shape: int) -> Array:
    """Small ones, weights in fours: all that Winograd's algorithm computes of them is exact."""
    return random.integers(-3, 4, shape).astype(np.float32)


CASTS: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("Cast", {"to": 10}, np.float16), ("Cast", {"to": 11}, np.float64), ("Cast", {"to": 6}, np.int32),
    ("Cast", {"to": 3}, np.int8), ("Cast", {"to": 9}, np.bool_), ("IsNaN", {}, np.bool_),
)  # fmt: skip


@pytest.mark.parametrize(("operator", "attributes", "dtype"), CASTS)
@pytest.mark.parametrize("sides", [(8, 8), (7, 9)])
def test_results_of_another_type(operator: str, attributes: dict[str, Any], dtype: Any, sides: tuple[int, int]) -> None:
    """Sums are computed in the image's type, whatever they become then."""
    random = np.random.default_rng(21)
    weights, x = integers(random, 16, 16, 3, 3) * 4 / 64, integers(random, 2, 16, *sides)
    given = model(weights, x.shape, (1, 1, 1, 1))
    given.graph.node[-1].CopyFrom(helper.make_node(operator, ["c"], ["y"], **attributes))
    given.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)
    )
    assert WINOGRAD in algorithms(given)
    exact = expected(x, weights, (1, 1, 1, 1))
    wanted = np.isnan(exact) if operator == "IsNaN" else exact.astype(dtype)
    for checked in (False, True):
        found = np.asarray(compiled(given, checked=checked)(x)[0])
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


def test_sums_of_float64_that_are_rounded_to_float32() -> None:
    random = np.random.default_rng(22)
    weights, x = drawn(random, 16, 16, 3, 3, dtype=np.float64), drawn(random, 1, 16, 9, 9, dtype=np.float64)
    given = model(weights, x.shape, (1, 1, 1, 1))
    given.graph.node[-1].CopyFrom(helper.make_node("Cast", ["c"], ["y"], to=1))
    given.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, None))
    assert WINOGRAD in algorithms(given)
    close(np.asarray(compiled(given)(x)[0]), expected(x, weights, (1, 1, 1, 1)), 16)


ROLES = ((0, 1, 2, 3), (1, 0, 2, 3), (1, 0, 3, 2), (0, 1, 3, 2))


@pytest.mark.parametrize("order", [1, -1])
def test_one_constant_in_several_roles(order: int) -> None:
    """Each convolution reads the weights as it wants them, whatever others make of the same constant."""
    random = np.random.default_rng(23)
    x, weights = integers(random, 1, 16, 9, 10), integers(random, 16, 16, 3, 3) * 4
    builder = GraphBuilder("g")
    image, kept = builder.input("x", dtypes.float32, *x.shape), builder.constant(weights, "w")
    roles = ROLES[::order]
    results = [
        builder.apply_one("convolution", image, kept, padding=((1, 1), (1, 1)), kernel_dimensions=role)
        for role in roles
    ]
    graph = builder.build(results)
    assert algorithms(graph).count(WINOGRAD) == len(roles)
    for role, found in zip(roles, tilework.compile(graph)(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected(x, weights.transpose(role), (1, 1, 1, 1)))


@pytest.mark.parametrize("odd", [np.nan, np.inf, 3e38, 1e30])
def test_weights_that_would_spoil_their_neighbours(odd: float) -> None:
    """What is not finite, or so large that sums lose the others, is multiplied by itself: padding hides it then."""
    random = np.random.default_rng(24)
    plain, x = drawn(random, 16, 16, 3, 3), drawn(random, 1, 16, 6, 7)
    weights = plain.copy()
    weights[3, 2, 0, 0] = odd
    both = [model(w, x.shape, (1, 1, 1, 1)) for w in (plain, weights)]
    assert [WINOGRAD in algorithms(given) for given in both] == [True, False]
    found = np.asarray(compiled(both[1])(x)[0])
    hidden = found[:, :, 0, :]
    close(hidden, expected(x, plain, (1, 1, 1, 1))[:, :, 0, :], 16)


def test_equal_convolutions_of_which_one_has_odd_weights() -> None:
    """One kernel for equal regions, but not where the contents of the weights decide."""
    random = np.random.default_rng(25)
    x, plain = drawn(random, 1, 16, 6, 7), drawn(random, 16, 16, 3, 3)
    odd = plain.copy()
    odd[0, 0, 0, 0] = np.nan
    builder = GraphBuilder("g")
    image = builder.input("x", dtypes.float32, *x.shape)
    results = [
        builder.apply_one("convolution", image, builder.constant(w, f"w{n}"), padding=((1, 1), (1, 1)))
        for n, w in enumerate((plain, odd, plain + 1, odd + 1))
    ]
    graph = builder.build(results)
    assert [name == WINOGRAD for name in algorithms(graph)] == [True, False, True, False]
    first, second, third, _ = map(np.asarray, tilework.compile(graph)(x))
    close(first, expected(x, plain, (1, 1, 1, 1)), 16)
    close(third, expected(x, plain + 1, (1, 1, 1, 1)), 16)
    assert np.isfinite(second[:, 1:]).all()
    assert np.isfinite(second[:, 0, 0]).all()
