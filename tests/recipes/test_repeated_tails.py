"""Gates: tails of small products that a larger map reads again and again stay with their product."""

from __future__ import annotations

import numpy as np
import pytest

from tilework import dtypes
from tilework.compiler.compile import compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Symbol
from tilework.graph.graph import Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret

F32 = dtypes.float32


def squeeze_and_excite(channels: int, inside: int, rows: int, columns: int, dense: bool) -> Graph:
    """x times a gate per channel, which two products make of the mean of x, as convolutions or as matrix products."""
    random = np.random.default_rng(0)

    def weights(b: GraphBuilder, *shape: int) -> Value:
        return b.constant(random.standard_normal(shape).astype(np.float32))

    b = GraphBuilder("g", [Symbol("n")])
    x = b.input("x", F32, "n", channels, rows, columns)
    n = x.tensor.shape[0]
    y = b.apply("reduce", x, dimensions=(2, 3), reducer="sum", keep_dimensions=not dense)
    y = b.apply("divide", y, b.constant(float(rows * columns), dtype=F32))
    for depth, features in ((channels, inside), (inside, channels)):
        if dense:
            y = b.apply("dot_general", y, weights(b, depth, features), lhs_contracting_dimensions=(1,),
                        rhs_contracting_dimensions=(0,))  # fmt: skip
            y = b.apply("add", y, weights(b, features))
        else:
            y = b.apply("convolution", y, weights(b, features, depth, 1, 1))
            y = b.apply("add", y, weights(b, features, 1, 1))
        y = b.apply("maximum", y, b.constant(0.0, dtype=F32)) if features == inside else b.apply("logistic", y)
    if dense:
        y = b.apply("reshape", y, shape=(n, channels, 1, 1))
    return b.build([b.apply("multiply", x, y)])


def regions(graph: Graph) -> list[tuple[str, ...]]:
    return [kernel.region.operators for kernel in lower_graph(graph, CompileOptions()).kernels]


@pytest.mark.parametrize("dense", [False, True])
def test_a_gate_is_computed_with_its_product(dense: bool) -> None:
    kind = "dot_general" if dense else "convolution"
    found = regions(squeeze_and_excite(6, 2, 3, 5, dense))
    assert found[:3] == [("reduce",), (kind, "add", "maximum"), (kind, "add", "logistic")]
    assert len(found) == 4
    assert found[3][-1] == "multiply"


@pytest.mark.parametrize("seed", range(6))
def test_values(seed: int) -> None:
    random = np.random.default_rng(seed)
    channels, inside, rows, columns = (int(v) for v in random.choice([1, 2, 7, 8, 17], 4))
    graph = squeeze_and_excite(channels, inside, rows, columns, dense=seed % 2 == 0)
    executable = compile_graph(graph, CompileOptions(checked=seed < 2))
    for n in (0, 1, 3):
        x = random.standard_normal((n, channels, rows, columns)).astype(np.float32)
        (wanted,) = interpret(graph, [x], {"n": n})
        np.testing.assert_allclose(executable(x)[0], wanted, rtol=1e-5, atol=1e-6)


def test_a_tail_that_is_not_repeated_goes_on() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    y = b.apply("dot_general", b.input("x", F32, "n", 4), b.constant(np.ones((4, 6), np.float32)),
                lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))  # fmt: skip
    y = b.apply("multiply", b.apply("logistic", y), b.input("z", F32, "n", 6))
    assert regions(b.build([y])) == [("dot_general", "logistic", "multiply")]


def test_a_gate_that_somebody_else_reads_is_stored_as_before() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    y = b.apply("dot_general", b.input("x", F32, "n", 4), b.constant(np.ones((4, 6), np.float32)),
                lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))  # fmt: skip
    gate = b.apply("logistic", y)
    out = b.apply("multiply", gate, b.input("z", F32, 3, "n", 6))
    assert regions(b.build([gate, out])) == [("dot_general", "logistic"), ("multiply",)]
