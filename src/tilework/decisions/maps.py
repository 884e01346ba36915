"""Which operators compute each element of their result on its own."""

from __future__ import annotations

from tilework.graph.graph import Node
from tilework.ops.registry import operator

MOVES = frozenset(("transpose", "broadcast_in_dim", "slice", "convert"))
"""Operators whose result an affine index into the operand gives (with at most a conversion)."""
_MAPS = frozenset(
    (
        *MOVES,
        "assume",
        "reshape",
        "reverse",
        "concatenate",
        "pad",
        "iota",
        "dimension_values",
        "resample",
        "take",
        "gather_nd",
    )
)
"""Operators that, like the elementwise ones, compute each element of their result on its own."""


def is_map(node: Node) -> bool:
    """Whether each element of the result is computed on its own, from few elements of the operands."""
    return operator(node.operator).elementwise or node.operator in _MAPS
