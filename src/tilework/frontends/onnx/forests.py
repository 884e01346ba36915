"""Decision trees of ai.onnx.ml as tables: inner nodes with four ways out, leaves with weights, the depth of the walk.

Whatever the comparison at a node, it depends on how the feature compares with the node's number alone: smaller, equal,
larger, or not at all (NaN). So every node becomes a number and four children. Tests of membership become searches in
sorted members. Leaves are numbered first, and lead to themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx.faults import NodeFault
from tilework.graph.graph import Array

OUTCOMES = ("smaller", "equal", "larger", "unordered")
"""How a feature compares with a node's number; the order of a node's children."""

TRUE_FOR: Mapping[str, tuple[bool, bool, bool, bool]] = {
    "BRANCH_LEQ": (True, True, False, False), "BRANCH_LT": (True, False, False, False),
    "BRANCH_GTE": (False, True, True, False), "BRANCH_GT": (False, False, True, False),
    "BRANCH_EQ": (False, True, False, False), "BRANCH_NEQ": (True, False, True, True),
}  # fmt: skip
"""The outcomes for which a node's condition holds."""

MEMBER = "BRANCH_MEMBER"

NOTHING = -1
"""The key of the leaf without weights."""


@dataclass(frozen=True)
class Split:
    """A split (an inner node) as a model states it; children are keys of nodes or leaves."""

    mode: str
    feature: int
    number: float
    tracks: bool
    """Whether a feature that is missing (NaN) goes where the condition holds."""
    true: int
    false: int
    members: tuple[float, ...] = ()


@dataclass(frozen=True)
class Leaf:
    """What a leaf adds: (target, weight) pairs."""

    weights: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Forest:
    """Tables of all trees. Nodes below `leaves` are leaves.

    `features`, `numbers` have an entry a node, `children` [nodes, outcomes], `roots` one a tree in the model's order.
    `depth` is the most steps from a root to a leaf. `weights` has the pairs of each leaf; the last leaf has none, and
    is a tree that adds nothing.
    """

    features: Array
    numbers: Array
    children: Array
    roots: Array
    depth: int
    weights: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def leaves(self) -> int:
        return len(self.weights)


def forest(nodes: Mapping[int, Split | Leaf], roots: Sequence[int]) -> Forest:
    """The tables of nodes by key. Raises `NodeFault` 1108 for keys that there are not, and for walks without an end."""
    table = _Table()
    for key, node in nodes.items():
        if isinstance(node, Leaf):
            table.leaf(key, node)
    table.leaf(NOTHING, Leaf(()))
    for key, node in nodes.items():
        if isinstance(node, Split):
            table.split(key, node)
    return table.finish(roots)


