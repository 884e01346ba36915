"""Folding: what is evaluated, and what is left alone and why."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.graphs import BOOL, F32, check_pass, operators
from tilework import dtypes
from tilework.dims import Symbol
from tilework.graph.graph import Graph
from tilework.graph.types import tensor
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.passes.fold_constants import FoldConstants

FOLD = FoldConstants()


def test_chains_of_constants_are_evaluated() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32, 2)
    c = b.apply("add", b.constant(np.array([1, 2], np.float32)), b.constant(3, dtype=F32))
    d = b.apply("reduce", b.apply("multiply", c, c), dimensions=(0,), reducer="sum", names="total")
    found = check_pass(FOLD, b.build([b.apply("add", x, d), d]))
    assert operators(found) == ["add"]
    assert float(found.constant_arrays["total"]) == 41
    assert not found.constant_arrays["total"].flags.writeable


def test_nothing_constant_is_the_same_graph() -> None:
    b = GraphBuilder("g")
    graph = b.build([b.apply("negate", b.input("x", F32, 2))])
    assert FOLD.run(graph) is graph


def test_broadcasts_are_carried_as_they_are() -> None:
    b = GraphBuilder("g")
    small = b.apply("broadcast_in_dim", b.constant(1, dtype=F32), shape=(100,), broadcast_dimensions=())
    large = b.apply("broadcast_in_dim", b.constant(1, dtype=F32), shape=(1000, 100), broadcast_dimensions=())
    graph = b.build([small, large])
    assert operators(check_pass(FOLD, graph)) == ["broadcast_in_dim"]
    assert operators(FoldConstants(growth_limit_bytes=1 << 20).run(graph)) == []
    b = GraphBuilder("g")
    weights = b.constant(np.zeros((1000, 100), np.float32))
    assert operators(FOLD.run(b.build([b.apply("transpose", weights, permutation=(1, 0))]))) == []


def test_work_is_limited() -> None:
    b = GraphBuilder("g")
    a = b.constant(np.ones((8, 8), np.float32))
    product = b.apply("dot_general", a, a, lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))
    graph = b.build([product])
    assert operators(FoldConstants(operation_limit=1023).run(graph)) == ["dot_general"]
    assert operators(FoldConstants(operation_limit=1024).run(graph)) == []


def test_symbolic_shapes_are_left() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    x = b.input("x", F32, "n")
    filled = b.apply("broadcast_in_dim", b.constant(1, dtype=F32), shape=x.tensor.shape, broadcast_dimensions=())
    held = b.apply("dimension_values", values=(x.tensor.shape[0], 3), shape=(2,))
    known = b.apply("dimension_values", values=(5, 3), shape=(2,))
    found = check_pass(FOLD, b.build([b.apply("add", x, filled), held, known]), n=4)
    assert operators(found) == ["broadcast_in_dim", "dimension_values", "add"]


def test_what_would_fail_is_left_to_the_run() -> None:
    b = GraphBuilder("g")
    taken = b.apply("take", b.constant(np.array([1, 2], np.float32)), b.constant(7, dtype=dtypes.int64), dimension=0)
    graph = b.build([taken])
    assert FOLD.run(graph) is graph


def test_effects_and_black_boxes_are_left() -> None:
    b = GraphBuilder("g")
    token = b.apply("assert_true", b.token("t"), b.constant(True, dtype=BOOL), message="fine")
    (box,) = b.black_box("Mystery", "onnx", b.constant(1, dtype=F32), results=[tensor(F32)])
    graph = b.build([token, box])
    assert FOLD.run(graph) is graph


def branch(outer: GraphBuilder, name: str) -> Graph:
    inner = outer.subgraph(name)
    x = inner.input(f"{name}_x", F32)
    two = inner.apply("add", "one", inner.constant(1, f"{name}_c", dtype=F32), names=f"{name}_two")
    return inner.build([inner.apply("multiply", x, two, names=f"{name}_y")])


def test_subgraphs_see_the_constants_around_them() -> None:
    b = GraphBuilder("g")
    x, p = b.input("x", F32), b.input("p", BOOL)
    b.constant(1, "one", dtype=F32)
    graph = b.build([b.apply("if", p, x, subgraphs=[branch(b, "then"), branch(b, "else")])])
    found = check_pass(FOLD, graph)
    assert operators(found) == ["if", "multiply", "multiply"]


def test_a_folded_value_is_what_the_interpreter_gives() -> None:
    g = np.random.default_rng(0)
    b = GraphBuilder("g")
    a = b.constant(g.standard_normal((3, 4)).astype(np.float32))
    graph = b.build([b.apply("softmax", b.apply("exponential", a), dimension=1)])
    (wanted,) = interpret(graph, [])
    (found,) = interpret(FOLD.run(graph), [])
    np.testing.assert_array_equal(found, wanted)


def test_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("g")
    graph = b.build([b.apply("add", b.constant(1, dtype=F32), b.constant(2, dtype=F32))])
    check_pass(FOLD, graph)
    monkeypatch.setattr("tilework.passes.fold_constants._held", np.negative)
    with pytest.raises(AssertionError):
        check_pass(FOLD, graph)
