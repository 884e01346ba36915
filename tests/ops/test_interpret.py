"""The graph interpreter: symbols, subgraphs, tokens, black boxes, wrong inputs, and planted bugs that it catches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.graph.random_graphs import nested
from tests.ops.checking import interpreted, same
from tilework import dtypes
from tilework.dims import Symbol, dim
from tilework.errors import GraphError, RunError
from tilework.graph.graph import Graph, Node, Value
from tilework.graph.types import TensorType, tensor
from tilework.ops import interpret as interpret_module
from tilework.ops.builder import GraphBuilder
from tilework.ops.interpret import interpret
from tilework.ops.operator import TOKEN, Array
from tilework.ops.registry import operator

F32 = dtypes.float32


def layers() -> Graph:
    builder = GraphBuilder("layers", [Symbol("N", 1, 64)])
    x = builder.input("x", F32, "N", 4)
    w = builder.constant(np.arange(12, dtype=np.float32).reshape(4, 3), "w")
    h = builder.apply_one(
        "dot_general",
        x,
        w,
        lhs_batching_dimensions=(),
        rhs_batching_dimensions=(),
        lhs_contracting_dimensions=(1,),
        rhs_contracting_dimensions=(0,),
    )
    y = builder.apply_one("maximum", h, builder.constant(0.0, dtype=F32))
    return builder.build([y, builder.apply_one("reshape", y, shape=[dim("N") * 3]), x])


def test_a_small_network() -> None:
    generator = np.random.default_rng(0)
    for n in (1, 2, 7):
        x = generator.integers(-5, 5, (n, 4)).astype(np.float32)
        y, flat, again = interpret(layers(), [x])
        np.testing.assert_array_equal(y, np.maximum(x @ np.arange(12, dtype=np.float32).reshape(4, 3), 0))
        np.testing.assert_array_equal(flat, y.reshape(-1))
        np.testing.assert_array_equal(again, x)
        assert not np.shares_memory(again, x)
        assert all(np.array_equal(a, b) for a, b in zip(interpret(layers(), {"x": x}), (y, flat, x), strict=True))


def refused(graph: Graph, inputs: Mapping[str, Any] | Sequence[Any], symbols: Mapping[str, int] | None = None) -> int:
    with pytest.raises(GraphError) as caught:
        interpret(graph, inputs, symbols or {})
    return caught.value.code


def test_wrong_inputs() -> None:
    x = np.zeros((2, 4), np.float32)
    assert refused(layers(), []) == 1240
    assert refused(layers(), {"x": x, "z": x}) == 1240
    assert refused(layers(), {"y": x}) == 1240
    assert refused(layers(), [x.astype(np.float64)]) == 1240
    assert refused(layers(), [x.astype(x.dtype.newbyteorder())]) == 1240
    assert refused(layers(), [np.zeros(2, np.float32)]) == 1240
    assert refused(layers(), [np.zeros((2, 5), np.float32)]) == 1240
    assert refused(layers(), [np.array([["a"]])]) == 1240
    assert refused(layers(), [np.zeros((65, 4), np.float32)]) == 1241
    assert refused(layers(), [x], {"N": 3}) == 1240
    assert refused(layers(), [x], {"M": 3}) == 1241


def test_symbols_are_solved_from_expressions() -> None:
    builder = GraphBuilder("g", [Symbol("N"), Symbol("M"), Symbol("S", multiple=4)])
    builder.input("x", F32, dim("N") * 2 + 1, dim("N") + dim("M"))
    values = builder.apply_one("dimension_values", values=(dim("N"), dim("M"), dim("S")), shape=(3,))
    graph = builder.build([values])
    (found,) = interpret(graph, [np.zeros((7, 10), np.float32)], {"S": 8})
    assert found.tolist() == [3, 7, 8]
    assert refused(graph, [np.zeros((7, 10), np.float32)]) == 1241
    assert refused(graph, [np.zeros((7, 10), np.float32)], {"S": 6}) == 1241
    assert refused(graph, [np.zeros((8, 10), np.float32)], {"S": 8}) == 1241


def test_if_and_captured_values() -> None:
    builder = GraphBuilder("g", [Symbol("N")])
    x, p = builder.input("x", F32, "N"), builder.input("p", dtypes.boolean)
    two = builder.constant(np.float32(2), "two")
    then = builder.subgraph("then")
    inner = then.subgraph("inner")
    doubled = inner.build([inner.apply_one("multiply", x, two)])
    nested_if = then.apply("if", p, subgraphs=[doubled, doubled])
    other = builder.subgraph("else")
    y = builder.apply("if", p, subgraphs=[then.build([nested_if]), other.build([other.apply_one("negate", x)])])
    graph = builder.build([y])
    x_values = np.array([1, -2, 3], np.float32)
    (yes,) = interpret(graph, [x_values, np.array(True)])
    (no,) = interpret(graph, {"p": np.array(False), "x": x_values})
    assert yes.tolist() == [2, -4, 6]
    assert no.tolist() == [-1, 2, -3]


def test_tokens_order_effects() -> None:
    builder = GraphBuilder("g")
    token = builder.token()
    x = builder.input("x", F32, 3)
    key = builder.constant(np.array([1, 2], np.uint64))
    counter = builder.constant(np.array([0], np.uint64))
    token, bits = builder.apply("random_bits", token, key, counter, shape=(5,), dtype=dtypes.uint32)
    positive = builder.apply("compare", x, builder.constant(0.0, dtype=F32), direction="GT")
    token = builder.apply("assert_true", token, positive, message="x must be positive", location="check/x")
    graph = builder.build([bits, token])
    found, last = interpret(graph, [np.ones(3, np.float32)])
    assert found.shape == (5,)
    assert last.shape == TOKEN.shape
    with pytest.raises(RunError, match="x must be positive") as caught:
        interpret(graph, [np.zeros(3, np.float32)])
    assert caught.value.code == 1242
    assert caught.value.where == "check/x (assert_true)"


@pytest.mark.parametrize(
    ("name", "attributes", "bad"),
    [
        ("slice", {"start_indices": (0,), "limit_indices": (5,)}, 4),
        ("slice", {"start_indices": (dim("N") - 3,), "limit_indices": (dim("N"),)}, 2),
        ("pad", {"edge_padding_low": (-3,), "edge_padding_high": (0,)}, 2),
        ("pad_reflect", {"low": (1,), "high": (0,), "mode": "edge"}, 0),
    ],
)
def test_requirements_are_checked_when_a_graph_runs(name: str, attributes: dict[str, Any], bad: int) -> None:
    builder = GraphBuilder("g", [Symbol("N")])
    x = builder.input("x", F32, "N")
    operands = [x, builder.constant(0.0, dtype=F32)] if name == "pad" else [x]
    graph = builder.build([builder.apply(name, *operands, **attributes)])
    assert operator(name).requirements([v.type for v in operands], graph.nodes[0].attributes)
    interpret(graph, [np.zeros(9, np.float32)])
    interpret(graph, [np.zeros(bad + 1, np.float32)])
    with pytest.raises(RunError) as caught:
        interpret(graph, [np.zeros(bad, np.float32)])
    assert caught.value.code == 1242
    assert ">= 0" in str(caught.value)


def test_black_boxes_and_measured_symbols() -> None:
    builder = GraphBuilder("g", [Symbol("N"), Symbol("K", 0, 4, measured=True)])
    x = builder.input("x", F32, "N")
    (found,) = builder.black_box("Unique", "onnx", x, results=[tensor(F32, "K")])
    size = builder.apply("dimension_values", values=(dim("K"),), shape=(1,))
    graph = builder.build([builder.apply("negate", found), size])

    def unique(_: Node, operands: Sequence[Array]) -> list[Array]:
        return [np.unique(operands[0])]

    values, measured = interpret(graph, [np.array([3, 1, 3], np.float32)], black_boxes={"Unique": unique})
    assert values.tolist() == [-1, -3]
    assert measured.tolist() == [2]
    assert refused(graph, [np.zeros(1, np.float32)]) == 1243
    with pytest.raises(GraphError) as caught:
        interpret(graph, [np.arange(9, dtype=np.float32)], black_boxes={"Unique": unique})
    assert caught.value.code == 1241
    with pytest.raises(GraphError) as caught:
        interpret(graph, [np.zeros(1, np.float32)], black_boxes={"Unique": lambda _, operands: [*operands, *operands]})
    assert caught.value.code == 1226


def test_deep_nesting_is_refused_or_works() -> None:
    assert refused(nested(1500), [np.zeros((), np.float32)]) == 1211
    kind = tensor(F32)
    graph = Graph("last", (), ("end",), (Node("end", "negate", ("x",), (Value("end", kind),)),))
    other = graph.replace(name="other")
    for level in range(100):
        node = Node(f"n{level}", "if", ("p",), (Value(f"v{level}", kind),), MappingProxyType({}), (graph, other))
        graph = Graph(f"g{level}", (), (f"v{level}",), (node,))
    deep = graph.replace(inputs=(Value("p", tensor(dtypes.boolean)), Value("x", kind)))
    (found,) = interpret(deep, [np.array(True), np.array(5, np.float32)])
    assert found == -5


def test_a_planted_bug_in_a_reference_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1.5, -2.5, np.nan], np.float32)
    same(interpreted("negate", [x]), operator("negate").reference([x], {}, [tensor(F32, 3)])[0])

    def wrong(_: Any, value: Array) -> Array:
        return np.abs(value)

    monkeypatch.setattr(type(operator("negate")), "of", wrong)
    with pytest.raises(AssertionError):
        same(interpreted("negate", [x]), operator("negate").reference([x], {}, [tensor(F32, 3)])[0])


@pytest.mark.parametrize("bug", ["shape", "dtype"])
def test_results_of_the_wrong_type_are_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    def wrong(_: Any, operands: Sequence[Array], __: Any, results: Sequence[TensorType]) -> tuple[Array, ...]:
        return (operands[0][:1] if bug == "shape" else operands[0].astype(np.float64),)

    monkeypatch.setattr(type(operator("negate")), "reference", wrong)
    builder = GraphBuilder("g", [Symbol("N")])
    graph = builder.build([builder.apply("negate", builder.input("x", F32, "N"))])
    assert refused(graph, [np.zeros(3, np.float32)]) == 1226


def test_a_planted_bug_in_the_order_of_values_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropping values one node too early is a fault of the interpreter that its own look-ups report."""
    last_uses = interpret_module._last_uses
    assert last_uses(layers())

    def early(graph: Graph) -> dict[int, list[str]]:
        return {place - 1: names for place, names in last_uses(graph).items()}

    monkeypatch.setattr(interpret_module, "_last_uses", early)
    builder = GraphBuilder("g")
    x = builder.input("x", F32, 2)
    a = builder.apply("negate", x)
    b = builder.apply("abs", a)
    graph = builder.build([builder.apply("add", b, a)])
    assert refused(graph, [np.zeros(2, np.float32)]) == 1205