class _Table:
    def __init__(self) -> None:
        self.weights: list[tuple[tuple[int, float], ...]] = []
        self.places: dict[int, int] = {}
        self.splits: list[tuple[int, float, tuple[int, ...]]] = []  # children: keys, or -2 - place for helpers

    def leaf(self, key: int, leaf: Leaf) -> None:
        self.places[key] = len(self.weights)
        self.weights.append(leaf.weights)

    def split(self, key: int, split: Split) -> None:
        missing = split.true if split.tracks or (split.mode in TRUE_FOR and TRUE_FOR[split.mode][3]) else split.false
        if split.mode == MEMBER:
            found = self._members(split, sorted({m for m in split.members if not math.isnan(m)}), missing)
            self.places[key] = len(self.weights) + found
            return
        holds = TRUE_FOR[split.mode]
        # nothing compares with NaN: whatever the feature, the condition is that of an outcome without order
        of_nan = split.true if holds[3] else split.false
        ways = [of_nan if math.isnan(split.number) else split.true if truth else split.false for truth in holds[:3]]
        self.places[key] = len(self.weights) + self._add(split.feature, split.number, (*ways, missing))

    def _add(self, feature: int, number: float, children: tuple[int, ...]) -> int:
        if not 0 <= feature < 2**31:
            raise NodeFault(1108, f"a node looks at feature {feature}")
        self.splits.append((feature, 0.0 if math.isnan(number) else number, children))
        return len(self.splits) - 1

    def _members(self, split: Split, members: Sequence[float], missing: int) -> int:
        """The place among the splits of the root of a balanced search; inner children are -2 - place."""
        if not members:
            return self._add(split.feature, 0.0, (split.false, split.false, split.false, missing))
        middle = len(members) // 2
        sides = (members[:middle], members[middle + 1 :])
        low, high = (-2 - self._members(split, side, missing) if side else split.false for side in sides)
        return self._add(split.feature, members[middle], (low, split.true, high, missing))

    def finish(self, roots: Sequence[int]) -> Forest:
        first = len(self.weights)
        children = np.empty((first + len(self.splits), len(OUTCOMES)), np.int32)
        children[:first] = np.arange(first, dtype=np.int32)[:, None]
        for place, (_, _, ways) in enumerate(self.splits):
            for outcome, key in enumerate(ways):
                children[first + place, outcome] = first - 2 - key if key < NOTHING else self._place(key)
        starts = np.array([self._place(key) for key in roots], np.int32)
        features = np.zeros(len(children), np.int32)
        numbers = np.zeros(len(children), np.float64)
        features[first:] = [feature for feature, _, _ in self.splits]
        numbers[first:] = [number for _, number, _ in self.splits]
        return Forest(features, numbers, children, starts, depth(children, starts), tuple(self.weights))

    def _place(self, key: int) -> int:
        found = self.places.get(key)
        if found is None:
            raise NodeFault(1108, f"a branch of a tree leads to node {key}, which there is not")
        return found


def depth(children: Array, roots: Array) -> int:
    """The most steps from a root to a node that leads to itself; `NodeFault` 1108 where a walk may never end."""
    height: dict[int, int] = {}
    entered: set[int] = set()
    for root in roots.tolist():
        stack = [(root, False)]
        while stack:
            node, leave = stack.pop()
            if node in height:
                continue
            below = set(children[node].tolist())
            if below == {node}:
                height[node] = 0
            elif leave:
                height[node] = 1 + max(height[child] for child in below)
            elif node in entered:
                raise NodeFault(1108, "branches of a tree lead in a circle")
            else:
                entered.add(node)
                stack.append((node, True))
                for child in below:
                    if child in entered and child not in height:
                        raise NodeFault(1108, "branches of a tree lead in a circle")
                    stack.append((child, False))
    return max((height[root] for root in roots.tolist()), default=0)


_DIRECTIONS = {"LE": "BRANCH_LEQ", "LT": "BRANCH_LT", "GE": "BRANCH_GTE", "GT": "BRANCH_GT", "EQ": "BRANCH_EQ"}


def one_comparison(children: Array) -> str | None:
    """The direction of the one comparison that decides at every node, or None where one is not enough."""
    for direction, mode in _DIRECTIONS.items():
        holds = np.array(TRUE_FOR[mode])
        parts = (children[:, holds], children[:, ~holds])
        if all((part == part[:, :1]).all() for part in parts):
            return direction
    return None


def leaves_of_trees(found: Forest) -> list[list[int]]:
    """The leaves of each tree that a walk may end in."""
    known: dict[int, list[int]] = {}
    for root in dict.fromkeys(found.roots.tolist()):
        seen, stack = {root}, [root]
        while stack:
            below = set(found.children[stack.pop()].tolist()) - seen
            seen |= below
            stack.extend(below)
        known[root] = sorted(node for node in seen if node < found.leaves)
    return [known[root] for root in found.roots.tolist()]


MOST_TARGETS = 2**20
"""Targets beyond which their number is taken for damage."""


def in_targets(pairs: Iterable[tuple[int, float]], targets: int) -> None:
    """Raise `NodeFault` 1108 unless all targets exist, and are as many as there may be."""
    if not 0 < targets <= MOST_TARGETS:
        raise NodeFault(1108, f"there are {targets} targets; 1 to {MOST_TARGETS} are possible")
    for target, _ in pairs:
        if not 0 <= target < targets:
            raise NodeFault(1108, f"a weight is for target {target}; there are {targets}")
