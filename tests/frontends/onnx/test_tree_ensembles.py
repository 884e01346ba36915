"""Tree ensembles of ai.onnx.ml against walks of one row through one tree at a time, and against onnx.reference."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

import tilework
from tests.frontends.onnx.ml_models import MODES, compiled, draw_trees, interpreted, ml_model, rows, weights_of
from tests.frontends.onnx.models import faults_of, reference
from tilework.frontends.onnx.forests import Leaf, Split, forest, one_comparison
from tilework.runtime.context import ContextOptions

STUMP: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip
VOTES: dict[str, Any] = {
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
}


def expected(attributes: dict[str, Any], x: Any, targets: int, aggregate: str) -> Any:
    """Scores [rows, targets] in float64."""
    found = np.zeros((len(x), targets))
    for place, row in enumerate(x):
        trees = weights_of(attributes, row, "target")
        for target in range(targets):
            own = [w for tree in trees for t, w in tree if t == target]
            if not own:
                continue
            joined = {"SUM": sum, "AVERAGE": sum, "MIN": min, "MAX": max}[aggregate](own)
            found[place, target] = joined / len(trees) if aggregate == "AVERAGE" else joined
    return found + np.array(attributes.get("base_values", [0.0] * targets))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(("several", "own_target"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(("trees", "depth", "targets"), [(1, 0, 1), (1, 1, 2), (5, 3, 1), (4, 5, 3), (7, 2, 2)])
def test_regressors(aggregate: str, several: bool, own_target: bool, trees: int, depth: int, targets: int) -> None:
    random = np.random.default_rng([trees, depth, targets, several, own_target])
    modes = MODES if random.random() < 0.6 else [str(random.choice(list(MODES)))]
    attributes = draw_trees(random, trees, depth, 3, targets, "target", modes, several, own_target)
    attributes["base_values"] = random.integers(-3, 4, targets).astype(float).tolist()
    x = rows(random, 6, 3, (np.float32, np.float64)[int(random.integers(2))])
    proto = ml_model(
        "TreeEnsembleRegressor", {"x": x}, symbolic=True, n_targets=targets, aggregate_function=aggregate, **attributes
    )
    wanted = expected(attributes, x, targets, aggregate)
    for (found,) in (interpreted(proto, {"x": x}), compiled(proto, {"x": x}, checked=True)):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_one_executable_for_any_number_of_rows_and_threads() -> None:
    random = np.random.default_rng(7)
    attributes = draw_trees(random, 9, 6, 4, 3, "target", several=True)
    proto = ml_model("TreeEnsembleRegressor", {"x": rows(random, 2, 4)}, symbolic=True, n_targets=3, **attributes)
    results: list[list[bytes]] = []
    for threads in (1, 2, 3, 8):
        with tilework.Context(ContextOptions(threads=threads)) as context:
            executable = tilework.compile(proto, context=context)
            found: list[bytes] = []
            for count in (0, 1, 7, 300):
                x = rows(np.random.default_rng(count), count, 4)
                (scores,) = executable(x)
                np.testing.assert_allclose(scores, expected(attributes, x, 3, "SUM"), rtol=1e-6)
                found.append(scores.tobytes())
            results.append(found)
    assert all(found == results[0] for found in results)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_classifiers(transform: str, classes: int) -> None:
    """Every class gets votes of every row, as its reference needs it."""
    random = np.random.default_rng(classes)
    attributes = draw_trees(random, 2 * classes, 3, 3, classes, "class", own_target=True)
    x = rows(random, 8, 3)
    labels = [10 * place for place in range(classes)]
    proto = ml_model(
        "TreeEnsembleClassifier", {"x": x}, 2, classlabels_int64s=labels, post_transform=transform, **attributes
    )
    raw = np.zeros((len(x), classes))
    for place, row in enumerate(x):
        for tree in weights_of(attributes, row, "class"):
            for target, weight in tree:
                raw[place, target] += weight
    label, scores = compiled(proto, {"x": x})
    np.testing.assert_array_equal(label, np.array(labels)[raw.argmax(1)])
    assert label.dtype == np.int64
    exponential = np.exp(raw - raw.max(1, keepdims=True))
    zero = raw == 0
    wanted = {
        "NONE": raw, "LOGISTIC": 1 / (1 + np.exp(-raw)), "SOFTMAX": exponential / exponential.sum(1, keepdims=True),
        "SOFTMAX_ZERO": np.where(zero, 0, exponential) / np.where(zero, 0, exponential).sum(1, keepdims=True),
    }[transform]  # fmt: skip
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("weights", "threshold", "complement"), [([0.2, 0.9], 0.5, True), ([-0.2, 0.4], 0.0, False)])
def test_two_classes_with_votes_for_one(weights: list[float], threshold: float, complement: bool) -> None:
    votes: dict[str, Any] = {
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_ids": [0, 0],
        "class_weights": weights,
    }
    x = np.array([[0, 0], [0, 1]], np.float32)
    proto = ml_model("TreeEnsembleClassifier", {"x": x}, 2, classlabels_strings=["no", "yes"], **STUMP, **votes)
    label, scores = compiled(proto, {"x": x})
    assert label.tolist() == [("yes" if weight > threshold else "no") for weight in weights]
    one = np.array(weights)
    np.testing.assert_allclose(scores, np.stack([1 - one if complement else -one, one], 1), rtol=1e-6)


def test_classes_without_votes_are_no_candidates() -> None:
    votes: dict[str, Any] = {
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_ids": [0, 2],
        "class_weights": [-1.0, -2.0],
    }
    x = np.array([[0, 0], [0, 1]], np.float32)
    attributes: dict[str, Any] = {"classlabels_int64s": [5, 6, 7], **STUMP, **votes}
    label, scores = compiled(ml_model("TreeEnsembleClassifier", {"x": x}, 2, **attributes), {"x": x})
    assert label.tolist() == [5, 7]
    np.testing.assert_array_equal(scores, [[-1, 0, 0], [0, 0, -2]])
    proto = ml_model("TreeEnsembleClassifier", {"x": x}, 2, base_values=[0.5, 0.25, 0.0], **attributes)
    label, scores = compiled(proto, {"x": x})
    assert label.tolist() == [6, 5]
    np.testing.assert_array_equal(scores, [[-0.5, 0.25, 0], [0.5, 0.25, -2]])


# -- version 5 ---------------------------------------------------------------------------------------------------------
def draw_tables(random: np.random.Generator, trees: int, depth: int, targets: int, kind: Any) -> dict[str, Any]:
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    nodes: dict[str, list[int]] = {f"nodes_{name}": [] for name in names}
    modes: list[int] = []
    splits: list[float] = []
    owners: list[int] = []
    members: dict[int, list[float]] = {}

    def grow(left: int) -> int:
        own = len(modes)
        for column in nodes.values():
            column.append(0)
        nodes["nodes_featureids"][own] = int(random.integers(3))
        modes.append(int(random.integers(7)))
        splits.append(float(random.integers(-2, 3)))
        if modes[own] == 6:
            members[own] = [float(m) for m in random.choice(np.arange(-3, 4), int(random.integers(1, 5)), False) if m]
        for side in ("true", "false"):
            leaf = left <= 1 or random.random() < 0.2
            nodes[f"nodes_{side}leafs"][own] = int(leaf)
            if leaf:
                owners.append(int(random.integers(targets)))
            nodes[f"nodes_{side}nodeids"][own] = len(owners) - 1 if leaf else grow(left - 1)
        return own

    roots = [grow(depth) for _ in range(trees)]
    listed = [number for own in sorted(members) for number in (*members[own], float("nan"))]
    found: dict[str, Any] = {
        **nodes, "nodes_modes": numpy_helper.from_array(np.array(modes, np.uint8)), "tree_roots": roots,
        "nodes_splits": numpy_helper.from_array(np.array(splits, kind)), "leaf_targetids": owners, "n_targets": targets,
        "leaf_weights": numpy_helper.from_array(random.integers(-4, 5, len(owners)).astype(kind)),
    }  # fmt: skip
    if listed:
        found["membership_values"] = numpy_helper.from_array(np.array(listed, kind))
    return found


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("trees", "depth", "targets"), [(1, 1, 1), (3, 4, 2), (6, 3, 4)])
def test_tables_of_version_5(kind: Any, trees: int, depth: int, targets: int) -> None:
    """Sums, which are all that onnx.reference does with NaN in a row. It builds the members depth first, as drawn."""
    random = np.random.default_rng([trees, depth])
    attributes = draw_tables(random, trees, depth, targets, kind)
    x = rows(random, 7, 3, kind)
    proto = ml_model("TreeEnsemble", {"x": x}, version=5, **attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (wanted,) = reference(proto, {"x": x})
    for (found,) in (interpreted(proto, {"x": x}), compiled(proto, {"x": x}, checked=True)):
        assert found.dtype == kind
        np.testing.assert_array_equal(found, wanted)


# -- tables ------------------------------------------------------------------------------------------------------------
def test_one_comparison_is_enough_where_all_nodes_ask_alike() -> None:
    leaves = {1: Leaf(((0, 1.0),)), 2: Leaf(((0, 2.0),))}
    for mode, direction in (("BRANCH_LEQ", "LE"), ("BRANCH_GT", "GT"), ("BRANCH_NEQ", "EQ"), ("BRANCH_EQ", "EQ")):
        found = forest({0: Split(mode, 0, 0.5, False, 1, 2), **leaves}, [0])
        assert one_comparison(found.children) == direction
    tracking = forest({0: Split("BRANCH_LEQ", 0, 0.5, True, 1, 2), **leaves}, [0])
    assert one_comparison(tracking.children) == "GT"  # which NaN is not either
    both = {0: Split("BRANCH_EQ", 0, 0.5, False, 3, 2), 3: Split("BRANCH_LT", 0, 0.5, False, 1, 2), **leaves}
    assert one_comparison(forest(both, [0]).children) is None
    assert tracking.children[-1].tolist() == [0, 0, 1, 0]


def test_members_are_searched_in_halves() -> None:
    members = tuple(float(number) for number in range(100))
    nodes = {0: Split("BRANCH_MEMBER", 0, 0.0, False, 1, 2, members), 1: Leaf(()), 2: Leaf(())}
    assert forest(nodes, [0]).depth == 7


def test_shared_branches_are_walked_once() -> None:
    """A chain of nodes whose two ways meet again has 2 ** 60 ways through it."""
    nodes: dict[int, Split | Leaf] = {n: Split("BRANCH_LT", 0, 0.0, False, n + 1, n + 1) for n in range(60)}
    assert forest({**nodes, 60: Leaf(((0, 1.0),))}, [0]).depth == 60


def broken(**changes: Any) -> str:
    attributes: dict[str, Any] = {**STUMP, **VOTES, **changes}
    x = np.zeros((2, 2), np.float32)
    (fault,) = faults_of(ml_model("TreeEnsembleRegressor", {"x": x}, **attributes))
    assert "the_node" in fault[1]
    return f"{fault[0]} {fault[1]}"


def test_broken_trees_are_refused() -> None:
    assert "circle" in broken(nodes_modes=["BRANCH_LEQ"] * 3, nodes_truenodeids=[1, 2, 0], nodes_falsenodeids=[2, 2, 0])
    assert "circle" in broken(nodes_truenodeids=[0, 0, 0])
    assert "leads to no node" in broken(nodes_truenodeids=[9, 0, 0])
    assert "twice" in broken(nodes_nodeids=[0, 1, 1])
    assert "equal lengths" in broken(nodes_values=[0.0])
    assert "equal lengths" in broken(target_ids=[0])
    assert "which there is not" in broken(target_nodeids=[1, 8])
    assert "target 4" in broken(target_ids=[0, 4])
    assert "feature 7" in broken(nodes_featureids=[7, 0, 0])
    assert "feature -1" in broken(nodes_featureids=[-1, 0, 0])
    assert broken(nodes_modes=["BRANCH_MAYBE", "LEAF", "LEAF"]).startswith("1123")
    assert broken(aggregate_function="MEDIAN").startswith("1123")
    assert "base values" in broken(base_values=[1.0, 2.0])
    assert "entries for 3 nodes" in broken(nodes_missing_value_tracks_true=[1])
    assert "targets" in broken(n_targets=2**60)
    assert "targets" in broken(n_targets=-1)
    assert "feature" in broken(nodes_featureids=[2**40, 0, 0])
