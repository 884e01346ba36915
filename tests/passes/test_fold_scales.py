"""Scales and shifts around products: the same numbers in float64, the same NaN and infinities, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import operators
from tilework import dtypes
from tilework.compiler.compile import compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol
from tilework.graph.graph import Array, Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify
from tilework.passes.fold_scales import FoldScales
from tilework.passes.pipeline import REGROUPING_PASSES, Pipeline

F32, F64, F16 = dtypes.float32, dtypes.float64, dtypes.float16
PASS = FoldScales()


def numbers(random: np.random.Generator, *shape: int, kind: Any = np.float32) -> Array:
    return random.standard_normal(shape).astype(kind)


def positive(random: np.random.Generator, *shape: int, kind: Any = np.float32) -> Array:
    return random.uniform(0.3, 3, shape).astype(kind)


def folded(graph: Graph, *left: str) -> Graph:
    """The graph after all passes; it has these operators."""
    verify(graph)
    found = Pipeline(REGROUPING_PASSES, verified=True).run(graph)
    assert found.inputs == graph.inputs
    assert found.outputs == graph.outputs
    if left:
        assert operators(found) == list(left)
    return found


def stays(graph: Graph) -> None:
    verify(graph)
    assert PASS.run(graph) is graph


def check(graph: Graph, arrays: list[Array], *left: str, axis: int = 0) -> None:
    """Folded, interpreted and compiled, the graph gives what it gives as it is, within roundings. `n`, where it has
    that symbol, is the extent of an axis.
    """
    found = folded(graph, *left)
    executable = compile_graph(graph)
    for array in arrays:
        symbols = {"n": array.shape[axis]} if graph.symbols else {}
        (wanted,) = interpret(graph, [array], symbols)
        scale = np.max(np.abs(wanted), initial=1.0)
        eps = np.finfo(wanted.dtype).eps
        for result in (interpret(found, [array], symbols)[0], executable(array)[0]):
            assert result.dtype == wanted.dtype
            np.testing.assert_allclose(result, wanted, rtol=0, atol=200 * eps * scale)


# -- behind a product --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(10))
def test_batch_normalisation_behind_a_convolution(seed: int) -> None:
    random = np.random.default_rng(seed)
    kind: Any = (np.float32, np.float64)[seed % 2]
    groups = int(random.choice([1, 2, 3]))
    channels, features = groups * int(random.integers(1, 4)), groups * int(random.integers(1, 6))
    b = GraphBuilder("g", [Symbol("n")])
    x = b.input("x", dtypes.dtype_named(np.dtype(kind).name), "n", channels, 7, 6)
    w = b.constant(numbers(random, features, channels // groups, 3, 2, kind=kind))
    y = b.apply("convolution", x, w, padding=((1, 1), (0, 1)), feature_group_count=groups, window_strides=(2, 1))
    if seed % 3:
        y = b.apply("add", y, b.constant(numbers(random, 1, features, 1, 1, kind=kind)))
    factor = numbers(random, features, kind=kind) + 0.01
    y = b.apply("multiply", y, b.constant(factor.reshape(1, features, 1, 1)))
    y = b.apply("add", y, b.constant(numbers(random, features, 1, 1, kind=kind)))
    graph = b.build([b.apply("abs", y)])
    arrays = [numbers(random, n, channels, 7, 6, kind=kind) for n in (0, 1, 3)]
    check(graph, arrays, "convolution", "add", "abs")


@pytest.mark.parametrize("seed", range(8))
def test_scales_behind_products_of_matrices(seed: int) -> None:
    """Weights on either side, with a batch, with channels in two dimensions."""
    random = np.random.default_rng(seed)
    b = GraphBuilder("g", [Symbol("n")])
    depth, p, q, batch = (int(v) for v in random.integers(1, 6, 4))
    x = b.input("x", F64, batch, "n", depth)
    if seed % 2:
        w = b.constant(numbers(random, batch, p, depth, q, kind=np.float64))
        y = b.apply(
            "dot_general", x, w, lhs_batching_dimensions=(0,), rhs_batching_dimensions=(0,),
            lhs_contracting_dimensions=(2,), rhs_contracting_dimensions=(2,),
        )  # fmt: skip
        factor, shift = positive(random, batch, 1, p, q, kind=np.float64), numbers(random, p, 1, kind=np.float64)
    else:
        w = b.constant(numbers(random, depth, p, q, kind=np.float64))
        y = b.apply("dot_general", w, x, lhs_contracting_dimensions=(0,), rhs_contracting_dimensions=(2,))
        factor = positive(random, p, q, 1, 1, kind=np.float64)
        shift = numbers(random, 1, q, 1, 1, kind=np.float64)
    y = b.apply("subtract", b.constant(shift), b.apply("divide", y, b.constant(factor)))
    graph = b.build([y])
    arrays = [numbers(random, batch, n, depth, kind=np.float64) for n in (0, 1, 5)]
    check(graph, arrays, "dot_general", "add", axis=1)


def test_a_positive_scale_alone_leaves_only_the_product() -> None:
    random = np.random.default_rng(0)
    for factor, left in ((2.5, ["dot_general"]), (-2.5, ["dot_general", "multiply"])):
        b = GraphBuilder("g", [Symbol("n")])
        x = b.input("x", F32, "n", 4)
        y = b.apply("dot_general", x, b.constant(numbers(random, 4, 3)), lhs_contracting_dimensions=(1,),
                    rhs_contracting_dimensions=(0,))  # fmt: skip
        graph = b.build([b.apply("multiply", y, b.constant(factor, dtype=F32))])
        check(graph, [numbers(random, 2, 4)], *left)
        # zeros keep their signs: what is summed is +0.0, and -2.5 times that is -0.0
        zero = np.zeros((1, 4), np.float32)
        found = interpret(folded(graph), [zero], {"n": 1})[0]
        assert bool(np.signbit(found).all()) == (factor < 0)


def test_shifts_alone_become_one() -> None:
    random = np.random.default_rng(0)
    b = GraphBuilder("g")
    y = matrix_product(b, b.input("x", F32, 5, 4), numbers(random, 4, 3))
    y = b.apply("add", b.apply("add", y, b.constant(numbers(random, 3))), b.constant(numbers(random, 1, 3)))
    check(b.build([y]), [numbers(random, 5, 4)], "dot_general", "add")


# -- before a product --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(10))
def test_batch_normalisation_before_a_convolution(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = int(random.choice([1, 2, 3]))
    channels, features = groups * int(random.integers(1, 4)), groups * int(random.integers(1, 6))
    inside = channels // groups
    last = seed % 2 == 1  # channels last, and the weights with their features last
    b = GraphBuilder("g", [Symbol("n")])
    x = b.input("x", F64, *(("n", 6, 5, channels) if last else ("n", channels, 6, 5)))
    shape = (channels,) if last else (channels, 1, 1)
    y = b.apply("multiply", b.apply("abs", x), b.constant(numbers(random, *shape, kind=np.float64)))
    y = b.apply("add", y, b.constant(numbers(random, *shape, kind=np.float64)))
    places: dict[str, Any] = {f"{side}_dimensions": (0, 3, 1, 2) for side in ("input", "output")} if last else {}
    w = numbers(random, *((3, 2, inside, features) if last else (features, inside, 3, 2)), kind=np.float64)
    if last:
        places["kernel_dimensions"] = (3, 2, 0, 1)
    y = b.apply("convolution", y, b.constant(w), feature_group_count=groups, rhs_dilation=(1, 2), **places)
    y = b.apply("multiply", y, b.constant(np.array(1.5)))
    graph = b.build([b.apply("abs", y)])
    arrays = [numbers(random, *((n, 6, 5, channels) if last else (n, channels, 6, 5)), kind=np.float64) for n in (0, 2)]
    check(graph, arrays, "abs", "convolution", "add", "abs")


def test_a_scale_goes_before_a_padded_convolution_and_a_shift_does_not() -> None:
    random = np.random.default_rng(1)
    for shifted in (False, True):
        for padding in (((1, 0),), ((0, 0),)):
            b = GraphBuilder("g")
            y = b.apply("multiply", b.apply("abs", b.input("x", F32, 2, 3, 8)), b.constant(positive(random, 3, 1)))
            if shifted:
                y = b.apply("add", y, b.constant(np.ones((3, 1), np.float32)))
            y = b.apply("convolution", y, b.constant(numbers(random, 4, 3, 3)), padding=padding)
            moved = not (shifted and padding[0][0])
            left = ["abs", "convolution", *(["add"] if shifted else [])]
            check(
                b.build([y]),
                [numbers(random, 2, 3, 8)],
                *(left if moved else ["abs", "multiply", "add", "convolution"]),
            )


def test_what_is_centred_first_stays() -> None:
    """x - mean may be exact; a sum of w * x - w * mean is not."""
    random = np.random.default_rng(2)
    b = GraphBuilder("g")
    y = b.apply("subtract", b.input("x", F32, 5, 4), b.constant(numbers(random, 4)))
    y = b.apply("multiply", y, b.constant(positive(random, 4)))
    graph = b.build([matrix_product(b, y, numbers(random, 4, 3))])
    assert operators(folded(graph)) == ["subtract", "dot_general"]


# -- what stays --------------------------------------------------------------------------------------------------------
def matrix_product(b: GraphBuilder, x: Value, w: Array | Value) -> Value:
    other = w if isinstance(w, Value) else b.constant(w)
    return b.apply("dot_general", x, other, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))


def scaled(
    w: Array | None = None, factor: Any = 2.0, shift: Any = None, dtype: dtypes.DType = F32
) -> tuple[GraphBuilder, Value, Value]:
    """x @ w (random, or an input) * factor (+ shift): the builder, the product and the last value."""
    b = GraphBuilder("g")
    random = np.random.default_rng(3)
    x = b.input("x", dtype, 5, 4)
    y = matrix_product(b, x, numbers(random, 4, 3).astype(dtype.numpy) if w is None else w)
    z = b.apply("multiply", y, b.constant(np.asarray(factor, dtype.numpy)))
    return b, y, z if shift is None else b.apply("add", z, b.constant(np.asarray(shift, dtype.numpy)))


def test_the_plain_case_is_folded() -> None:
    b, _, z = scaled()
    assert operators(PASS.run(b.build([z]))) == ["dot_general"]


def test_results_with_another_use_stay() -> None:
    b, y, z = scaled()
    stays(b.build([y, z]))
    b, y, z = scaled()
    stays(b.build([b.apply("subtract", z, b.apply("abs", y))]))


def test_weights_with_another_use_and_weights_that_are_no_constants_stay() -> None:
    b = GraphBuilder("g")
    x, w = b.input("x", F32, 5, 4), b.constant(np.ones((4, 3), np.float32))
    y = b.apply("multiply", matrix_product(b, x, w), b.constant(2.0, dtype=F32))
    stays(b.build([y, b.apply("abs", w)]))
    b = GraphBuilder("g")
    y = matrix_product(b, b.input("x", F32, 5, 4), b.input("w", F32, 4, 3))
    stays(b.build([b.apply("multiply", y, b.constant(2.0, dtype=F32))]))
    b = GraphBuilder("g")
    y = matrix_product(b, b.input("x", F32, 5, 4), np.ones((4, 3), np.float32))
    stays(b.build([b.apply("multiply", y, b.input("s", F32, 3))]))


@pytest.mark.parametrize(
    "factor",
    [np.full((5, 1), 2.0), np.full((5, 3), 2.0), np.full((2, 5, 3), 2.0), np.zeros(3), np.array([1.0, np.nan, 1.0]),
     np.array([1.0, np.inf, 1.0]), np.array([1.0, -2.0, 1.0]), np.array(1e20), np.array(1e-20)],
)  # fmt: skip
def test_scales_along_other_dimensions_and_special_ones_stay(factor: Array) -> None:
    b, _, z = scaled(factor=factor)
    stays(b.build([z]))


@pytest.mark.parametrize("shift", [[0.0, -0.0, 1.0], [1.0, np.nan, 1.0], [np.inf, 0.0, 0.0]])
def test_special_shifts_stay(shift: list[float]) -> None:
    b, _, z = scaled(factor=np.array([-1.0, 2.0, 3.0]), shift=shift)
    stays(b.build([z]))


@pytest.mark.parametrize("number", [np.nan, np.inf, 3e38, 1e-45])
def test_weights_that_would_not_stay_what_they_are_stay(number: float) -> None:
    w = np.ones((4, 3), np.float32)
    w[1, 2] = number
    b, _, z = scaled(w, factor=0.25 if number < 1 else 4.0)
    stays(b.build([z]))


def test_sixteen_bits_and_integers_stay() -> None:
    b, _, z = scaled(dtype=F16)
    stays(b.build([z]))
    b, _, z = scaled(dtype=dtypes.int32)
    stays(b.build([z]))


def test_empty_sums_stay_and_empty_results_do_not_matter() -> None:
    b = GraphBuilder("g")
    y = matrix_product(b, b.input("x", F32, 5, 0), np.zeros((0, 3), np.float32))
    stays(b.build([b.apply("multiply", y, b.constant(2.0, dtype=F32))]))
    b = GraphBuilder("g")
    y = matrix_product(b, b.input("x", F32, 0, 4), np.ones((4, 3), np.float32))
    check(b.build([b.apply("multiply", y, b.constant(2.0, dtype=F32))]), [np.zeros((0, 4), np.float32)], "dot_general")


def test_strict_numerics_keep_the_graph() -> None:
    b, _, z = scaled(shift=[1.0, 2.0, 3.0])
    graph = b.build([z])
    assert operators(lower_graph(graph, CompileOptions("strict")).graph) == ["dot_general", "multiply", "add"]
    assert operators(lower_graph(graph, CompileOptions()).graph) == ["dot_general", "add"]


def test_nan_and_infinities_stay_where_they_are() -> None:
    """Among the operands, times weights of 0 and scales of 0 and below."""
    random = np.random.default_rng(4)
    for _ in range(12):
        w = random.choice([0.0, 1.0, -2.0, 3.0], (4, 3)).astype(np.float32)
        factor, shift = random.choice([0.0, 2.0, -1.0], 3), random.choice([1.0, -5.0, 0.0], 3)
        b, _, z = scaled(w, factor, shift)
        graph = b.build([z])
        found = PASS.run(graph)
        assert operators(found) == ["dot_general", "add"]
        special = random.choice(
            [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], (5, 4), p=[0.2, 0.1, 0.3, 0.1, 0.1, 0.1, 0.1]
        )
        x = special.astype(np.float32)
        wanted, result = (interpret(one, [x], {})[0] for one in (graph, found))
        np.testing.assert_array_equal(result, wanted)
        compiled = compile_graph(graph)(x)[0]
        np.testing.assert_array_equal(compiled, wanted)
        zeros = wanted == 0
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(wanted[zeros]))


def test_products_one_after_another_share_nothing() -> None:
    """The scale between two products goes into the first, once."""
    random = np.random.default_rng(5)
    b = GraphBuilder("g", [Symbol("n")])
    y = matrix_product(b, b.input("x", F32, "n", 4), numbers(random, 4, 3))
    y = b.apply("multiply", y, b.constant(positive(random, 3)))
    y = b.apply("add", y, b.constant(numbers(random, 3)))
    y = matrix_product(b, y, numbers(random, 3, 6))
    y = b.apply("add", b.apply("multiply", y, b.constant(numbers(random, 6))), b.constant(numbers(random, 6)))
    check(b.build([y]), [numbers(random, 7, 4)], "dot_general", "add", "dot_general", "add")


def test_names_of_outputs_stay() -> None:
    b, _, z = scaled()
    graph = b.build([z, z])
    found = PASS.run(graph)
    verify(found)
    assert found.outputs == graph.outputs


def test_a_mean_before_a_product_is_a_sum() -> None:
    """The division by the number of elements goes into the weights; a number divided by the mean does not."""
    random = np.random.default_rng(6)
    for swapped in (False, True):
        b = GraphBuilder("g", [Symbol("n")])
        total = b.apply("reduce", b.input("x", F32, "n", 4, 5), dimensions=(2,), reducer="sum")
        pair = (total, b.constant(5.0, dtype=F32))
        y = matrix_product(b, b.apply("divide", *(pair[::-1] if swapped else pair)), numbers(random, 4, 3))
        left = ["reduce", "divide", "dot_general"] if swapped else ["reduce", "dot_general"]
        check(b.build([y]), [positive(random, 2, 4, 5)], *left)
