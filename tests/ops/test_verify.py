"""The type verifier: every node against its operator's rule, everything at once, black boxes left alone."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.graph.random_graphs import nested
from tilework import dtypes
from tilework.dims import Symbol, dim
from tilework.errors import VerificationError
from tilework.graph.graph import Constant, Graph, Node, Value
from tilework.graph.types import ValueType, tensor
from tilework.ops.builder import GraphBuilder
from tilework.ops.verify import faults, verify

F32 = dtypes.float32


def graph(*nodes: Node, symbols: tuple[Symbol, ...] = ()) -> Graph:
    return Graph("g", (Value("x", tensor(F32, 2, 3)),), ("x",), nodes, symbols=symbols)


def node(
    operator: str, inputs: tuple[str, ...], kind: ValueType, name: str = "y", black_box: str = "", **attributes: Any
) -> Node:
    return Node(
        name, operator, inputs, (Value(name, kind),), MappingProxyType(attributes), (), "user's layer", black_box
    )


def codes(subject: Graph) -> list[int]:
    return [fault.code for fault in faults(subject)]


def test_recorded_types_must_be_the_inferred_ones() -> None:
    good = node("transpose", ("x",), tensor(F32, 3, 2), permutation=(1, 0))
    verify(graph(good))
    assert codes(graph(node("transpose", ("x",), tensor(F32, 2, 3), permutation=(1, 0)))) == [1226]
    assert codes(graph(node("transpose", ("x",), tensor(dtypes.int8, 3, 2), permutation=(1, 0)))) == [1226]
    two = Node("y", "abs", ("x",), (Value("y", tensor(F32, 2, 3)), Value("z", tensor(F32, 2, 3))))
    assert codes(graph(two)) == [1220]


def test_dims_that_bounds_make_equal_are_equal() -> None:
    symbols = (Symbol("N", 4),)
    attributes: dict[str, Any] = {"shape": (dim("N") % 64, 1)}
    made = Graph(
        "g", (), ("y",), (node("iota", (), tensor(F32, "N", 1), dimension=0, dtype=F32, **attributes),), symbols=symbols
    )
    assert codes(made) == [1226]
    assert codes(made.replace(symbols=(Symbol("N", 4, 63),))) == []


def test_unknown_operators_and_black_boxes() -> None:
    (fault,) = faults(graph(node("tranpose", ("x",), tensor(F32, 3, 2))))
    assert fault.code == 1227
    assert "nearest: transpose" in fault.message
    verify(graph(node("Unique", ("x",), tensor(F32, 9), black_box="onnx")))


def test_everything_is_reported_at_once_and_named() -> None:
    bad = graph(
        node("add", ("x", "x"), tensor(F32, 2), "a"),
        node("reshape", ("x",), tensor(F32, 7), "b", shape=(7,), axis=1),
        node("missing", ("x",), tensor(F32, 7), "c"),
        node("tanh", ("nowhere",), tensor(F32, 7), "d"),
        node("abs", ("b",), tensor(F32, 8), "d"),
    )
    with pytest.raises(VerificationError) as caught:
        verify(bad)
    assert sorted(fault.code for fault in caught.value.faults) == [1203, 1203, 1205, 1223, 1224, 1226, 1226, 1227]
    assert "user's layer (reshape)" in str(caught.value)


def test_subgraphs_are_looked_into() -> None:
    builder = GraphBuilder("g", [Symbol("N")])
    x = builder.input("x", F32, "N")
    p = builder.input("p", dtypes.boolean)
    branches: list[Graph] = []
    for name in ("then", "else"):
        inner = builder.subgraph(name)
        branches.append(inner.build([inner.apply_one("add", x, x)]))
    y = builder.apply("if", p, subgraphs=branches)
    whole = builder.build([y])
    verify(whole)
    (branch,) = whole.nodes
    wrong = branches[0].nodes[0]
    spoilt = Node(wrong.name, "and", wrong.inputs, wrong.outputs)
    broken = Node(
        branch.name, "if", branch.inputs, branch.outputs, subgraphs=(branches[0].replace(nodes=(spoilt,)), branches[1])
    )
    found = faults(whole.replace(nodes=(broken,)))
    assert {fault.code for fault in found} == {1222}
    assert all("if (if) > " in fault.where for fault in found)
    lone = Node("y", "abs", ("x",), (Value("y", tensor(F32, "N")),), subgraphs=(branches[0],))
    assert [f.code for f in faults(whole.replace(nodes=(lone,), outputs=("y",)))] == [1228]


def test_deep_graphs_and_bad_constants_are_reported_and_not_typed() -> None:
    assert codes(nested(2000)) == [1211]
    assert 1211 not in codes(nested(100))
    odd = graph(node("abs", ("c",), tensor(F32, 2))).replace(constants=(Constant("c", np.array(["a"])),))
    assert codes(odd) == [1212]
