"""Decided branches: what replaces the `if`, and under which names."""

from __future__ import annotations

import pytest

from tests.passes.graphs import BOOL, F32, check_pass, operators
from tilework.graph.graph import Graph, Value
from tilework.ops.builder import GraphBuilder
from tilework.passes.inline_branches import InlineBranches
from tilework.passes.pipeline import Pipeline

INLINE = InlineBranches()


def branch(outer: GraphBuilder, *kinds: str, returns: tuple[str, ...] = ("last",)) -> Graph:
    """A chain of operators on the input `in`, a constant added; both branches use the same names."""
    inner = outer.subgraph("branch")
    x = inner.input("in", F32)
    value: Value = inner.apply("add", x, inner.constant(2, "two", dtype=F32), names="first")
    for n, kind in enumerate(kinds):
        value = inner.apply(kind, value, names="last" if n == len(kinds) - 1 else f"step_{n}")
    return inner.build(returns)


@pytest.mark.parametrize("decision", [True, False])
def test_a_decided_branch_takes_the_place_of_its_if(decision: bool) -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32)
    graphs = branch(b, "abs", "sine"), branch(b, "negate")
    y = b.apply("if", b.constant(decision, dtype=BOOL), x, subgraphs=graphs, names="y")
    found = check_pass(INLINE, b.build([b.apply("sqrt", y), y]))
    assert operators(found) == (["add", "abs", "sine"] if decision else ["add", "negate"]) + ["sqrt"]
    assert INLINE.run(found) is found


def test_an_open_branch_stays() -> None:
    b = GraphBuilder("g")
    x, p = b.input("x", F32), b.input("p", BOOL)
    graph = b.build([b.apply("if", p, x, subgraphs=(branch(b, "abs"), branch(b, "negate")))])
    assert INLINE.run(graph) is graph


def test_equal_names_of_branches_are_told_apart() -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32)
    for _ in range(3):
        graphs = branch(b, "abs", "sine"), branch(b, "negate", "abs")
        x = b.apply("if", b.constant(True, dtype=BOOL), x, subgraphs=graphs)
    found = check_pass(INLINE, b.build([x]))
    assert operators(found) == ["add", "abs", "sine"] * 3


def test_what_a_branch_passes_on() -> None:
    def graph(returns: tuple[str, ...], *outputs: int) -> Graph:
        b = GraphBuilder("g")
        x = b.apply("abs", b.input("x", F32))
        graphs = branch(b, "sine", returns=returns), branch(b, "negate", returns=returns)
        results = b.apply("if", b.constant(False, dtype=BOOL), x, subgraphs=graphs)
        used = b.apply("add", *results)
        return b.build([used, *(results[n] for n in outputs)])

    assert operators(check_pass(INLINE, graph(("last", "in")))) == ["abs", "add", "negate", "add"]
    assert operators(check_pass(INLINE, graph(("last", "last")))) == ["abs", "add", "negate", "add"]
    assert operators(check_pass(INLINE, graph(("two", "last"), 0))) == ["abs", "add", "negate", "add"]
    # a result that is a graph output keeps its name, and so its `if`
    assert "if" in operators(check_pass(INLINE, graph(("last", "in"), 1)))
    assert "if" in operators(check_pass(INLINE, graph(("last", "last"), 0, 1)))


def test_nested_branches_are_inlined_one_by_one() -> None:
    b = GraphBuilder("g")
    x, p = b.input("x", F32), b.input("p", BOOL)
    b.constant(True, "yes", dtype=BOOL)
    graphs: list[Graph] = []
    for name in ("then", "else"):
        inner = b.subgraph(name)
        y = inner.input(f"{name}_y", F32)
        deeper = branch(inner, "abs"), branch(inner, "negate", "sine")
        graphs.append(inner.build([inner.apply("if", "yes", y, subgraphs=deeper, names=f"{name}_z")]))
    graph = b.build([b.apply("if", p, x, subgraphs=graphs)])
    assert operators(check_pass(INLINE, graph)) == ["if", "add", "abs", "add", "abs"]
    decided = b.apply("if", "yes", x, subgraphs=graphs)
    found = check_pass(Pipeline(verified=True), b.build([decided]))
    assert operators(found) == ["add", "abs"]


def test_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder("g")
    x = b.input("x", F32, 3)
    graphs = [b.subgraph("then"), b.subgraph("else")]
    built = [
        g.build([g.apply(kind, g.input(f"{kind}_x", F32, 3), names=kind)])
        for g, kind in zip(graphs, ("abs", "sign"), strict=True)
    ]
    graph = b.build([b.apply("if", b.constant(True, dtype=BOOL), x, subgraphs=built)])
    check_pass(INLINE, graph)

    def other(_: object) -> bool:
        return False

    monkeypatch.setattr("tilework.passes.inline_branches.bool", other, raising=False)
    with pytest.raises(AssertionError):
        check_pass(INLINE, graph)
