"""The trees of ai.onnx.ml from a node's attributes: lists of nodes with names (versions 1 and 3), or tables (5)."""

from __future__ import annotations

import math

import numpy as np

from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.forests import MEMBER, TRUE_FOR, Forest, Leaf, Split, forest, in_targets
from tilework.frontends.onnx.node import OnnxNode

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""How weights for one target are joined, in the order in which ai.onnx.ml numbers them."""

_LEAF = "LEAF"
_MODES = (*TRUE_FOR, MEMBER)


def numbers_of(node: OnnxNode, name: str) -> tuple[float, ...]:
    """An attribute of floats, or its twin of another type (`name_as_tensor`)."""
    wide = f"{name}_as_tensor"
    if node.given(wide):
        return tuple(float(entry) for entry in node.tensor(wide).reshape(-1))
    return node.numbers(name, ())


def _same_length(lists: dict[str, int], what: str) -> int:
    lengths = set(lists.values())
    if len(lengths) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lists.items())
        raise NodeFault(1108, f"the attributes of {what} must have equal lengths: {listed}")
    return lengths.pop()


# -- versions 1 and 3 --------------------------------------------------------------------------------------------------
def branches_and_leaves(node: OnnxNode, votes: str, targets: int, aggregate: str) -> Forest:
    """The trees of a regressor (`votes` "target") or classifier ("class"). Raises `NodeFault` 1108."""
    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
    trees, ids, features, trues, falses = (node.integers(name, ()) for name in names)
    modes, numbers = node.texts("nodes_modes", ()), numbers_of(node, "nodes_values")
    lengths = dict(zip(names, map(len, (trees, ids, features, trues, falses)), strict=True))
    count = _same_length({**lengths, "nodes_modes": len(modes), "nodes_values": len(numbers)}, "nodes")
    tracks = node.integers("nodes_missing_value_tracks_true", ())
    if len(tracks) not in (0, count):
        raise NodeFault(1108, f"nodes_missing_value_tracks_true has {len(tracks)} entries for {count} nodes")
    keys: dict[tuple[int, int], int] = {}
    for key, name in enumerate(zip(trees, ids, strict=True)):
        if name in keys:
            raise NodeFault(1108, f"node {name[1]} of tree {name[0]} is there twice")
        keys[name] = key
    weights = _votes(node, votes, keys, targets, aggregate)
    found: dict[int, Split | Leaf] = {}
    for key, mode in enumerate(modes):
        if mode == _LEAF:
            found[key] = Leaf(tuple(weights.get(key, {}).items()))
        elif mode not in TRUE_FOR:
            raise NodeFault(1123, f"nodes_modes holds {mode!r}; supported: {', '.join((*TRUE_FOR, _LEAF))}")
        else:
            ways = [keys.get((trees[key], way)) for way in (trues[key], falses[key])]
            if None in ways:
                raise NodeFault(1108, f"a branch of node {ids[key]} of tree {trees[key]} leads to no node of the tree")
            true, false = (way for way in ways if way is not None)
            found[key] = Split(mode, features[key], numbers[key], bool(tracks and tracks[key]), true, false)
    roots: dict[int, int] = {}
    for key, tree in enumerate(trees):
        roots.setdefault(tree, key)
    return forest(found, list(roots.values()))


def _votes(
    node: OnnxNode, votes: str, keys: dict[tuple[int, int], int], targets: int, aggregate: str
) -> dict[int, dict[int, float]]:
    """The weights of each node by target."""
    names = (f"{votes}_treeids", f"{votes}_nodeids", f"{votes}_ids")
    trees, ids, owners = (node.integers(name, ()) for name in names)
    weights = numbers_of(node, f"{votes}_weights")
    lengths = dict(zip(names, map(len, (trees, ids, owners)), strict=True))
    _same_length({**lengths, f"{votes}_weights": len(weights)}, "weights")
    in_targets(zip(owners, weights, strict=True), targets)
    found: dict[int, dict[int, float]] = {}
    for tree, place, target, weight in zip(trees, ids, owners, weights, strict=True):
        key = keys.get((tree, place))
        if key is None:
            raise NodeFault(1108, f"a weight is for node {place} of tree {tree}, which there is not")
        own = found.setdefault(key, {})
        own[target] = weight if target not in own else _joined(own[target], weight, aggregate)
    return found


def _joined(one: float, other: float, aggregate: str) -> float:
    if aggregate in ("SUM", "AVERAGE"):
        return one + other
    return min(one, other) if aggregate == "MIN" else max(one, other)


# -- version 5 ---------------------------------------------------------------------------------------------------------
def from_tables(node: OnnxNode, targets: int) -> Forest:
    """The trees of a `TreeEnsemble`: inner nodes and leaves in tables of their own. Raises `NodeFault` 1108."""
    names = (
        "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs",
    )  # fmt: skip
    features, trues, falses, true_leaves, false_leaves = (node.integers(name) for name in names)
    modes = node.tensor("nodes_modes").reshape(-1).astype(np.int64).tolist()
    numbers = node.tensor("nodes_splits").reshape(-1).astype(np.float64).tolist()
    lengths = dict(zip(names, map(len, (features, trues, falses, true_leaves, false_leaves)), strict=True))
    count = _same_length({**lengths, "nodes_modes": len(modes), "nodes_splits": len(numbers)}, "nodes")
    tracks = node.integers("nodes_missing_value_tracks_true", ())
    if len(tracks) not in (0, count):
        raise NodeFault(1108, f"nodes_missing_value_tracks_true has {len(tracks)} entries for {count} nodes")
    owners = node.integers("leaf_targetids")
    weights = node.tensor("leaf_weights").reshape(-1).astype(np.float64).tolist()
    leaves = _same_length({"leaf_targetids": len(owners), "leaf_weights": len(weights)}, "leaves")
    in_targets(zip(owners, weights, strict=True), targets)
    found: dict[int, Split | Leaf] = {
        count + place: Leaf(((target, weight),))
        for place, (target, weight) in enumerate(zip(owners, weights, strict=True))
    }
    members = iter(_member_lists(node, sum(mode == _MODES.index(MEMBER) for mode in modes)))
    for key, mode in enumerate(modes):
        if not 0 <= mode < len(_MODES):
            raise NodeFault(1123, f"nodes_modes holds {mode}; supported: 0 to {len(_MODES) - 1}")
        own = next(members) if _MODES[mode] == MEMBER else ()
        true = _key(trues[key], true_leaves[key], count, leaves)
        false = _key(falses[key], false_leaves[key], count, leaves)
        found[key] = Split(_MODES[mode], features[key], numbers[key], bool(tracks and tracks[key]), true, false, own)
    roots = node.integers("tree_roots")
    for root in roots:
        if not 0 <= root < count:
            raise NodeFault(1108, f"tree_roots holds {root}; there are {count} nodes")
    return forest(found, roots)


def _key(place: int, is_leaf: int, nodes: int, leaves: int) -> int:
    if not 0 <= place < (leaves if is_leaf else nodes):
        what = f"leaf {place}; there are {leaves}" if is_leaf else f"node {place}; there are {nodes}"
        raise NodeFault(1108, f"a branch leads to {what}")
    return nodes + place if is_leaf else place


def _member_lists(node: OnnxNode, wanted: int) -> list[tuple[float, ...]]:
    """The members of each test of membership: one list of numbers, in which NaN ends those of a test."""
    given = node.tensor("membership_values").reshape(-1).tolist() if node.given("membership_values") else []
    found: list[tuple[float, ...]] = []
    own: list[float] = []
    for number in given:
        if math.isnan(number):
            found.append(tuple(own))
            own = []
        else:
            own.append(number)
    if own:
        found.append(tuple(own))
    if len(found) != wanted:
        raise NodeFault(1108, f"membership_values has {len(found)} lists for {wanted} tests of membership")
    return found
