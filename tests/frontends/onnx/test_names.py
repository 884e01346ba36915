"""Names of values in graphs, bodies and branches: captured outputs, and names that hide those outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import tilework
from tilework import dtypes
from tilework.frontends.onnx.rename import rename_values
from tilework.graph.graph import Graph, walk
from tilework.graph.verify import verify
from tilework.ops.builder import GraphBuilder

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
GOES_ON = "graph = body(int64 i, bool c, float[?,?] s) => (bool co, float[?,?] so) "


def check(text: str, wanted: list[Any], **feed: Any) -> None:
    """A model that ONNX's checker takes returns what is wanted."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]>\n{text}')
    onnx.checker.check_model(proto, full_check=True)  # pyright: ignore[reportUnknownMemberType]
    found = tilework.compile(proto.SerializeToString())(**feed)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("outputs", ["float[a,3] t, float[?,?] z", "float[?,?] z, float[a,3] t", "float[?,?] z"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_value_that_a_body_captures_may_be_an_output(outputs: str, count: int) -> None:
    body = f"<body: {GOES_ON} {{ so = Add(s, t) co = Identity(c) }}>"
    t = np.maximum(X, 0)
    wanted = [t if part.endswith("t") else X + count * t for part in outputs.split(", ")]
    text = f"g (float[a,3] x, int64 n) => ({outputs}) {{ t = Relu(x) z = Loop(n, , x) {body} }}"
    check(text, wanted, x=X, n=np.array(count))


def test_a_branch_inside_a_body_may_read_an_output_too() -> None:
    inner = "so = If(p) <then_branch: graph = a() => (float[?,?] u) { u = Add(s, t) }, "
    inner += "else_branch: graph = b() => (float[?,?] u) { u = Mul(t, t) }>"
    body = f"<body: {GOES_ON} {{ co = Identity(c) {inner} }}>"
    text = (
        f"g (float[a,3] x, int64 n, bool p) => (float[?,?] z, float[a,3] t) {{ t = Relu(x) z = Loop(n, , x) {body} }}"
    )
    for choice in (True, False):
        t = np.maximum(X, 0)
        check(text, [X + 2 * t if choice else t * t, t], x=X, n=np.array(2), p=np.array(choice))


@pytest.mark.parametrize("given", ["bool p", "bool q"])
def test_a_branch_may_call_its_output_as_the_node_does(given: str) -> None:
    branches = "then_branch: graph = a() => (float[?,?] y) { y = Tanh(x) }, "
    branches += "else_branch: graph = b() => (float[?,?] y) { w = Relu(x) y = Neg(w) }"
    for choice in (True, False):
        held = f"<bool p = {{{int(choice)}}}>" if given == "bool q" else ""
        text = f"g (float[a,3] x, {given}) => (float[?,?] y) {held} {{ y = If(p) <{branches}> }}"
        check(text, [np.tanh(X) if choice else -np.maximum(X, 0)], x=X, **{given[-1]: np.array(choice)})


def test_a_body_may_call_its_outputs_as_later_values_are_called() -> None:
    body = f"<body: {GOES_ON.replace(' so)', ' y)')} {{ co = Identity(c) z = Tanh(s) y = Add(z, s) }}>"
    text = f"g (float[a,3] x, int64 n) => (float[?,?] z, float[?,?] y) {{ y = Loop(n, , x) {body} z = Neg(y) }}"
    once = np.tanh(X) + X
    twice = np.tanh(once) + once
    check(text, [-twice, twice], x=X, n=np.array(2))


def test_nodes_out_of_order_are_found_through_a_subgraph() -> None:
    """What a body reads from around it counts, what it defines itself does not."""
    body = f"<body: {GOES_ON} {{ co = Identity(c) k = Mul(s, t) so = Add(k, s) }}>"
    text = f"g (float[a,3] x, int64 n) => (float[?,?] k) {{ y = Loop(n, , x) {body} t = Relu(x) k = Neg(y) }}"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]>\n{text}')  # not for ONNX's checker
    state = X
    for _ in range(2):
        state = state * np.maximum(X, 0) + state
    np.testing.assert_allclose(tilework.compile(proto.SerializeToString())(X, np.array(2))[0], -state)


# -- renaming ----------------------------------------------------------------------------------------------------------
def nested(inner_names: tuple[str, str]) -> Graph:
    """y = doubled while it is below 4, each trip adding the captured t; the body calls values by `inner_names`."""
    builder = GraphBuilder("g")
    x = builder.input("x", dtypes.float32)
    t = builder.apply_one("negate", x, names="t")
    condition, body = builder.subgraph("condition"), builder.subgraph("body")
    state = condition.input("state", dtypes.float32)
    asked = condition.build([condition.apply_one("compare", state, t, direction="LT")])
    state = body.input("held", dtypes.float32)
    doubled = body.apply_one("add", state, state, names=inner_names[0])
    grown = body.build([body.apply_one("add", doubled, t, names=inner_names[1])])
    (y,) = builder.apply_all("while", [x], {}, subgraphs=[asked, grown], names=["y"])
    return builder.build([y, t])


@pytest.mark.parametrize("inner", [("u", "v"), ("out", "v"), ("u", "out"), ("out_0", "out")])
@pytest.mark.parametrize("names", [{"t": "out"}, {"t": "x"}, {"t": "out", "y": "t"}, {"t": "u", "y": "v"}])
def test_renaming_reaches_into_subgraphs(inner: tuple[str, str], names: dict[str, str]) -> None:
    graph = nested(inner)
    found = rename_values(graph, names)
    verify(found)
    assert found.outputs == (names.get("y", "y"), names["t"])
    assert [node.operator for node in walk(found)] == [node.operator for node in walk(graph)]
    (loop,) = (node for node in found.nodes if node.subgraphs)
    assert loop.subgraphs[0].nodes[0].inputs[1] == names["t"]
    first, second = loop.subgraphs[1].nodes
    assert second.inputs == (first.outputs[0].name, names["t"])
    assert not {value.name for value in (*first.outputs, *second.outputs)} & set(names.values())
