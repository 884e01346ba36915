"""Dead code and duplicates: what goes, what stays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.graphs import BOOL, F32, check_pass, operators
from tilework.dims import Symbol
from tilework.dtypes import uint64
from tilework.graph.graph import Graph
from tilework.graph.types import tensor
from tilework.ops.builder import GraphBuilder
from tilework.ops.verify import verify
from tilework.passes import merge_duplicates
from tilework.passes.eliminate_dead_code import EliminateDeadCode
from tilework.passes.merge_duplicates import MergeDuplicates
from tilework.passes.pipeline import Pipeline

DEAD, MERGE = EliminateDeadCode(), MergeDuplicates()


# -- dead code ---------------------------------------------------------------------------------------------------------
def test_unused_nodes_and_constants_go() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32, 3)
    b.input("unused", F32)
    b.apply("negate", b.apply("add", x, b.constant(1, dtype=F32)))
    found = check_pass(DEAD, b.build([b.apply("abs", x)]))
    assert operators(found) == ["abs"]
    assert found.constants == ()
    assert [v.name for v in found.inputs] == ["x", "unused"]
    assert DEAD.run(found) is found


def test_effects_stay() -> None:
    b = GraphBuilder("g")
    p = b.input("p", BOOL)
    token = b.apply("assert_true", b.token("t"), p, message="p holds")
    graph = b.build([token])
    assert DEAD.run(graph) is graph


def test_what_subgraphs_capture_is_alive() -> None:
    b = GraphBuilder("g")
    x, p = b.input("x", F32), b.input("p", BOOL)
    y = b.apply("abs", x)
    graphs: list[Graph] = []
    for name in ("then", "else"):
        inner = b.subgraph(name)
        z = inner.input(f"{name}_z", F32)
        inner.apply("negate", inner.apply("sine", z, names=f"{name}_a"), names=f"{name}_b")
        graphs.append(inner.build([inner.apply("add", z, y if name == "then" else z, names=f"{name}_r")]))
    found = check_pass(DEAD, b.build([b.apply("if", p, x, subgraphs=graphs)]))
    assert operators(found) == ["abs", "if", "add", "add"]


def test_what_binds_a_measured_symbol_stays() -> None:
    b = GraphBuilder("g", [Symbol("k", 0, 9, measured=True)])
    x = b.input("x", F32, 9)
    (places,) = b.black_box("NonZero", "onnx", x, results=[tensor(F32, "k")])
    b.apply("negate", places)
    found = DEAD.run(b.build([b.apply("abs", x)]))
    verify(found)
    assert operators(found) == ["NonZero", "abs"]


# -- duplicates --------------------------------------------------------------------------------------------------------
def test_equal_nodes_merge_through_chains() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32, 3)
    first, second = (b.apply("exponential", b.apply("add", x, b.constant(1, dtype=F32))) for _ in range(2))
    found = check_pass(MERGE, b.build([b.apply("multiply", first, second)]))
    assert operators(found) == ["add", "exponential", "multiply"]
    assert len(found.constants) == 1
    assert MERGE.run(found) is found


def test_attributes_and_types_tell_nodes_apart() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32, 3, 3)
    parts = [b.apply("reduce", x, dimensions=(d,), reducer=r) for d in (0, 1) for r in ("sum", "maximum")]
    parts.append(b.apply("reduce", x, dimensions=(0,), reducer="sum", keep_dimensions=True))
    graph = b.build(parts)
    assert MERGE.run(graph) is graph


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (1, 1.0), (True, 1)])
def test_keys_tell_apart_what_compares_equal(first: float, second: float) -> None:
    assert merge_duplicates._key(first) != merge_duplicates._key(second)  # pyright: ignore[reportPrivateUsage]
    nan = merge_duplicates._key((float("nan"),))  # pyright: ignore[reportPrivateUsage]
    assert nan == merge_duplicates._key((float("nan"),))  # pyright: ignore[reportPrivateUsage]


def test_constants_merge_by_bytes() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32)
    numbers = [b.constant(v, dtype=F32) for v in (0.0, -0.0, 0.0)]
    total = x
    for number in numbers:
        total = b.apply("divide", number, total)
    found = check_pass(MERGE, b.build([total, numbers[2]]))
    assert len(found.constants) == 3  # the third is an output
    found = check_pass(MERGE, b.build([total]))
    assert len(found.constants) == 2


def test_two_outputs_that_are_equal_stay_two() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32)
    found = check_pass(MERGE, b.build([b.apply("abs", x), b.apply("abs", x), b.apply("negate", b.apply("abs", x))]))
    assert operators(found) == ["abs", "abs", "negate"]


def test_random_bits_are_drawn_as_often_as_asked() -> None:
    b = GraphBuilder("g")
    key, counter = b.constant(np.array([1, 2], np.uint64)), b.constant(np.array([0], np.uint64))
    token = b.token("t")
    token, one = b.apply("random_bits", token, key, counter, shape=(4,), dtype=uint64)
    token, two = b.apply("random_bits", token, key, counter, shape=(4,), dtype=uint64)
    graph = b.build([token, b.apply("xor", one, two)])
    assert operators(MERGE.run(graph)).count("random_bits") == 2


def test_black_boxes_stay_apart() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32)
    pair = [b.black_box("Mystery", "onnx", x, results=[tensor(F32)])[0] for _ in range(2)]
    graph = b.build([b.apply("add", *pair)])
    assert MERGE.run(graph) is graph


def test_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32, 4, 4)
    kept, other = (b.apply("reverse", x, dimensions=(d,)) for d in (0, 1))
    graph = b.build([b.apply("subtract", kept, other)])
    check_pass(MERGE, graph)

    def blind(_: object) -> None:
        return None

    monkeypatch.setattr(merge_duplicates, "_key", blind)
    with pytest.raises(AssertionError):
        check_pass(MERGE, graph)


# -- the pipeline ------------------------------------------------------------------------------------------------------
def test_passes_work_together() -> None:
    b = GraphBuilder("g", [Symbol("n")])
    x = b.input("x", F32, "n", 4)
    one = b.apply("divide", b.constant(2, dtype=F32), b.constant(2, dtype=F32))
    back = b.apply("transpose", b.apply("transpose", x, permutation=(1, 0)), permutation=(1, 0))
    same = b.apply("multiply", back, one)
    total = b.apply("add", b.apply("exponential", x), b.apply("exponential", same))
    graph = b.build([total])
    found, history = Pipeline(verified=True).run_with_history(graph)
    check_pass(Pipeline(), graph, n=3)
    assert operators(found) == ["exponential", "add"]
    assert found.constants == ()
    assert {step.name for step in history} == {
        "fold_constants", "simplify_algebra", "merge_duplicates", "eliminate_dead_code"
    }  # fmt: skip
    assert history[-1].nodes_after == 2


def test_rounds_are_limited() -> None:
    b = GraphBuilder("g")
    x = b.apply("abs", b.input("x", F32))
    for _ in range(6):
        x = b.apply("negate", x)
    graph = b.build([x])
    assert Pipeline(round_limit=0).run(graph) is graph
    check_pass(Pipeline(round_limit=1), graph)
