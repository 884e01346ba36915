"""Control flow: type rules over subgraphs, and evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tilework import dtypes
from tilework.errors import GraphError, VerificationError
from tilework.graph.graph import Graph, Node, Value
from tilework.graph.types import TensorType, TokenType, tensor
from tilework.loops.program import buffer
from tilework.ops.builder import GraphBuilder
from tilework.ops.operator import Array, TypeFaults
from tilework.ops.registry import operator

F32, BOOL = dtypes.float32, dtypes.boolean


class Double:
    """An interpreter of straight subgraphs, enough to run one node of control flow."""

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self.symbols = symbols
        self.runs = 0

    def attributes(self, node: Node) -> Mapping[str, Any]:
        return node.attributes

    def result_types(self, node: Node) -> tuple[TensorType, ...]:
        types = [value.type for value in node.outputs if isinstance(value.type, TensorType)]
        return tuple(tensor(t.dtype, *(int(d.evaluate(self.symbols)) for d in t.shape)) for t in types)

    def evaluate(self, subgraph: Graph, arguments: Sequence[Array]) -> tuple[Array, ...]:
        self.runs += 1
        held: dict[str, Array] = {v.name: a for v, a in zip(subgraph.inputs, arguments, strict=True)}
        held.update(subgraph.constant_arrays)
        for node in subgraph.nodes:
            found = operator(node.operator).run(node, [held[name] for name in node.inputs], self)
            held.update(zip((value.name for value in node.outputs), found, strict=True))
        return tuple(held[name] for name in subgraph.outputs)


def unary(name: str, kind: str, *shape: int | str) -> Graph:
    inner = GraphBuilder(name)
    x = inner.input(f"{name}_x", F32, *shape)
    return inner.build([inner.apply(kind, x)])


def run(node: Node, *arrays: Array, **symbols: int) -> tuple[Array, ...]:
    return operator(node.operator).run(node, arrays, Double(symbols))


def codes(name: str, operands: Sequence[Any], subgraphs: Sequence[Graph], **attributes: Any) -> list[int]:
    with pytest.raises(TypeFaults) as caught:
        operator(name).infer_node(operands, attributes, subgraphs)
    return [fault.code for fault in caught.value.faults]


def last(builder: GraphBuilder, *outputs: Value) -> Node:
    return builder.build(outputs).nodes[-1]


# -- if ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("decision", [True, False])
def test_if_runs_one_branch(decision: bool) -> None:
    builder = GraphBuilder("g")
    pred, x = builder.input("p", BOOL), builder.input("x", F32, "n")
    branches = unary("then", "negate", "n"), unary("else", "abs", "n")
    node = last(builder, builder.apply("if", pred, x, subgraphs=branches))
    assert node.output.type == tensor(F32, "n")
    values = np.array([1, -2], np.float32)
    (found,) = run(node, np.asarray(decision), values, n=2)
    np.testing.assert_array_equal(found, -values if decision else np.abs(values))


def test_faults_of_if() -> None:
    good = unary("then", "negate", "n")
    pred, x = tensor(BOOL), tensor(F32, "n")
    assert codes("if", [pred, x], [good]) == [1228]
    assert codes("if", [], [good, good]) == [1220]
    assert codes("if", [tensor(F32), x], [good, good]) == [1229]
    assert codes("if", [tensor(BOOL, 1), x], [good, good]) == [1229]
    assert codes("if", [pred, x], [good, unary("else", "negate", "m")]) == [1229, 1229]
    assert codes("if", [pred], [good, good]) == [1229, 1229]
    assert codes("if", [pred, x], [good, good], likely=True) == [1224]
    assert codes("if", [pred, x], [good, Graph("else", good.inputs, ("outside",), ())]) == [1229, 1229]


# -- while -------------------------------------------------------------------------------------------------------------
def loop(limit: float) -> tuple[Graph, Graph]:
    condition = GraphBuilder("condition")
    x = condition.input("cx", F32)
    decide = condition.build([condition.apply("compare", x, condition.constant(limit, dtype=F32), direction="LT")])
    body = GraphBuilder("body")
    x = body.input("bx", F32)
    return decide, body.build([body.apply("add", x, body.constant(1, dtype=F32))])


@pytest.mark.parametrize(("start", "end"), [(0, 5), (5, 5), (9, 9), (4.5, 5.5)])
def test_while_repeats(start: float, end: float) -> None:
    builder = GraphBuilder("g")
    node = last(builder, builder.apply("while", builder.input("x", F32), subgraphs=loop(5)))
    (found,) = run(node, np.asarray(start, np.float32))
    assert float(found) == end


def test_faults_of_while() -> None:
    decide, body = loop(1)
    assert codes("while", [tensor(F32)], [decide]) == [1228]
    assert codes("while", [tensor(F32, 2)], [decide, body]) == [1229]
    assert codes("while", [tensor(F32)], [unary("condition", "negate", "n"), body]) == [1229, 1229]
    assert codes("while", [tensor(F32)], [body, body]) == [1229]
    builder = GraphBuilder("g")
    x = builder.input("x", F32)
    with pytest.raises(VerificationError) as caught:
        builder.apply("while", x, subgraphs=(body, decide), location="loop 7")
    assert "loop 7" in str(caught.value)


# -- scan --------------------------------------------------------------------------------------------------------------
def running_sum() -> Graph:
    body = GraphBuilder("body")
    total, x = body.input("total", F32), body.input("x", F32)
    new = body.apply("add", total, x)
    return body.build([new, body.apply("multiply", new, body.constant(10, dtype=F32))])


def scanned(reverse: bool) -> Node:
    builder = GraphBuilder("g")
    total, xs = builder.input("t", F32), builder.input("xs", F32, "n")
    results = builder.apply("scan", total, xs, subgraphs=[running_sum()], state_count=1, reverse=reverse)
    return last(builder, *results)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_scan(reverse: bool, length: int) -> None:
    node = scanned(reverse)
    assert [value.type for value in node.outputs] == [tensor(F32), tensor(F32, "n")]
    xs = np.arange(1, length + 1, dtype=np.float32)
    total, parts = run(node, np.asarray(100, np.float32), xs, n=length)
    assert float(total) == 100 + xs.sum()
    sums = 100 + (np.cumsum(xs[::-1])[::-1] if reverse else np.cumsum(xs))
    np.testing.assert_array_equal(parts, (10 * sums).astype(np.float32))


def test_faults_of_scan() -> None:
    body, state, xs = running_sum(), tensor(F32), tensor(F32, "n")
    assert codes("scan", [state, xs], [], state_count=1) == [1228]
    assert codes("scan", [state, xs], [body]) == [1224, 1223]
    assert codes("scan", [state, xs], [body], state_count=2) == [1225]
    assert codes("scan", [state, state], [body], state_count=1) == [1223]
    assert codes("scan", [state, xs, tensor(F32, "m")], [body], state_count=1) == [1223, 1229]
    assert codes("scan", [state, tensor(dtypes.int32, "n")], [body], state_count=1) == [1229]
    token = Value("k", TokenType())
    returns_token = Graph("body", (token, Value("x", state)), ("k", "k"), ())
    assert codes("scan", [TokenType(), xs], [returns_token], state_count=1) == [1229]


@pytest.mark.parametrize("name", ["if", "while", "scan"])
def test_control_flow_has_no_definition(name: str) -> None:
    with pytest.raises(GraphError) as caught:
        operator(name).define([buffer("x", F32)], [buffer("y", F32)], {})
    assert caught.value.code == 1230
    with pytest.raises(GraphError):
        operator(name).reference([], {}, [])
