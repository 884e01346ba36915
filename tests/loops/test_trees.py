"""Trees of nodes: the way to a node, and one node replaced, against a plain search; deep chains cost what they hold."""

from __future__ import annotations

import numpy as np
import pytest

from tests.loops.random_programs import random_program
from tilework import dtypes
from tilework.dims import dim
from tilework.loops import program as trees
from tilework.loops.program import Buffer, Compute, Node, Storage, children, path, replace_node, sequence, walk


def searched(root: Node, target: Node) -> tuple[Node, ...]:
    """The first way down to a node."""
    if root is target:
        return (root,)
    for child in children(root):
        found = searched(child, target)
        if found:
            return (root, *found)
    return ()


@pytest.mark.parametrize("seed", range(20))
def test_paths_and_replacements(seed: int) -> None:
    body = random_program(np.random.default_rng(seed)).program.body
    for node in walk(body):
        way = path(body, node)
        assert len(way) == len(searched(body, node))
        assert all(a is b for a, b in zip(way, searched(body, node), strict=True))
        other = Compute("other", (), ())
        replaced = replace_node(body, node, other)
        assert path(replaced, other)
        assert path(replaced, node) == ()
        kept = {id(n) for n in walk(replaced)}
        apart = [n for n in walk(body) if path(body, n)[: len(way)] != way and n not in way]
        assert all(id(n) in kept for n in apart)  # what is not around the node is the very same
    assert path(body, Compute("elsewhere", (), ())) == ()
    assert replace_node(body, Compute("elsewhere", (), ()), body) is body


def test_a_step_in_a_chain_of_storage_costs_what_the_chain_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [0]

    def counted(node: Node) -> tuple[Node, ...]:
        calls[0] += 1
        return children(node)

    monkeypatch.setattr(trees, "children", counted)

    def cost(count: int) -> int:
        last = Compute("last", (), ())
        body: Node = last
        for number in range(count):
            held = Buffer(f"t{number}", (dim(4),), dtypes.float32)
            body = Storage(held, sequence(Compute(f"s{number}", (), ()), body))
        calls[0] = 0
        assert len(path(body, last)) == 2 * count + 1
        replace_node(body, last, Compute("new", (), ()))
        return calls[0]

    assert cost(160) <= 2.2 * cost(80)
