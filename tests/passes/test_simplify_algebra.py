"""Each rule of simplification: where it applies, and the close calls where it must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import BOOL, F32, I32, Random, check_pass, operators
from tilework import dtypes
from tilework.dims import Symbol
from tilework.graph.graph import Graph, Value
from tilework.graph.types import tensor
from tilework.ops.builder import GraphBuilder
from tilework.passes._rewriting import Scope
from tilework.passes.simplify_algebra import SimplifyAlgebra

SIMPLIFY = SimplifyAlgebra()
Grow = Callable[[GraphBuilder, Value], Value]


def simplified(grow: Grow, dtype: dtypes.DType = F32, *shape: int | str) -> list[str]:
    """The operators that are left of what `grow` makes of a value that a node computes."""
    b = GraphBuilder("g", [Symbol("n")])
    x = b.apply("or" if dtype == BOOL else "add", b.input("x", dtype, *shape), b.input("y", dtype, *shape))
    graph = b.build([grow(b, x)])
    found = SIMPLIFY.run(graph)
    for n in (1, 3):
        if dtype in (F32, I32, BOOL):
            found = check_pass(SIMPLIFY, graph, seed=n, n=n)
    return operators(found)[1:]


def with_number(name: str, number: float, dtype: dtypes.DType = F32, swap: bool = False) -> list[str]:
    def grow(b: GraphBuilder, x: Value) -> Value:
        pair = [x, b.constant(number, dtype=dtype)]
        return b.apply(name, *(pair[::-1] if swap else pair))

    return simplified(grow, dtype, "n", 3)


@pytest.mark.parametrize(
    ("name", "number", "dtype", "both"),
    [("add", -0.0, F32, True), ("subtract", 0.0, F32, False), ("multiply", 1.0, F32, True),
     ("divide", 1.0, F32, False),
     ("maximum", -np.inf, F32, True), ("minimum", np.inf, F32, True), ("add", 0, I32, True),
     ("subtract", 0, I32, False),
     ("multiply", 1, I32, True), ("divide", 1, I32, False), ("maximum", -(2**31), I32, True), ("and", -1, I32, True),
     ("minimum", 2**31 - 1, I32, True), ("or", 0, I32, True), ("xor", 0, I32, True), ("shift_left", 0, I32, False),
     ("shift_right_logical", 0, I32, False), ("and", True, BOOL, True), ("or", False, BOOL, True)],
)  # fmt: skip
def test_neutral_operands_vanish(name: str, number: float, dtype: dtypes.DType, both: bool) -> None:
    assert with_number(name, number, dtype) == []
    assert with_number(name, number, dtype, swap=True) == ([] if both else [name])


@pytest.mark.parametrize(
    ("name", "number"),
    [("add", 0.0), ("subtract", -0.0), ("multiply", 0.0), ("multiply", -1.0), ("divide", -1.0), ("maximum", 0.0),
     ("maximum", np.inf), ("add", np.nan), ("power", 1.0)],
)  # fmt: skip
def test_what_is_not_neutral_stays(name: str, number: float) -> None:
    assert with_number(name, number) == [name]


def test_a_neutral_operand_that_broadcasts_stays() -> None:
    def times_ones(*shape: int) -> Grow:
        return lambda b, x: b.apply("multiply", x, b.constant(np.ones(shape, np.float32)))

    assert simplified(times_ones(2, 1), F32, 3) == ["multiply"]
    assert simplified(times_ones(1, 3), F32, 2, 3) == []
    assert simplified(times_ones(0, 3), F32, 1, 3) == ["multiply"]


def test_operations_that_undo_each_other() -> None:
    assert simplified(lambda b, x: b.apply("negate", b.apply("negate", x)), F32, 3) == ["negate"]
    assert simplified(lambda b, x: b.apply("not", b.apply("not", x)), BOOL, 3) == ["not"]
    assert simplified(lambda b, x: b.apply("negate", b.apply("abs", x)), F32, 3) == ["abs", "negate"]


def test_select() -> None:
    def chosen(value: bool) -> Grow:
        return lambda b, x: b.apply("select", b.constant(value, dtype=BOOL), x, b.apply("negate", x))

    assert simplified(chosen(True), F32, 3) == ["negate"]  # the negation is dead, not gone
    assert simplified(chosen(False), F32, 3) == ["negate"]
    assert simplified(lambda b, x: b.apply("select", b.input("p", BOOL, 3), x, x), F32, 3) == []
    assert simplified(lambda b, x: b.apply("select", b.input("p", BOOL, 2, 3), x, x), F32, 3) == ["select"]


def through(*path: dtypes.DType) -> Grow:
    def grow(b: GraphBuilder, x: Value) -> Value:
        for dtype in path:
            x = b.apply("convert", x, dtype=dtype)
        return x

    return grow


def test_conversions() -> None:
    d = dtypes
    assert simplified(through(d.float32), F32, 3) == []
    assert simplified(through(d.float64, d.float32), F32, 3) == ["convert"]  # the first is dead
    assert simplified(through(d.float64, d.float16), F32, 3) == ["convert", "convert"]  # both from the source
    assert simplified(through(d.float16, d.float32), F32, 3) == ["convert", "convert"]
    assert simplified(through(d.int32, d.float32), F32, 3) == ["convert", "convert"]
    assert simplified(through(d.int64, d.int32), I32, 3) == ["convert"]
    assert simplified(through(d.float32, d.int32), I32, 3) == ["convert", "convert"]
    assert simplified(through(d.float64, d.int32), I32, 3) == ["convert"]
    assert simplified(through(d.float32, d.boolean), BOOL, 3) == ["convert"]


def test_a_conversion_through_a_wider_type_skips_it() -> None:
    b = GraphBuilder("g")
    x = b.input("x", dtypes.float16, 3)
    wide = b.apply("convert", x, dtype=dtypes.float64)
    found = SIMPLIFY.run(b.build([b.apply("convert", wide, dtype=F32)]))
    assert found.nodes[-1].inputs == ("x",)
    # an integer made a float saturates, made an integer at once it wraps: the way matters
    b = GraphBuilder("g")
    x = b.input("x", I32, 3)
    wide = b.apply("convert", x, dtype=dtypes.float64)
    graph = b.build([b.apply("convert", wide, dtype=dtypes.int8)])
    assert SIMPLIFY.run(graph) is graph


def test_movements_of_nothing() -> None:
    def first(columns: int) -> Grow:
        return lambda b, x: b.apply(
            "slice", x, start_indices=(0, 0), limit_indices=(x.tensor.shape[0], columns), strides=(1, 1)
        )

    assert simplified(first(3), F32, "n", 3) == []
    assert simplified(first(2), F32, "n", 3) == ["slice"]
    assert simplified(lambda b, x: b.apply("reshape", x, shape=x.tensor.shape), F32, "n", 3) == []
    assert simplified(lambda b, x: b.apply("transpose", x, permutation=(0, 1)), F32, "n", 3) == []
    assert simplified(lambda b, x: b.apply("concatenate", x, dimension=0), F32, "n", 3) == []
    assert simplified(lambda b, x: b.apply("reverse", x, dimensions=()), F32, "n", 3) == []
    assert simplified(lambda b, x: b.apply("reverse", x, dimensions=(1,)), F32, 2, 1) == []
    assert simplified(
        lambda b, x: b.apply("broadcast_in_dim", x, shape=x.tensor.shape, broadcast_dimensions=(0, 1)), F32, "n", 3
    ) == []  # fmt: skip
    zero: dict[str, Any] = {"edge_padding_low": (0, 0), "edge_padding_high": (0, 0)}
    assert simplified(lambda b, x: b.apply("pad", x, b.constant(5, dtype=F32), **zero), F32, "n", 3) == []
    assert simplified(lambda b, x: b.apply("reduce", x, dimensions=(), reducer="sum"), F32, "n", 3) == []


def test_empty_operands_of_a_concatenation() -> None:
    def grow(b: GraphBuilder, x: Value) -> Value:
        empty = b.constant(np.zeros((0, 3), np.float32))
        return b.apply("concatenate", empty, x, empty, x, dimension=0)

    b = GraphBuilder("g")
    x = b.input("x", F32, 2, 3)
    found = check_pass(SIMPLIFY, b.build([grow(b, x)]))
    assert found.nodes[0].inputs == ("x", "x")


def test_movements_that_undo_each_other() -> None:
    def twice(name: str, **attributes: Any) -> Grow:
        return lambda b, x: b.apply(name, b.apply(name, x, **attributes), **attributes)

    assert simplified(twice("transpose", permutation=(1, 0)), F32, "n", 3) == ["transpose"]
    assert simplified(twice("reverse", dimensions=(0, 1)), F32, "n", 3) == ["reverse"]

    b = GraphBuilder("g")
    x = b.input("x", F32, 2, 3, 5)
    y = b.apply("transpose", b.apply("transpose", x, permutation=(1, 2, 0)), permutation=(0, 2, 1))
    z = b.apply("reshape", b.apply("reshape", x, shape=(30,)), shape=(5, 6))
    w = b.apply("broadcast_in_dim", x, shape=(4, 2, 3, 5), broadcast_dimensions=(1, 2, 3))
    w = b.apply("broadcast_in_dim", w, shape=(4, 2, 7, 3, 5), broadcast_dimensions=(0, 1, 3, 4))
    found = check_pass(SIMPLIFY, b.build([y, z, w]))
    for name in found.outputs:
        assert found.producers[name].inputs == ("x",)
    assert found.producers[y.name].attributes["permutation"] == (1, 0, 2)


def test_movements_that_are_reshapes() -> None:
    assert simplified(lambda b, x: b.apply("transpose", x, permutation=(1, 0, 2)), F32, 1, "n", 3) == ["reshape"]
    assert simplified(lambda b, x: b.apply("transpose", x, permutation=(1, 0, 2)), F32, 2, "n", 3) == ["transpose"]

    def spread(b: GraphBuilder, x: Value) -> Value:
        return b.apply("broadcast_in_dim", x, shape=(1, x.tensor.shape[0], 1, 3), broadcast_dimensions=(1, 3))

    def turned(b: GraphBuilder, x: Value) -> Value:
        return b.apply("broadcast_in_dim", x, shape=(3, 3), broadcast_dimensions=(1, 0))

    assert simplified(spread, F32, "n", 3) == ["reshape"]
    assert simplified(turned, F32, 3, 3) == ["broadcast_in_dim"]


def test_reductions_of_single_elements() -> None:
    def reduced(reducer: str) -> Grow:
        return lambda b, x: b.apply("reduce", x, dimensions=(1,), reducer=reducer)

    assert simplified(reduced("maximum"), F32, "n", 1) == ["reshape"]
    assert simplified(reduced("product"), F32, "n", 1) == ["reshape"]
    assert simplified(reduced("sum"), F32, "n", 1) == ["reduce"]  # -0.0 becomes +0.0
    assert simplified(reduced("sum"), I32, "n", 1) == ["reshape"]
    assert simplified(reduced("maximum"), F32, 1, "n") == ["reduce"]


# -- names of outputs --------------------------------------------------------------------------------------------------
def plus_nothing(*outputs: str) -> Graph:
    b = GraphBuilder("g")
    x = b.input("x", F32, 3)
    y = b.apply("abs", x, names="y")
    b.apply("multiply", y, b.constant(1, dtype=F32), names="z")
    b.apply("multiply", x, b.constant(1, dtype=F32), names="w")
    return b.build(outputs)


def test_outputs_keep_their_names() -> None:
    found = check_pass(SIMPLIFY, plus_nothing("z"))
    assert found.producers["z"].operator == "abs"
    found = check_pass(SIMPLIFY, plus_nothing("y", "z"))  # both names are promised: the copy stays
    assert found.producers["z"].operator == "multiply"
    found = check_pass(SIMPLIFY, plus_nothing("w"))  # the input cannot take the name
    assert found.producers["w"].operator == "multiply"
    check_pass(SIMPLIFY, plus_nothing("z", "z", "x"))


def test_renamed_values_are_renamed_inside_subgraphs() -> None:
    b = GraphBuilder("g")
    x, p = b.input("x", F32), b.input("p", BOOL)
    y = b.apply("abs", x, names="y")
    graphs: list[Graph] = []
    for name in ("then", "else"):
        inner = b.subgraph(name)
        z = inner.input(f"{name}_z", F32)
        graphs.append(inner.build([inner.apply("add", z, y, names=f"{name}_r")]))
    last = b.apply("multiply", y, b.constant(1, dtype=F32), names="out")
    found = check_pass(SIMPLIFY, b.build([b.apply("if", p, x, subgraphs=graphs), last]))
    assert found.producers["out"].operator == "abs"
    assert found.nodes[1].subgraphs[0].nodes[0].inputs == ("then_z", "out")


def test_black_boxes_are_no_operators() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32)
    (y,) = b.black_box("negate", "onnx", x, results=[tensor(F32)])
    graph = b.build([b.apply("negate", y)])
    assert SIMPLIFY.run(graph) is graph


def test_planted_bugs_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def any_constant(scope: Scope, name: str, _: float) -> bool:
        return scope.array(name) is not None

    monkeypatch.setattr("tilework.passes._arithmetic_rules._is_uniform", any_constant)
    caught = 0
    for seed in range(25):
        try:
            check_pass(SIMPLIFY, Random(seed).graph(), seed, n=3)
        except AssertionError:
            caught += 1
    assert caught > 5
