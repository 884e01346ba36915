"""The rules of form: well-formed graphs pass, and each kind of fault is found, together with all the others."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.graph.random_graphs import RandomGraph, nested
from tilework import dtypes
from tilework.dims import Dim, Symbol, dim, parse_dim
from tilework.errors import VerificationError
from tilework.graph.graph import (
    Attribute,
    Constant,
    Graph,
    GraphSignature,
    InputPolicy,
    Node,
    OutputPolicy,
    Value,
)
from tilework.graph.types import TokenType, ValueType, tensor
from tilework.graph.verify import structure_faults, verify

F32 = dtypes.float32
KIND = tensor(F32, 2)


def node(
    name: str, inputs: Sequence[str], kind: ValueType = KIND, subgraphs: tuple[Graph, ...] = (), **attributes: Any
) -> Node:
    return Node(name, "op", tuple(inputs), (Value(name, kind),), MappingProxyType(attributes), subgraphs)


def graph(nodes: Sequence[Node], outputs: Sequence[str] = ("x",), **changes: Any) -> Graph:
    return Graph("g", (Value("x", KIND),), tuple(outputs), tuple(nodes)).replace(**changes)


def found(subject: Graph) -> list[tuple[int, str]]:
    return [(fault.code, fault.message) for fault in structure_faults(subject)]


def codes(subject: Graph) -> list[int]:
    return [code for code, _ in found(subject)]


def test_random_graphs_are_well_formed_but_for_their_signature() -> None:
    for seed in range(60):
        assert [
            fault for fault in structure_faults(RandomGraph(seed).graph().replace(signature=None)) if fault.code != 1203
        ] == []


def test_a_small_graph_passes() -> None:
    verify(graph([node("a", ["x"]), node("b", ["a", "x"])], ["b", "b", "x"]))


def test_duplicate_names() -> None:
    assert codes(graph([node("x", [])])) == [1203]
    assert codes(graph([node("", [])])) == [1203, 1210]
    assert codes(graph([], constants=(Constant("x", np.zeros(2, np.float32)),))) == [1203]
    twice = Node("n", "op", (), (Value("a", KIND),)), Node("n", "op", (), (Value("b", KIND),))
    assert found(graph(twice)) == [(1203, "2 nodes are named 'n'")]
    inner = Graph("inner", (), ("x",), (node("x", []),))
    assert found(graph([node("a", [], subgraphs=(inner,))])) == [
        (1203, "value 'x' hides one of a graph around this one")
    ]


def test_order_and_cycles() -> None:
    late = graph([node("b", ["a"]), node("a", ["x"])], ["b"])
    assert found(late) == [(1204, "it reads 'a' before the node that defines it")]
    cycle = graph([node("a", ["c"]), node("b", ["a"]), node("c", ["b"])], ["c"])
    assert found(cycle) == [(1204, "it reads 'c' through the cycle a -> b -> c -> a")]
    assert found(graph([node("a", ["a"])], ["a"])) == [(1204, "it reads 'a' through the cycle a -> a")]
    inner = Graph("inner", (), ("i",), (node("i", ["later"]),))
    nested_late = graph([node("a", [], subgraphs=(inner,)), node("later", [])])
    assert codes(nested_late) == [1204]
    through = Graph("inner", (), ("i",), (node("i", ["a"]),))
    assert codes(graph([node("a", [], subgraphs=(through,))])) == [1204]


def test_unknown_names() -> None:
    assert found(graph([node("a", ["xx"])])) == [(1205, "nothing defines 'xx'; nearest: x")]
    assert codes(graph([], ["nowhere"])) == [1205]
    inner = Graph("inner", (), ("i",), (node("i", ["x", "hidden"]),))
    other = Graph("other", (), ("hidden",), (node("hidden", []),))
    assert found(graph([node("a", [], subgraphs=(inner, other))])) == [
        (1205, "nothing defines 'hidden'; nearest: i")
    ] or codes(graph([node("a", [], subgraphs=(inner, other))])) == [1205]
    assert codes(graph([node("a", [], subgraphs=(other,)), node("b", ["hidden"])])) == [1205]


def test_tokens_are_used_once() -> None:
    token = (Value("x", KIND), Value("t", TokenType()))
    chain = [node("u", ["t"], TokenType()), node("v", ["u"], TokenType())]
    verify(graph(chain, ["v"], inputs=token))
    assert found(graph(chain, ["x"], inputs=token)) == [
        (1206, "token 'v' is dropped; it must go to one node or output")
    ]
    forked = [node("u", ["t"], TokenType()), node("v", ["t"], TokenType())]
    assert codes(graph(forked, ["u", "v"], inputs=token)) == [1206]
    inside = Graph("inner", (), ("i",), (node("i", ["t"], TokenType()),))
    verify(graph([node("u", [], TokenType(), (inside, inside.replace(name="other")))], ["u"], inputs=token))
    both = Graph("inner", (), ("i", "j"), (node("i", ["t"], TokenType()), node("j", ["t"], TokenType())))
    assert codes(graph([node("u", [], TokenType(), (both,))], ["u"], inputs=token)) == [1206]


def policies(inputs: Sequence[InputPolicy], outputs: Sequence[OutputPolicy]) -> list[str]:
    subject = graph(
        [node("a", ["x"], tensor(F32, 3))], ["x", "a"], signature=GraphSignature(tuple(inputs), tuple(outputs))
    )
    assert set(codes(subject)) <= {1207}
    return [message for _, message in found(subject)]


def test_signatures() -> None:
    read, fresh = InputPolicy(), OutputPolicy()
    assert policies([read], [fresh, fresh]) == []
    assert policies([InputPolicy("mutated", 0)], [OutputPolicy("alias", 0), fresh]) == []
    assert policies([read], [OutputPolicy("view", 0, (dim(1),), dim(0)), fresh]) == []
    for inputs, outputs, words in (
        ([], [fresh, fresh], "0 policies for 1 inputs"),
        ([read], [fresh], "1 policies for 2 outputs"),
        ([InputPolicy("mutated")], [fresh, fresh], "names the output"),
        ([InputPolicy("read", 0)], [fresh, fresh], "names the output"),
        ([InputPolicy("mutated", 2)], [fresh, fresh], "no output 2"),
        ([InputPolicy("mutated", 1)], [fresh, fresh], "output 1 is float32[3], the input is float32[2]"),
        ([read], [OutputPolicy("alias"), fresh], "names its input"),
        ([read], [OutputPolicy("fresh", 0), fresh], "names its input"),
        ([read], [OutputPolicy("alias", 1), fresh], "no input 1"),
        ([read], [fresh, OutputPolicy("alias", 0)], "alias of x"),
        ([read], [OutputPolicy("view", 0), fresh], "has that many strides"),
        ([read], [OutputPolicy("alias", 0, (dim(1),)), fresh], "belong to a view"),
    ):
        (message,) = policies(inputs, outputs)
        assert words in message
    signed = Graph("inner", (), (), (), signature=GraphSignature((), ()))
    assert codes(graph([node("a", [], subgraphs=(signed,))])) == [1207]
    undeclared = GraphSignature((read,), (OutputPolicy("view", 0, (dim("S"),)),))
    assert codes(graph([], signature=undeclared)) == [1208]


def test_symbols_and_dims() -> None:
    typed = graph([node("a", ["x"], tensor(F32, "N", dim("M") + 1), shape=(dim("K"), (dim("K"),)))])
    assert codes(typed) == [1208] * 4
    verify(typed.replace(symbols=(Symbol("N"), Symbol("M"), Symbol("K", measured=True))))
    assert found(typed.replace(symbols=(Symbol("N"), Symbol("M"), Symbol("Kk"))))[0][1].endswith(
        "(declared and near: Kk)"
    )
    bad = (
        Symbol("A"),
        Symbol("A"),
        Symbol("B", 3, 2),
        Symbol("C", multiple=0),
        Symbol("D", -1),
        Symbol("not a name"),
        Symbol("if"),
    )
    assert codes(graph([], symbols=bad)) == [1208] * 6
    inner = Graph("inner", (), (), (), symbols=(Symbol("N"),))
    assert codes(graph([node("a", [], subgraphs=(inner,))], symbols=(Symbol("N"),))) == [1208]
    assert codes(graph([node("a", [], tensor(F32, -1))])) == [1209]
    assert codes(graph([node("a", [], tensor(F32, parse_dim("x[0]")))])) == [1209]


def test_values_that_no_array_can_hold() -> None:
    """Up to 64 dimensions and 2**63 - 1 bytes, extents of 0 counted as 1, symbols at the least they may be."""
    for shape in ((1,) * 64, (2**61 - 1,), (2**40, 0, 2**20), (2**60, "n")):
        assert codes(graph([node("a", [], tensor(F32, *shape))], symbols=(Symbol("n"),))) == []
    for shape, words in (
        ((1,) * 65, "65 dimensions"), ((2**61,), f"needs {2**63} bytes"), ((2**40, 0, 2**40), "2**63 or more"),
        ((2**61, "n"), "needs at least"), ((2**59, "m"), "needs at least"), ((parse_dim("n") + 2**63,), "at least"),
    ):  # fmt: skip
        subject = graph([node("a", [], tensor(F32, *shape))], symbols=(Symbol("n"), Symbol("m", 4)))
        ((code, text),) = found(subject)
        assert code == 1213
        assert words in text


def test_nodes_constants_and_attributes() -> None:
    assert codes(graph([Node("", "", (), ())])) == [1210] * 3
    for array in (np.array(["text"]), np.array([object()]), np.zeros(2, np.dtype(np.float32).newbyteorder())):
        subject = graph([node("a", ["c"])], constants=(Constant("c", array),))
        assert codes(subject) == [1212]
    deep: Attribute = ()
    for _ in range(5000):
        deep = (deep,)
    assert codes(graph([node("a", [], axes=deep)])) == [1211]
    odd: Any = [1, 2]
    assert found(graph([node("a", [], axes=(1, odd))])) == [(1224, "list is no kind of attribute")]


def test_nesting() -> None:
    assert codes(nested(101)) == [1211]
    assert codes(nested(3000)) == [1211]
    verify(nested(100))


def test_every_fault_is_reported_at_once_with_its_place() -> None:
    inner = Graph("body", (), ("i",), (node("i", ["nothing"]),))
    broken = graph(
        [
            Node("n", "op", ("gone",), (Value("x", KIND),), location="layer 3"),
            node("m", ["m"], tensor(F32, "N"), (inner,)),
        ],
        ["lost"],
    )
    with pytest.raises(VerificationError) as caught:
        verify(broken)
    assert sorted(fault.code for fault in caught.value.faults) == [1203, 1204, 1205, 1205, 1205, 1208]
    text = str(caught.value)
    assert "layer 3 (op)" in text
    assert "m (op) > subgraph body" in text or "m (op) > i (op)" in text
    assert "graph g has 6 faults" in text


def test_dims_of_plain_integers_are_no_symbols() -> None:
    assert Dim() == 0
    verify(graph([node("a", [], tensor(F32, 0, 1, 7))]))
