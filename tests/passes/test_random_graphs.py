"""Every pass, and the pipeline, on random graphs: verified, and equal bit for bit."""

from __future__ import annotations

import pytest

from tests.passes.graphs import Random, check_pass, operators
from tilework.passes.eliminate_dead_code import EliminateDeadCode
from tilework.passes.fold_constants import FoldConstants
from tilework.passes.inline_branches import InlineBranches
from tilework.passes.merge_duplicates import MergeDuplicates
from tilework.passes.pipeline import Pipeline
from tilework.passes.protocol import Pass
from tilework.passes.simplify_algebra import SimplifyAlgebra

PASSES: tuple[Pass, ...] = (
    FoldConstants(), InlineBranches(), SimplifyAlgebra(), MergeDuplicates(), EliminateDeadCode(),
    Pipeline(verified=True),
)  # fmt: skip


@pytest.mark.parametrize("one", PASSES, ids=lambda one: one.name)
@pytest.mark.parametrize("seed", range(25))
def test_passes_keep_every_bit(one: Pass, seed: int) -> None:
    graph = Random(seed).graph()
    check_pass(one, graph, seed, n=seed % 4 + 1)


def test_the_pipeline_ends_where_nothing_changes() -> None:
    smaller = 0
    for seed in range(25):
        graph = Random(seed).graph()
        found, history = Pipeline(verified=True).run_with_history(graph)
        assert Pipeline().run(found) is found
        assert max((step.round for step in history), default=0) < 9
        smaller += len(operators(found)) < len(operators(graph))
    assert smaller > 15
