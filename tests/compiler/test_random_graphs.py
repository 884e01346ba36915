"""Random graphs through the whole compiler, against the graph's interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.compiler.checking import check_graph, described
from tests.compiler.drawing import Numbers
from tests.compiler.random_graphs import random_graph
from tilework import dtypes
from tilework.candidates import region as region_module
from tilework.candidates.joined import Joined, joined
from tilework.candidates.region import Region
from tilework.compiler import compile as stages
from tilework.compiler import planning
from tilework.dims import dim
from tilework.errors import VerificationError
from tilework.loops.expressions import Load, rewrite
from tilework.numerics import Level
from tilework.ops.builder import GraphBuilder
from tilework.ops.registry import operator
from tilework.plan.buffers import ArenaPlace
from tilework.variants import list_variants

FUZZ = settings().max_examples > 100
"""Whether the profile asks for more than the usual number of draws."""


def examples(usual: int) -> Any:
    return settings() if FUZZ else settings(max_examples=usual)


class Drawn:
    """Choices by hypothesis, which makes what fails small."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))


@pytest.mark.parametrize("level", ["strict", "default", "fast"])
@examples(50)
@given(data=st.data())
def test_compiled_graphs_give_what_the_interpreter_gives(level: Level, data: st.DataObject) -> None:
    special, checked = data.draw(st.integers(0, 3)) == 3, data.draw(st.integers(0, 3)) == 3
    graph, _ = random_graph(Drawn(data), data.draw(st.integers(1, 8)), special=special)
    note(described(graph))
    check_graph(graph, level=level, checked=checked, special=special, seed=data.draw(st.integers(0, 99)))


@examples(40)
@given(data=st.data())
def test_graphs_without_symbols(data: st.DataObject) -> None:
    level: Level = data.draw(st.sampled_from(["strict", "default", "fast"]))
    graph, _ = random_graph(Drawn(data), data.draw(st.integers(1, 8)), special=False, symbolic=False)
    note(described(graph))
    check_graph(graph, level=level, checked=bool(data.draw(st.integers(0, 1))), seed=data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("seed", range(300 if FUZZ else 12))
def test_long_graphs_of_larger_values(seed: int) -> None:
    """Enough elements for several threads and whole tiles; kernels that share an arena."""
    choices = Numbers(seed)
    graph, _ = random_graph(choices, 25, special=False, symbolic=bool(seed % 2), largest=60_000)
    check_graph(graph, level=("strict", "default", "fast")[seed % 3], seed=seed)


def test_every_operator_with_a_definition_is_drawn() -> None:
    names: set[str] = set()
    for family in ("elementwise", "shape", "reduction", "contraction", "indexing"):
        names |= {name.rstrip("_") for name in list_variants(f"tilework.ops.{family}")}
    drawn: set[str] = set()
    for seed in range(400):
        drawn.update(random_graph(Numbers(seed), 12, special=False)[1].operators)
    apart = {"numbers_below"}  # binds a measured symbol: tests/compiler/test_measured_sizes.py
    assert {operator(name).name for name in names} - drawn == apart


# -- that all this catches something -----------------------------------------------------------------------------------
def chain() -> Any:
    """Two stored values between an input and an output."""
    builder = GraphBuilder("chain")
    x = builder.input("x", dtypes.float32, 8, 12)
    first = builder.apply_one("cumulative", x, dimension=1, reducer="sum")
    second = builder.apply_one("cumulative", first, dimension=0, reducer="maximum")
    return builder.build([builder.apply_one("subtract", second, first)])


def test_a_wrong_sign_in_an_index_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", dtypes.float32, 5, 7)
    graph = builder.build([builder.apply_one("slice", x, start_indices=(1, 2), limit_indices=(4, 7), strides=(1, 1))])
    check_graph(graph)
    right = joined

    def wrong(region: Region) -> Joined:
        found = right(region)
        (stage,) = found.computation.stages

        def leaf(node: Any) -> Any:
            if isinstance(node, Load):
                moved = tuple(entry - 2 * entry.constant + 2 for entry in node.index)
                return Load(node.buffer, moved, node.dtype)
            return node

        changed = replace(stage, values=tuple(rewrite(value, leaf) for value in stage.values))
        return replace(found, computation=replace(found.computation, stages=(changed,)))

    monkeypatch.setattr(region_module, "joined", wrong)
    with pytest.raises(AssertionError):
        check_graph(graph)


def test_values_that_share_bytes_wrongly_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain()
    check_graph(graph)
    right = stages.place_arenas

    def wrong(plan: Any) -> Any:
        placed = right(plan)
        buffers = tuple(
            replace(b, place=ArenaPlace(b.place.arena, dim(0))) if isinstance(b.place, ArenaPlace) else b
            for b in placed.plan.buffers
        )
        return replace(placed, plan=placed.plan.replace(buffers=buffers))

    monkeypatch.setattr(stages, "place_arenas", wrong)
    with pytest.raises(VerificationError):
        check_graph(graph)


def test_a_forgotten_copy_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", dtypes.float32, 3)
    y = builder.apply_one("negate", x)
    graph = builder.build([y, y])
    check_graph(graph)

    def nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(planning._Planner, "_copy", nothing)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(VerificationError):
        check_graph(graph)
