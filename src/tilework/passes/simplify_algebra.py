"""Rewrites by algebra that keep every bit: neutral operands, conversions and movements that undo each other."""

from __future__ import annotations

from typing import ClassVar

from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Graph, Node
from tilework.passes._arithmetic_rules import ARITHMETIC
from tilework.passes._movement_rules import MOVEMENTS
from tilework.passes._rewriting import Outcome, Scope, rewrite

_RULES = {**ARITHMETIC, **MOVEMENTS}


@dataclass(frozen=True)
class SimplifyAlgebra:
    """Applies one rule per operator (see the rules' own files) once to every node, in order.

    Of floating numbers only what holds for NaN, infinities and both zeros: x - 0.0 is x, x + 0.0 is not (x
    may be -0.0).
    """

    name: ClassVar[str] = "simplify_algebra"

    def run(self, graph: Graph) -> Graph:
        """The graph after one application of the rules."""
        return rewrite(graph, _simplify)


def _simplify(node: Node, scope: Scope) -> Outcome:
    rule = _RULES.get(node.operator)
    return None if rule is None or node.black_box else rule(node, scope)
