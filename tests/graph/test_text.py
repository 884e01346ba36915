"""The text form: what it looks like, that it comes back, and what the parser says of broken text."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graph.random_graphs import RandomGraph, nested
from tilework import dtypes
from tilework.dims import Symbol, dim
from tilework.errors import GraphError, ParseError
from tilework.graph.equal import difference, equal, same_attribute
from tilework.graph.graph import (
    Attribute,
    Constant,
    Graph,
    GraphSignature,
    InputPolicy,
    Node,
    OutputPolicy,
    Value,
    captured,
    nesting,
    subgraphs,
    walk,
)
from tilework.graph.parse import parse
from tilework.graph.text import constants_by_digest, to_text
from tilework.graph.types import TokenType, tensor

F32 = dtypes.float32


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 2, 100]))
def test_random_graphs_come_back(seed: int, inline: int) -> None:
    graph = RandomGraph(seed).graph()
    text = to_text(graph, inline)
    found = parse(text, constants_by_digest(graph))
    assert difference(graph, found) is None
    assert to_text(found, inline) == text


def test_inline_constants_need_no_arrays() -> None:
    for seed in range(30):
        graph = RandomGraph(seed).graph()
        assert equal(parse(to_text(graph, 1000)), graph)


def sample() -> Graph:
    x = Value("x", tensor(F32, "N", 4))
    then = Graph(
        "then", (), ("doubled",), (Node("doubled", "add", ("h", "h"), (Value("doubled", tensor(F32, "N", 2)),)),)
    )
    otherwise = Graph("else", (), ("h_1",), (Node("h_1", "negate", ("h",), (Value("h_1", tensor(F32, "N", 2)),)),))
    weights = Constant("w", np.arange(8, dtype=np.float32).reshape(4, 2))
    bias = Constant("b", np.array([0.5, -np.inf], np.float32))
    dot = MappingProxyType[str, Attribute]({"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)})
    reshape = MappingProxyType[str, Attribute](
        {"shape": (dim("N") * 2,), "note": 'a "b"', "scale": 1.0, "to": F32, "on": True}
    )
    nodes = (
        Node("dot", "dot_general", ("x", "w"), (Value("h", tensor(F32, "N", 2)),), dot, location="/fc/MatMul"),
        Node("branch", "if", ("p",), (Value("y", tensor(F32, "N", 2)),), subgraphs=(then, otherwise)),
        Node("flat", "reshape", ("y",), (Value("flat", tensor(F32, dim("N") * 2)),), reshape),
        Node(
            "onnx::Unique", "Unique", ("flat", "t"), (Value("u", tensor(F32, "K")), Value("t_1", TokenType())),
            black_box="onnx",
        ),
    )  # fmt: skip
    signature = GraphSignature(
        (InputPolicy("donated"), InputPolicy(noncontiguous="refuse"), InputPolicy()),
        (OutputPolicy(), OutputPolicy("view", 0, (dim(4), dim(1)), dim(0)), OutputPolicy()),
    )
    return Graph(
        "sample", (x, Value("p", tensor(dtypes.boolean)), Value("t", TokenType())), ("u", "y", "t_1"), nodes,
        (weights, bias),
        (Symbol("N", 1, 64, 4), Symbol("K", measured=True)), signature,
    )  # fmt: skip


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("sample.graph", to_text(sample()))
    golden("sample_inline.graph", to_text(sample(), 8))


def test_comments_and_spacing_do_not_matter() -> None:
    text = to_text(sample(), 8)
    spaced = "# a comment\n" + text.replace("\n", "   # { } \n\n").replace(": ", " :  ").replace("(", "( ")
    assert equal(parse(spaced), sample())


BROKEN = [
    ("", "line 1, column 1", "expected 'graph'"),
    ("graph g {", "line 1, column 10", "the end of the text"),
    ("graph g { input x: float33[2] }", "line 1, column 20", "nearest: float32"),
    ("graph g {\n  input x: float32[2\n}", "line 2, column 20", "']' is missing"),
    ("graph g {\n  input x: float32[2,,3]\n}", "line 2, column 22", "a dimension is missing"),
    ("graph g { input x: float32[2 ** 3] }", "line 1, column 28", "no part of a symbolic integer"),
    ("graph g { y: float32[] = add(x,) }", "line 1, column 32", "expected a name"),
    ("graph g { y: float32[] = add(x) {a: } }", "line 1, column 37", "element type"),
    ("graph g { y: float32[] = add(x) {a: 1, a: 2} }", "line 1, column 40", "given twice"),
    ("graph g { = add(x) }", "line 1, column 20", "must be named"),
    ("graph g { symbol N in 1 }", "line 1, column 25", "'..'"),
    ("graph g { symbol N in 1.5.. }", "line 1, column 23", "expected an integer"),
    ("graph g { constant c: float32[2] = [1.0] }", "line 1, column 20", "2 elements, 1 are given"),
    ("graph g { constant c: uint8[1] = [300] }", "line 1, column 20", "300 is no element of type uint8"),
    ("graph g { constant c: int8[1] = [1.5] }", "line 1, column 20", "no element"),
    ("graph g { constant c: bool[1] = [1] }", "line 1, column 20", "no element"),
    ("graph g { constant c: float32[N] = [1.0] }", "line 1, column 20", "known shape"),
    ('graph g { constant c: float32[1] = bytes "00" }', "line 1, column 20", "not the bytes"),
    ("graph g { input x: float32[] donated }", "line 1, column 38", "'signature'"),
    ("graph g { } graph", "line 1, column 13", "goes on"),
    ("graph g { § }", "line 1, column 11", "begins nothing"),
    ('graph "g', "line 1, column 7", "begins nothing"),
    ("graph g { y: float32[] = f() {a: <1, 2>} }", "line 1, column 34", "one symbolic integer"),
]


@pytest.mark.parametrize(("text", "where", "message"), BROKEN)
def test_broken_text_is_refused_with_its_place(text: str, where: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.code == 1202
    assert message in str(caught.value)
    line, column = where.split(", ")
    assert caught.value.where.startswith(line)
    assert abs(int(caught.value.where.split()[-1]) - int(column.split()[-1])) <= 3


def refusal(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None


@given(st.integers(0, 2**32 - 1), st.data())
def test_damaged_text_is_a_coded_error_or_a_graph(seed: int, data: st.DataObject) -> None:
    text = to_text(RandomGraph(seed).graph(), 4)
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 20, len(text))))
    broken = text[:start] + data.draw(st.text(max_size=4)) + text[stop:]
    error = refusal(broken)
    if error is not None:
        assert error.code in (1202, 1211, 1212)
        assert error.where.startswith("line ")


def test_constants_that_are_missing_or_others_are_refused() -> None:
    graph = sample()
    text = to_text(graph)
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.code == 1212
    wrong = {"w": np.zeros((4, 2), np.float32), "b": graph.constant_arrays["b"]}
    with pytest.raises(ParseError, match="w is not float32"):
        parse(text, wrong)
    assert equal(parse(text, graph.constant_arrays), graph)


def test_nesting_is_limited_and_never_a_recursion_error() -> None:
    fits, deep = nested(100), nested(3000)
    assert (nesting(fits), nesting(deep)) == (100, 3000)
    assert equal(parse(to_text(fits)), fits)
    for act in (lambda: to_text(deep), lambda: equal(deep, deep)):
        with pytest.raises(GraphError) as caught:
            act()
        assert caught.value.code == 1211
    text = "graph g { y: float32[] = if() with " * 3000
    with pytest.raises(ParseError) as refused:
        parse(text)
    assert refused.value.code == 1211
    with pytest.raises(ParseError) as refused:
        parse("graph g { y: float32[] = f() {a: " + "(" * 5000)
    assert refused.value.code == 1211
    with pytest.raises(ParseError):
        parse("graph g { input x: float32[" + "(" * 50000 + "] }")
    assert len(list(walk(deep))) == 3000
    assert captured(deep) == ()
    assert captured(deep.nodes[0].subgraphs[0]) == ("x",)


def test_captured_sees_each_subgraph_alone() -> None:
    kind = tensor(F32)
    first = Graph("first", (Value("a", kind),), ("a",), ())
    second = Graph("second", (), ("s",), (Node("s", "add", ("a", "outside"), (Value("s", kind),)),))
    outer = Graph("outer", (), ("y",), (Node("y", "if", ("p",), (Value("y", kind),), subgraphs=(first, second)),))
    assert captured(outer) == ("p", "a", "outside")
    assert [(graph.name, depth) for graph, depth in subgraphs(outer)] == [("outer", 0), ("first", 1), ("second", 1)]
    assert [node.name for node in walk(outer)] == ["y", "s"]


def test_attributes_of_different_kinds_differ() -> None:
    kinds: list[Attribute] = [1, 1.0, True, "1", F32, dim("N"), (1,), (1.0,), 0.0, -0.0, float("nan"), ()]
    for place, one in enumerate(kinds):
        assert [same_attribute(one, other) for other in kinds] == [k == place for k in range(len(kinds))]
    assert same_attribute((2, dim(3)), (dim(2), 3))
    assert not same_attribute(1, True)


def test_every_part_counts_in_equality() -> None:
    graph = sample()
    changes = [
        {"name": "other"}, {"inputs": graph.inputs[:2]}, {"outputs": ("y", "u", "t_1")}, {"nodes": graph.nodes[:3]},
        {"constants": graph.constants[:1]}, {"symbols": graph.symbols[:1]}, {"signature": None},
        {"constants": (graph.constants[0], Constant("b", np.array([0.5, np.inf], np.float32)))},
    ]  # fmt: skip
    for change in changes:
        assert difference(graph, graph.replace(**change)) is not None
    for place, node in enumerate(graph.nodes):
        altered = Node(
            node.name, node.operator, node.inputs, node.outputs, node.attributes, node.subgraphs[:1], "elsewhere"
        )
        assert not equal(graph, graph.replace(nodes=(*graph.nodes[:place], altered, *graph.nodes[place + 1 :])))
