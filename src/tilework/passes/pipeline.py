"""The fixed order of passes, repeated until nothing changes."""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Graph, walk
from tilework.ops.verify import verify
from tilework.passes.eliminate_dead_code import EliminateDeadCode
from tilework.passes.fold_constants import FoldConstants
from tilework.passes.fold_scales import FoldScales
from tilework.passes.inline_branches import InlineBranches
from tilework.passes.merge_duplicates import MergeDuplicates
from tilework.passes.one_hot_products import OneHotProducts
from tilework.passes.protocol import Pass
from tilework.passes.simplify_algebra import SimplifyAlgebra
from tilework.passes.tails_before_movement import TailsBeforeMovement

DEFAULT_PASSES: tuple[Pass, ...] = (
    FoldConstants(),
    InlineBranches(),
    SimplifyAlgebra(),
    OneHotProducts(),
    TailsBeforeMovement(),
    MergeDuplicates(),
    EliminateDeadCode(),
)
REGROUPING_PASSES: tuple[Pass, ...] = (*DEFAULT_PASSES, FoldScales())
"""Where numerics let sums be regrouped."""


@dataclass(frozen=True)
class Applied:
    """One run of a pass that changed something: the round it ran in, and the nodes before and after (subgraphs too)."""

    name: str
    round: int
    nodes_before: int
    nodes_after: int


@dataclass(frozen=True)
class Pipeline:
    """Passes in order, again and again until a round changes nothing, at most `round_limit` times.

    Every rule makes a graph smaller or brings it nearer to a normal form, so few rounds are needed; the limit only
    bounds compile time. With `verified` the graph is verified after every pass that changed it.
    """

    name: ClassVar[str] = "pipeline"
    passes: tuple[Pass, ...] = DEFAULT_PASSES
    round_limit: int = 10
    verified: bool = False

    def run(self, graph: Graph) -> Graph:
        """The graph after the last pass."""
        return self.run_with_history(graph)[0]

    def run_with_history(self, graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
        """The graph after the last pass, and what each pass did on the way."""
        history: list[Applied] = []
        for number in range(self.round_limit):
            before = graph
            for one in self.passes:
                found = one.run(graph)
                if found is graph:
                    continue
                if self.verified:
                    verify(found)
                history.append(Applied(one.name, number, _count(graph), _count(found)))
                graph = found
            if graph is before:
                break
        return graph, tuple(history)


def _count(graph: Graph) -> int:
    return sum(1 for _ in walk(graph))
