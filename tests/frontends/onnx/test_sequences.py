"""Sequences and optionals: resolved at import, and at the boundary through the backend protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import tilework
from tests.frontends.onnx.models import codes_of, faults_of, run
from tilework.errors import CallError, FrontendError
from tilework.frontends.onnx import backend

F, L, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TENSORS = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F, None))


def info(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, None if shape == (None,) else shape)


def of_type(name: str, kind: Any) -> Any:
    return helper.make_value_info(name, kind)


def whole(nodes: list[Any], inputs: list[Any], outputs: list[Any], opset: Any = 18, **constants: Any) -> ModelProto:
    held = [
        helper.make_tensor(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, a.ravel())
        for n, a in constants.items()
    ]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs.split(","), outputs.split(","), name=operator.lower(), **attributes)


def number(value: int) -> Any:
    return np.array(value, np.int64)


def inserted(position: int | None, at: int) -> ModelProto:
    """x0, x1, x2 as a sequence, x3 put in at a position, then the element at another one."""
    nodes = [
        node("SequenceConstruct", "x0,x1,x2", "s"),
        node("SequenceInsert", "s,x3" if position is None else "s,x3,p", "t"),
        node("SequenceLength", "t", "n"), node("SequenceAt", "t,q", "y"),
    ]  # fmt: skip
    constants = {"q": number(at)} | ({} if position is None else {"p": number(position)})
    inputs = [info(f"x{k}", F, k + 1) for k in range(4)]
    return whole(nodes, inputs, [info("y", F, None), info("n", L)], **constants)


ROWS = [np.full(k + 1, k, np.float32) for k in range(4)]


@pytest.mark.parametrize("position", [None, 0, 1, 3, -1, -3])
def test_inserting(position: int | None) -> None:
    wanted = [0, 1, 2]
    wanted.insert(3 if position is None else position, 3)
    for at in (0, 1, 3, -1, -4):
        y, n = run(inserted(position, at), {f"x{k}": row for k, row in enumerate(ROWS)})
        np.testing.assert_array_equal(y, ROWS[wanted[at]])
        assert n == 4
        assert n.dtype == np.int64


@pytest.mark.parametrize(("position", "at"), [(4, 0), (-4, 0), (0, 4), (0, -5)])
def test_positions_outside(position: int, at: int) -> None:
    (code, text), *_ = faults_of(inserted(position, at))
    assert code == 1119
    assert "outside the sequence" in text


@pytest.mark.parametrize("position", [None, 0, -1, 1])
def test_erasing_and_joining(position: int | None) -> None:
    nodes = [
        node("SequenceConstruct", "x0,x1,x2", "s"), node("SequenceErase", "s" if position is None else "s,p", "t"),
        node("ConcatFromSequence", "t", "y", axis=0),
    ]  # fmt: skip
    constants = {} if position is None else {"p": number(position)}
    proto = whole(nodes, [info(f"x{k}", F, k + 1) for k in range(3)], [info("y", F, None)], **constants)
    left = ROWS[:3]
    del left[-1 if position is None else position]
    (y,) = run(proto, {f"x{k}": row for k, row in enumerate(ROWS[:3])})
    np.testing.assert_array_equal(y, np.concatenate(left))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_stacking(axis: int) -> None:
    nodes = [node("SequenceConstruct", "a,b", "s"), node("ConcatFromSequence", "s", "y", axis=axis, new_axis=1)]
    proto = whole(nodes, [info("a", F, "n", 3), info("b", F, "n", 3)], [info("y", F, None)])
    a, b = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    (y,) = run(proto, {"a": a, "b": b})
    np.testing.assert_array_equal(y, np.stack([a, b], axis))


@pytest.mark.parametrize("split", [None, 1, 2, 3, 7, [2, 0, 4], [6]])
@pytest.mark.parametrize("keep", [0, 1])
def test_splitting(split: Any, keep: int) -> None:
    proto = whole(
        [node("SplitToSequence", "x" if split is None else "x,p", "s", axis=1, keepdims=keep)],
        [info("x", F, 2, 6)], [of_type("s", TENSORS)],
        **({} if split is None else {"p": np.array(split, np.int64)}),
    )  # fmt: skip
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    (found,) = backend.prepare(proto).run([x])
    if split is None:
        wanted = list(np.split(x, 6, 1)) if keep else [x[:, k] for k in range(6)]
    else:
        sizes: list[int] = [split] * -(-6 // split) if isinstance(split, int) else list(split)
        wanted = np.split(x, [sum(sizes[:k]) for k in range(1, len(sizes))], 1)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_splitting_into_sizes_that_do_not_fit() -> None:
    nodes = [node("SplitToSequence", "x,p", "s"), node("SequenceAt", "s,q", "y")]
    for split in ([2, 2], [-1, 6], 0):
        proto = whole(nodes, [info("x", F, 5)], [info("y", F, None)], p=np.array(split, np.int64), q=number(0))
        assert codes_of(proto) == {1119}


def test_a_position_that_is_computed_picks_a_row() -> None:
    nodes = [node("SequenceConstruct", "a,b,a", "s"), node("SequenceAt", "s,q", "y")]
    proto = whole(nodes, [info("a", F, 3), info("b", F, 3), info("q", L)], [info("y", F, None)])
    a, b = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    compiled = tilework.compile(proto)
    for place, wanted in ((0, a), (1, b), (-1, a), (-2, b)):
        np.testing.assert_array_equal(compiled(a, b, number(place))[0], wanted)


def test_mapping() -> None:
    body = helper.make_graph(
        [node("Add", "e,w", "f"), node("Shape", "e", "g")], "body", [info("e", F, None), info("w", F, 1)],
        [info("f", F, None), info("g", L, None)],
    )  # fmt: skip
    proto = whole(
        [node("SequenceMap", "s,w", "t,u", body=body)], [of_type("s", TENSORS), info("w", F, 1)],
        [of_type("t", TENSORS), of_type("u", helper.make_sequence_type_proto(helper.make_tensor_type_proto(L, None)))],
    )  # fmt: skip
    prepared = backend.prepare(proto)
    w = np.array([10], np.float32)
    for count in (3, 0, 1, 3):
        t, u = prepared.run([ROWS[:count], w])
        assert [array.tolist() for array in t] == [(row + 10).tolist() for row in ROWS[:count]]
        assert [array.tolist() for array in u] == [[len(row)] for row in ROWS[:count]]


def test_optionals() -> None:
    kind = helper.make_optional_type_proto(TENSORS)
    nodes = [node("OptionalHasElement", "o", "h"), node("Identity", "o", "p")]
    prepared = backend.prepare(whole(nodes, [of_type("o", kind)], [info("h", B), of_type("p", kind)]))
    for given in (None, ROWS[:2], []):
        h, p = prepared.run([given])
        assert bool(h) == (given is not None)
        assert (p is None) == (given is None)
        assert given is None or [a.tolist() for a in p] == [a.tolist() for a in given]
    made = [node("Optional", "x", "o"), node("OptionalGetElement", "o", "y"), node("OptionalHasElement", "o", "h")]
    x = np.ones(3, np.float32)
    y, h = run(whole(made, [info("x", F, 3)], [info("y", F, None), info("h", B)]), {"x": x})
    np.testing.assert_array_equal(y, x)
    assert h
    empty = [
        helper.make_node("Optional", [], ["o"], type=helper.make_tensor_type_proto(F, [3])),
        node("OptionalGetElement", "o", "y"),
    ]
    assert codes_of(whole(empty, [info("x", F, 3)], [info("y", F, None)])) == {1119}


def test_branches_that_return_sequences() -> None:
    def branch(name: str, elements: str) -> Any:
        return helper.make_graph([node("SequenceConstruct", elements, name)], name, [], [of_type(name, TENSORS)])

    choice = helper.make_node("If", ["p"], ["s"], then_branch=branch("t", "a,b"), else_branch=branch("e", "b,a"))
    inputs = [info("p", B), info("a", F, 3), info("b", F, 3)]
    nodes = [choice, node("ConcatFromSequence", "s", "y", axis=0)]
    a, b = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    compiled = tilework.compile(whole(nodes, inputs, [info("y", F, None)]))
    np.testing.assert_array_equal(compiled(np.array(True), a, b)[0], np.concatenate([a, b]))
    np.testing.assert_array_equal(compiled(np.array(False), a, b)[0], np.concatenate([b, a]))
    # of different lengths: compiled for the value of the condition
    choice = helper.make_node("If", ["p"], ["s"], then_branch=branch("t", "a,b"), else_branch=branch("e", "b"))
    prepared = backend.prepare(whole([choice], inputs, [of_type("s", TENSORS)]))
    assert len(prepared.run([np.array(True), a, b])[0]) == 2
    assert len(prepared.run([np.array(False), a, b])[0]) == 1


def loop(trips: int) -> ModelProto:
    """Each trip puts the first elements of x, one more than before, into a sequence and collects its number."""
    body = helper.make_graph(
        [
            node("Identity", "c", "go"), node("Unsqueeze", "i,zero", "low"), node("Add", "low,one", "end"),
            node("Slice", "x,zero,end", "part"), node("SequenceInsert", "held,part", "t"), node("Cast", "i", "f", to=F),
        ],
        "body", [info("i", L), info("c", B), of_type("held", TENSORS)],
        [info("go", B), of_type("t", TENSORS), info("f", F)],
    )  # fmt: skip
    nodes = [
        helper.make_node("SequenceEmpty", [], ["start"], dtype=F),
        helper.make_node("Loop", ["trips", "", "start"], ["s", "rows"], body=body),
        node("ConcatFromSequence", "s", "y", axis=0),
    ]
    constants = {"trips": number(trips), "zero": np.zeros(1, np.int64), "one": np.ones(1, np.int64)}
    return whole(nodes, [info("x", F, 5)], [info("y", F, None), info("rows", F, None)], **constants)


def test_loops_over_sequences_are_unrolled() -> None:
    x = np.random.default_rng(0).standard_normal(5).astype(np.float32)
    y, rows = run(loop(3), {"x": x})
    np.testing.assert_array_equal(y, np.concatenate([x[:1], x[:2], x[:3]]))
    np.testing.assert_array_equal(rows, np.arange(3, dtype=np.float32))
    assert 1124 in codes_of(loop(10**6))


def test_sequences_at_the_boundary_need_the_backend() -> None:
    given = whole([node("SequenceAt", "s,q", "y")], [of_type("s", TENSORS)], [info("y", F, None)], q=number(0))
    assert codes_of(given) == {1115}
    returned = whole([node("SequenceConstruct", "x", "s")], [info("x", F, 2)], [of_type("s", TENSORS)])
    assert codes_of(returned) == {1115}
    declared = whole([node("SequenceConstruct", "x", "s")], [info("x", F, 2)], [info("s", F, 2)])
    with pytest.raises(FrontendError) as caught:
        backend.prepare(declared)
    assert caught.value.code == 1125


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 1701), ([ROWS[:2], ROWS[0]], 1701), ([ROWS[0]], 1709), ([[np.zeros(2)]], 1702), ([["word"]], 1709),
        ([None], 1709),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(arguments: list[Any], code: int) -> None:
    proto = whole([node("SequenceLength", "s", "n")], [of_type("s", TENSORS)], [info("n", L)])
    with pytest.raises(CallError) as caught:
        backend.prepare(proto).run(arguments)
    assert caught.value.code == code


def test_operands_that_do_not_fit() -> None:
    inputs = [info("x", F, 2), info("i", L, 2)]
    for nodes in (
        [node("SequenceLength", "x", "y")], [node("SequenceConstruct", "x,i", "s"), node("SequenceLength", "s", "y")],
        [node("SequenceConstruct", "x", "s"), node("SequenceInsert", "s,i", "t"), node("SequenceLength", "t", "y")],
        [node("SequenceConstruct", "x", "s"), node("Relu", "s", "y")],
    ):  # fmt: skip
        assert codes_of(whole(nodes, inputs, [info("y", F, None)])) <= {1117, 1119, 1125}
