"""Elementwise tails behind moved products: moved before the movement, the same bits, and what cannot be moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import BOOL, F32, check_pass, operators
from tilework.compiler.compile import compile_graph, lower_graph
from tilework.compiler.options import CompileOptions
from tilework.dims import Dim, Symbol, parse_dim
from tilework.graph.graph import Array, Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.passes.pipeline import Pipeline
from tilework.passes.tails_before_movement import TailsBeforeMovement

PASS = TailsBeforeMovement()
N = parse_dim("n")


def product(b: GraphBuilder, *rows: int | str, depth: int = 4, columns: int = 6) -> Value:
    """A matrix product of a new input and constants (small integers): [rows, columns]."""
    weights = np.random.default_rng(0).integers(-3, 4, (depth, columns)).astype(np.float32)
    return b.apply(
        "dot_general", b.input("x", F32, *rows, depth), b.constant(weights),
        lhs_contracting_dimensions=(len(rows),), rhs_contracting_dimensions=(0,),
    )  # fmt: skip


def moved(graph: Graph, *left: str) -> Graph:
    """After the pass: the same bits, and after the pipeline these operators."""
    for n in (0, 1, 5):
        found = check_pass(PASS, graph, seed=n, n=n)
    assert found is not graph
    assert PASS.run(found) is found
    done = Pipeline(verified=True).run(graph)
    if left:
        assert operators(done) == list(left)
    return done


def test_a_bias_and_an_activation_behind_a_reshape_are_stored_with_the_product() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    y = b.apply("reshape", product(b, "n"), shape=(1, N, 2, 3))
    y = b.apply("maximum", b.apply("add", y, b.constant(np.ones((2, 3), np.float32))), b.constant(0.0, dtype=F32))
    graph = b.build([y])
    found = moved(graph, "dot_general", "add", "maximum", "reshape")
    assert found.producers[y.name].operator == "reshape"
    kernels = [kernel.region.operators for kernel in lower_graph(graph, CompileOptions()).kernels]
    assert kernels == [("dot_general", "add", "maximum")]
    x = np.random.default_rng(1).integers(-3, 4, (5, 4)).astype(np.float32)
    np.testing.assert_array_equal(compile_graph(graph)(x)[0], interpret(graph, [x], {"n": 5})[0])


@pytest.mark.parametrize("seed", range(12))
def test_random_tails(seed: int) -> None:
    """Reshapes and transposes one after another, with operands of every shape that broadcasts."""
    g = np.random.default_rng(seed)
    b = GraphBuilder("g", [Symbol("n")])
    y = product(b, 2, "n")
    for _ in range(6):
        choice = int(g.integers(0, 4))
        shape = y.tensor.shape
        if choice == 0:
            y = b.apply("transpose", y, permutation=tuple(int(d) for d in g.permutation(len(shape))))
        elif choice == 1:
            y = b.apply("reshape", y, shape=_reshaped(g, shape))
        else:
            y = b.apply(str(g.choice(["add", "subtract", "multiply"])), *_pair(b, g, y))
    graph = b.build([b.apply("negate", y)])
    found = graph
    for n in (0, 1, 5):
        found = check_pass(PASS, graph, seed=n, n=n)
    check_pass(Pipeline(verified=True), graph, n=3)
    x = g.integers(-3, 4, (2, 5, 4)).astype(np.float32)
    arrays = [x, *(g.integers(-3, 4, [int(d.evaluate({"n": 5})) for d in v.tensor.shape]).astype(np.float32)
                   for v in graph.inputs[1:])]  # fmt: skip
    (wanted,) = interpret(graph, arrays, {"n": 5})
    np.testing.assert_array_equal(compile_graph(found)(*arrays)[0], wanted)


def _reshaped(g: np.random.Generator, shape: tuple[Dim, ...]) -> tuple[Dim | int, ...]:
    """Two neighbours as one, one in two, or another dimension of 1."""
    place = int(g.integers(0, len(shape)))
    if g.integers(0, 2) and place + 1 < len(shape):
        return (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
    extent = shape[place]
    if extent.is_constant and int(extent) % 2 == 0 and len(shape) < 6:
        return (*shape[:place], 2, int(extent) // 2, *shape[place + 1 :])
    return (*shape[:place], 1, *shape[place:]) if len(shape) < 6 else shape


def _pair(b: GraphBuilder, g: np.random.Generator, y: Value) -> tuple[Value, Value]:
    shape = [extent if g.integers(0, 2) else 1 for extent in y.tensor.shape]
    shape = shape[int(g.integers(0, len(shape) + 1)) :]
    if all(isinstance(e, int) or e.is_constant for e in shape) and g.integers(0, 2):
        other = b.constant(g.integers(-3, 4, [int(e) for e in shape]).astype(np.float32))
    else:
        other = b.input(b.fresh("z"), F32, *shape)
    return (y, other) if g.integers(0, 2) else (other, y)


def test_transposes_take_constants_scalars_and_rows_along() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    y = b.apply("transpose", product(b, 2, "n"), permutation=(2, 0, 1))
    table = np.arange(12, dtype=np.float32).reshape(6, 2, 1)
    y = b.apply("multiply", b.apply("add", y, b.constant(table)), b.input("row", F32, 2, 1))
    y = b.apply("add", y, b.input("number", F32, 1, 1))
    moved(b.build([y]), "dot_general", "add", "reshape", "multiply", "reshape", "add", "transpose")


def test_a_value_times_itself_and_values_moved_alike() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    flip: dict[str, Any] = {"permutation": (1, 0)}
    y = b.apply("transpose", product(b, "n"), **flip)
    y = b.apply("multiply", y, y)
    y = b.apply("add", y, b.apply("transpose", b.input("z", F32, "n", 6), **flip))
    moved(b.build([y]), "dot_general", "multiply", "add", "transpose")


def test_what_is_repeated_is_computed_once() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    y = b.apply("broadcast_in_dim", product(b, "n"), shape=(3, N, 6), broadcast_dimensions=(1, 2))
    moved(b.build([b.apply("tanh", b.apply("add", y, b.constant(1.5, dtype=F32)))]),
          "dot_general", "add", "tanh", "broadcast_in_dim")  # fmt: skip


def test_results_of_another_type() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    y = b.apply("reshape", product(b, "n"), shape=(N, 3, 2))
    y = b.apply("convert", y, dtype=BOOL)
    moved(b.build([y]), "dot_general", "convert", "reshape")


def stays(b: GraphBuilder, *outputs: Value) -> None:
    graph = b.build(list(outputs))
    assert PASS.run(graph) is graph


def test_what_stays() -> None:
    flip: dict[str, Any] = {"permutation": (1, 0)}

    def turned(*shape: int | str) -> tuple[GraphBuilder, Value, Value]:
        b = GraphBuilder("g", [Symbol("n")])
        y = product(b, *shape)
        return b, y, b.apply("transpose", y, **flip)

    b, y, z = turned("n")  # the product has another reader
    stays(b, b.apply("negate", z), b.apply("abs", y))
    b, y, z = turned("n")  # the movement has another reader
    stays(b, b.apply("negate", z), b.apply("abs", z))
    b, y, z = turned("n")  # both are results
    stays(b, z, b.apply("negate", z))
    b, y, z = turned("n")  # a whole operand would have to be turned
    stays(b, b.apply("add", z, b.input("z", F32, 6, "n")))
    b, y, z = turned(1)  # the operand is larger
    stays(b, b.apply("add", z, b.input("z", F32, 6, 3)))
    b = GraphBuilder("g", [Symbol("n")])  # [2, 3] of 6 columns, the same for all of the first two
    y = b.apply("reshape", product(b, "n"), shape=(N, 2, 3))
    stays(b, b.apply("add", y, b.constant(np.ones((1, 3), np.float32))))
    b = GraphBuilder("g")  # nothing to tell dimensions of an empty tensor by
    y = b.apply("reshape", product(b, 0), shape=(0, 2, 5))
    stays(b, b.apply("add", y, b.constant(np.ones((2, 5), np.float32))))
    b = GraphBuilder("g")  # no product
    stays(b, b.apply("negate", b.apply("transpose", b.apply("abs", b.input("x", F32, 2, 3)), **flip)))
    b = GraphBuilder("g", [Symbol("n")])  # a broadcast, and an operand that differs from row to row
    y = b.apply("broadcast_in_dim", product(b, "n"), shape=(3, N, 6), broadcast_dimensions=(1, 2))
    stays(b, b.apply("add", y, b.constant(np.ones((3, 1, 1), np.float32))))


def test_special_values_keep_their_bits() -> None:
    b = GraphBuilder("g")
    y = b.apply("transpose", product(b, 5), permutation=(1, 0))
    table: Array = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32).reshape(6, 1)
    check_pass(PASS, b.build([b.apply("multiply", b.apply("negate", y), b.constant(table))]))
