"""Products of dequantised numbers: the integers' sums, exactly, and what keeps a product as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import operators
from tilework import dtypes
from tilework.compiler.compile import compile_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol
from tilework.graph.graph import Array, Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.verify import verify
from tilework.passes.integer_products import IntegerProducts
from tilework.runtime.context import Context, ContextOptions

F32, I8, U8, I32 = dtypes.float32, dtypes.int8, dtypes.uint8, dtypes.int32
PASS = IntegerProducts()


def dequantised(b: GraphBuilder, q: Value, zero: Any, scale: Any) -> Value:
    """(q - zero) * scale as the ONNX frontend spells it."""
    wide = b.apply("convert", q, dtype=I32) if q.tensor.dtype != I32 else q
    less = b.apply("subtract", wide, b.apply("convert", b.constant(np.asarray(zero)), dtype=I32))
    return b.apply("multiply", b.apply("convert", less, dtype=F32), b.constant(np.asarray(scale, np.float32)))


def quantised(b: GraphBuilder, x: Value, zero: int, scale: float) -> Value:
    found = b.apply("round_nearest_even", b.apply("divide", x, b.constant(scale, dtype=F32)))
    found = b.apply("add", found, b.constant(float(zero), dtype=F32))
    found = b.apply("maximum", found, b.constant(0.0, dtype=F32))
    return b.apply("convert", b.apply("minimum", found, b.constant(255.0, dtype=F32)), dtype=U8)


def rewritten(graph: Graph) -> Graph:
    verify(graph)
    found = PASS.run(graph)
    verify(found)
    assert found.inputs == graph.inputs
    assert found.outputs == graph.outputs
    return found


def check(graph: Graph, arrays: list[Array], wanted: Array, **symbols: int) -> Graph:
    """Rewritten, interpreted and compiled, the graph gives these integers (or numbers within a rounding)."""
    found = rewritten(graph)
    results = [interpret(found, arrays, symbols)[0], compile_graph(graph)(*arrays)[0]]
    for result in results:
        assert result.shape == wanted.shape
        if result.dtype.kind in "iu":
            np.testing.assert_array_equal(result, wanted)
        else:
            np.testing.assert_allclose(result, wanted, rtol=3e-7, atol=0)
    return found


def has_narrow_product(graph: Graph, kind: str) -> bool:
    """Whether a product takes 8-bit integers."""
    nodes = [node for node in graph.nodes if node.operator == kind]
    return all(graph.values[name].tensor.dtype.bits == 8 for node in nodes for name in node.inputs) and bool(nodes)


@pytest.mark.parametrize("seed", range(8))
def test_convolutions(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = int(random.choice([1, 2]))
    channels, features = groups * int(random.choice([1, 4])), groups * int(random.choice([1, 5]))
    kind: Any = (np.uint8, np.int8)[seed % 2]
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    b = GraphBuilder("g", [Symbol("n")])
    x = b.input("x", dtypes.dtype_named(np.dtype(kind).name), "n", channels, 6, 7)
    zero = int(random.integers(low, high + 1)) if seed != 1 else 0
    weights = random.integers(-127, 128, (features, channels // groups, 3, 2)).astype(np.int8)
    sx, sw = np.float32(0.037), random.uniform(0.001, 0.01, (features, 1, 1, 1)).astype(np.float32)
    if seed == 2:
        sw = np.array(0.004, np.float32)
    attributes: dict[str, Any] = {
        "padding": ((1, 0), (int(random.integers(0, 2)), 2)), "window_strides": (1, int(random.integers(1, 3))),
        "feature_group_count": groups, "lhs_dilation": (1, 2) if seed == 3 else (1, 1),
    }  # fmt: skip
    weight = dequantised(b, b.constant(weights), np.zeros((features, 1, 1, 1), np.int8), sw)
    y = b.apply("convolution", dequantised(b, x, kind(zero), sx), weight, **attributes)
    bias = random.integers(-5000, 5000, features).astype(np.int32)
    offset = dequantised(b, b.constant(bias), np.int32(0), (sx * sw).reshape(-1))
    offset = b.apply("broadcast_in_dim", offset, shape=(features,), broadcast_dimensions=(0,)) if seed == 2 else offset
    y = b.apply("add", y, b.apply("reshape", offset, shape=(1, features, 1, 1)))
    if seed % 3 == 0:
        y = b.apply("maximum", y, b.constant(0.0, dtype=F32))
    graph = b.build([quantised(b, y, 9, 0.05)])

    array = random.integers(low, high + 1, (2, channels, 6, 7)).astype(kind)
    exact = GraphBuilder("exact", [Symbol("n")])
    wide = exact.input("x", dtypes.float64, "n", channels, 6, 7)
    exact_sum = exact.apply("convolution", wide, exact.constant(weights.astype(np.float64)), **attributes)
    (total,) = interpret(exact.build([exact_sum]), [array.astype(np.float64) - zero], {"n": 2})
    total = total.astype(np.int64)
    if seed != 2:
        total = total + bias.reshape(-1, 1, 1)
    factor = (sx * sw).reshape(-1, 1, 1) / np.float32(0.05)
    scaled = total.astype(np.float32) * factor
    if seed == 2:  # its bias is no dequantised constant that the pass sees through: it is added to the product
        product = total.astype(np.float32) * (sx * sw) + bias.astype(np.float32).reshape(-1, 1, 1) * (sx * sw)
        scaled = product / np.float32(0.05)
    if seed % 3 == 0:
        scaled = np.maximum(scaled, 0)
    wanted = np.clip(np.rint(scaled) + 9, 0, 255).astype(np.uint8)
    found = check(graph, [array], wanted, n=2)
    assert has_narrow_product(found, "convolution")


SIDES = [
    ("mk,kn->mn", (), (), (1,), (0,)), ("km,nk->mn", (), (), (0,), (1,)), ("bmk,bnk->bmn", (0,), (0,), (2,), (2,)),
    ("mbk,kbn->bmn", (1,), (1,), (2,), (0,)), ("mjk,jkn->mn", (), (), (1, 2), (0, 1)),
]  # fmt: skip
SIZES = {"m": 5, "n": 7, "k": 9, "b": 3, "j": 2}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("equation", "lb", "rb", "lc", "rc"), SIDES)
@pytest.mark.parametrize("per", [False, True])
def test_matrix_products(
    equation: str, lb: tuple[int, ...], rb: tuple[int, ...], lc: tuple[int, ...], rc: tuple[int, ...], known: bool,
    per: bool,
) -> None:  # fmt: skip
    random = np.random.default_rng(len(equation))
    left, right = equation.partition("->")[0].split(",")
    shapes = [[SIZES[c] for c in term] for term in (left, right)]
    a, c = random.integers(0, 256, shapes[0]).astype(np.uint8), random.integers(-128, 128, shapes[1]).astype(np.int8)
    columns = [SIZES[x] if per and x == "n" else 1 for x in right]
    scale = random.uniform(0.01, 0.02, columns if per else ()).astype(np.float32)
    b = GraphBuilder("g")
    x = b.input("x", U8, *shapes[0])
    y = b.constant(c) if known else b.input("y", I8, *shapes[1])
    product = b.apply(
        "dot_general", dequantised(b, x, np.uint8(131), 0.02), dequantised(b, y, np.int8(-3), scale),
        lhs_batching_dimensions=lb, rhs_batching_dimensions=rb, lhs_contracting_dimensions=lc,
        rhs_contracting_dimensions=rc,
    )  # fmt: skip
    total = np.einsum(equation, a.astype(np.int64) - 131, c.astype(np.int64) + 3)
    wanted = total.astype(np.float32) * (np.float32(0.02) * (scale.reshape(-1) if per else scale))
    found = check(b.build([product]), [a] if known else [a, c], wanted)
    assert has_narrow_product(found, "dot_general")


def test_sums() -> None:
    b = GraphBuilder("g")
    x = b.input("x", U8, 2, 3, 40)
    mean: Value = b.apply(
        "reduce", dequantised(b, x, np.uint8(7), 0.1), dimensions=(2,), reducer="sum", keep_dimensions=True
    )
    graph = b.build([b.apply("divide", mean, b.constant(40.0, dtype=F32))])
    array = np.random.default_rng(0).integers(0, 256, (2, 3, 40)).astype(np.uint8)
    wanted = (array.astype(np.int64) - 7).sum(2, keepdims=True).astype(np.float32) * (np.float32(0.1) / np.float32(40))
    # without a product in it, a graph is left alone
    assert PASS.run(graph) is graph
    b.apply("dot_general", b.input("p", F32, 2, 2), b.input("q", F32, 2, 2), lhs_contracting_dimensions=(1,),
            rhs_contracting_dimensions=(0,))  # fmt: skip
    found = rewritten(b.build([b.nodes[-2].output]))
    (result,) = interpret(found, [array, *[np.zeros((2, 2), np.float32)] * 2], {})
    np.testing.assert_array_equal(result, wanted)


def _kept(b: GraphBuilder, x: Value, y: Value, **attributes: Any) -> None:
    how: dict[str, Any] = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,), **attributes}
    graph = b.build([b.apply("dot_general", x, y, **how)])
    verify(graph)
    assert PASS.run(graph) is graph


@pytest.mark.parametrize("scale", [0.0, -0.5, np.inf, np.nan])
def test_scales_that_are_no_scales(scale: float) -> None:
    b = GraphBuilder("g")
    x = dequantised(b, b.input("x", U8, 2, 3), np.uint8(0), scale)
    _kept(b, x, dequantised(b, b.input("y", I8, 3, 2), np.int8(0), 1.0))


def test_what_stays_as_it_is() -> None:
    b = GraphBuilder("g", [Symbol("k")])
    good = dequantised(b, b.input("a", U8, 2, 3), np.uint8(1), 0.5)
    _kept(b, good, b.input("f", F32, 3, 2))  # one side is no integers
    along = dequantised(b, b.input("c", I8, 3, 2), np.int8(0), np.ones((3, 1)))
    _kept(b, good, along)  # the scale changes along the sum
    _kept(b, good, dequantised(b, b.input("d", I8, 3, 2), np.array([[1, 2]], np.int8), 1.0))  # zero points per column
    wide = dequantised(b, b.input("e", dtypes.int16, 3, 2), np.int16(0), 1.0)
    _kept(b, good, wide)  # 16 bits do not fit
    deep = [dequantised(b, b.input(n, U8, 2, 40000), np.uint8(0), 1.0) for n in "gh"]
    _kept(b, deep[0], deep[1], rhs_contracting_dimensions=(1,))  # sums might not fit 32 bits
    free = [dequantised(b, b.input(n, U8, 2, "k"), np.uint8(0), 1.0) for n in "ij"]
    _kept(b, free[0], free[1], rhs_contracting_dimensions=(1,))  # nothing bounds them
    scale = b.input("s", F32)
    given = b.apply("multiply", b.apply("convert", b.input("l", I8, 3, 2), dtype=F32), scale)
    _kept(b, good, given)  # a scale that is not known


def test_strict_numerics_keep_the_graph_as_written() -> None:
    b = GraphBuilder("g")
    x, y = (dequantised(b, b.input(n, I8, 2, 2), np.int8(0), 0.1) for n in "xy")
    graph = b.build([b.apply("dot_general", x, y, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))])
    assert "int32" not in operators(graph)
    for level, wanted in (("default", True), ("strict", False)):
        compiled = compile_graph(graph, CompileOptions(numerics=level))  # type: ignore[arg-type]
        told = [operator for region in compiled.explain().regions for operator in region.operators]
        assert (told.index("dot_general") < told.index("multiply")) is wanted


# -- chains: with scales that are powers of two nothing is rounded on the way, every bit stays -------------------------
def requantised(b: GraphBuilder, x: Value, zero: int, scale: float) -> Value:
    """A value as it is after it has been quantised."""
    return dequantised(b, quantised(b, x, zero, scale), np.uint8(zero), scale)


def layer(b: GraphBuilder, random: np.random.Generator, x: Value, features: int, groups: int = 1) -> Value:
    channels = x.tensor.shape[1].constant
    weights = random.integers(-3, 4, (features, channels // groups, 3, 3)).astype(np.int8)
    weight = dequantised(b, b.constant(weights), np.int8(0), 0.25)
    found = b.apply("convolution", x, weight, padding=((1, 1), (1, 1)), feature_group_count=groups)
    bias = b.constant(random.integers(-9, 10, (1, features, 1, 1)).astype(np.int32))
    return b.apply("add", found, dequantised(b, bias, np.int32(0), 0.125))


def pool(b: GraphBuilder, x: Value, size: int, pads: int) -> Value:
    return b.apply(
        "reduce_window", x, window_dimensions=(1, 1, size, size), window_strides=(1, 1, 2, 2),
        padding=((0, 0), (0, 0), (pads, pads), (pads, pads)), reducer="maximum",
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_chains_keep_every_bit(seed: int) -> None:
    random = np.random.default_rng(seed)
    b = GraphBuilder("g", [Symbol("n")])
    x = b.input("x", F32, "n", int(random.choice([1, 3, 4])), 9, 8)
    first = requantised(b, x, 128, 0.5)
    y = b.apply("maximum", layer(b, random, first, 8), b.constant(0.0, dtype=F32))
    y = requantised(b, y, 0, 1.0)
    y = requantised(b, pool(b, y, int(random.choice([2, 3])), int(random.integers(0, 2))), 0, 1.0)
    other = requantised(b, layer(b, random, y, 8, groups=int(random.choice([1, 8]))), 7, 2.0)
    y = requantised(b, b.apply("add", y, other), 3, 2.0)  # a shortcut
    gate = b.apply("reduce", y, dimensions=(2, 3), reducer="maximum", keep_dimensions=True)
    y = requantised(b, b.apply("multiply", y, gate), 3, 64.0)
    y = b.apply("concatenate", y, other, dimension=1) if seed % 2 else y
    y = requantised(b, y, 3, 64.0)
    total = b.apply("reduce", layer(b, random, y, 5), dimensions=(2, 3), reducer="sum", keep_dimensions=False)
    graph = b.build([total, y])
    verify(graph)
    found = rewritten(graph)
    assert has_narrow_product(found, "convolution")
    array = (random.integers(-200, 200, (2, x.tensor.shape[1].constant, 9, 8)) / 4).astype(np.float32)
    wanted = interpret(graph, [array], {"n": 2})
    for results in (interpret(found, [array], {"n": 2}), compile_graph(graph)(array)):
        for one, other_one in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(one, other_one)
    if seed == 0:
        (first_output, second_output) = wanted
        for threads in (1, 2, 3, 8):
            with Context(ContextOptions(threads=threads)) as context:
                for checked in (False, True):
                    one, two = compile_graph(graph, CompileOptions(checked=checked), context)(array)
                    np.testing.assert_array_equal(one, first_output)
                    np.testing.assert_array_equal(two, second_output)
    if seed % 2 == 0:
        kinds = [found.values[node.inputs[0]].tensor.dtype for node in found.nodes if node.operator == "reduce_window"]
        assert U8 in kinds  # the maxima of the integers


def test_windows_in_the_padding_are_no_maxima_of_integers() -> None:
    """A window that holds nothing gives minus infinity, which no integer stands for."""
    b = GraphBuilder("g")
    x = dequantised(b, b.input("x", U8, 1, 2, 4, 4), np.uint8(0), 1.0)
    y = quantised(b, pool(b, x, 2, 3), 0, 1.0)
    weights = dequantised(b, b.constant(np.ones((1, 2, 1, 1), np.int8)), np.int8(0), 1.0)
    graph = b.build([b.apply("convolution", dequantised(b, y, np.uint8(0), 1.0), weights)])
    array = np.random.default_rng(0).integers(0, 9, (1, 2, 4, 4)).astype(np.uint8)
    (wanted,) = interpret(graph, [array], {})
    for (result,) in (interpret(rewritten(graph), [array], {}), compile_graph(graph)(array)):
        np.testing.assert_array_equal(result, wanted)
