"""Ensembles of decision trees (ai.onnx.ml): all rows walk all trees at once, a step of every walk in each iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx import scores
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.forests import Forest, leaves_of_trees, one_comparison
from tilework.frontends.onnx.node import OnnxNode, Result, element
from tilework.frontends.onnx.tree_attributes import AGGREGATES, branches_and_leaves, from_tables, numbers_of
from tilework.graph.graph import Array, Value

LARGEST_TABLE = 2**28
"""Elements of a table of leaves and targets beyond which a model is refused."""

MOST_UNROLLED = 2
"""Steps of a walk that are written out; longer walks are loops."""


# -- walks -------------------------------------------------------------------------------------------------------------
def _walked(emit: Emitter, rows: Value, found: Forest, roots: Array) -> Value:
    """The leaf [rows, trees] in which each row's walk through each tree ends."""
    count, features = rows.tensor.shape
    _check_features(found, rows)
    places = emit.broadcast(emit.constant(roots.astype(np.int32)), (count, len(roots)))
    if not found.depth or features == 0:
        return places
    step = _step(found, element(rows))
    if found.depth <= MOST_UNROLLED:
        for _ in range(found.depth):
            places = step(emit, rows, places)
        return places
    inner = emit.inside("step")
    state = inner.builder.input(inner.builder.fresh("places"), element(places), *places.tensor.shape)
    inner.builder.input(inner.builder.fresh("trip"), dtypes.int32)
    body = inner.builder.build([step(inner, rows, state)])
    trips = emit.iota((found.depth,), 0, dtypes.int32)
    attributes = {"state_count": 1, "reverse": False}
    (ends,) = emit.builder.apply_all("scan", [places, trips], attributes, location=emit.location, subgraphs=[body])
    return ends


def _check_features(found: Forest, rows: Value) -> None:
    extent = rows.tensor.shape[1]
    least, most = int(found.features.min(initial=0)), int(found.features.max(initial=0))
    if least < 0 or (extent.is_constant and found.depth and most >= extent.constant):
        raise NodeFault(1108, f"a node looks at feature {least if least < 0 else most}; there are {extent}")


def _step(found: Forest, dtype: DType) -> Callable[[Emitter, Value, Value], Value]:
    """One step of every walk: compare the feature with the node's number, and go to the child for the outcome."""
    direction = one_comparison(found.children)
    numbers = found.numbers.astype(dtype.numpy)
    if direction is None:
        ways = found.children
    else:
        holds = {"LE": (2, 0), "LT": (1, 0), "GE": (0, 1), "GT": (0, 2), "EQ": (0, 1)}[direction]
        ways = found.children[:, holds]  # where it does not hold, and where it does
    flat = np.ascontiguousarray(ways, np.int32).reshape(-1)

    def step(emit: Emitter, rows: Value, places: Value) -> Value:
        feature = emit.apply("take", emit.constant(found.features.astype(np.int32)), places, dimension=0)
        number = emit.apply("take", emit.constant(numbers), places, dimension=0)
        value = emit.apply("take_along_axis", rows, feature, dimension=1)
        if direction is not None:
            way = emit.convert(emit.compare(direction, value, number), dtypes.int32)
        else:
            way = emit.fill(3, dtypes.int32, places.tensor.shape)
            for outcome, relation in enumerate(("LT", "EQ", "GT")):
                here = emit.fill(outcome, dtypes.int32, places.tensor.shape)
                way = emit.apply("select", emit.compare(relation, value, number), here, way)
        child = emit.apply("add", emit.apply("multiply", places, ways.shape[1]), way)
        return emit.apply("take", emit.constant(flat), child, dimension=0)

    return step


# -- sums over trees ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Totals:
    """Scores [rows, targets], zero for a target that no leaf had a weight for; `present` [rows, targets] says which had
    one (None: all of them, or nobody asked).
    """

    scores: Value
    present: Value | None


_REDUCERS = {"SUM": "sum", "AVERAGE": "sum", "MIN": "minimum", "MAX": "maximum"}


def _totals(emit: Emitter, rows: Value, found: Forest, targets: int, aggregate: str, presence: bool = False) -> Totals:
    """What the leaves that a row ends in give to each target, and with `presence` which targets they know."""
    leaves = leaves_of_trees(found)
    touched = [{target for leaf in own for target, _ in found.weights[leaf]} for own in leaves]
    covered = [_covered(found, own) for own in leaves]
    dtype, reducer = element(rows), _REDUCERS[aggregate]
    grouped = _grouped(touched, targets)
    if grouped is not None:
        order, width = grouped
        roots = np.array([found.leaves - 1 if tree is None else found.roots[tree] for tree in order], np.int32)
        places = _walked(emit, rows, found, roots)
        held = _weights(emit, found, places, dtype, reducer)
        shaped = emit.reshape(held, (rows.tensor.shape[0], targets, width))
        total = emit.reduce(shaped, (2,), reducer, keep=False)
    else:
        places = _walked(emit, rows, found, found.roots)
        total = emit.reduce(_spread(emit, found, places, targets, dtype, reducer), (1,), reducer, keep=False)
    if aggregate == "AVERAGE":
        total = emit.apply("divide", total, float(len(found.roots)))
    always = set[int]().union(*covered)
    if len(always) == targets or (reducer == "sum" and not presence):
        return Totals(total, None)
    if grouped is not None:
        places = _walked(emit, rows, found, found.roots)
    present = _present(emit, found, places, targets)
    return Totals(emit.apply("select", present, total, emit.zeros_like(total)), present)


def _covered(found: Forest, leaves: Sequence[int]) -> set[int]:
    """Targets that every leaf of a tree has a weight for."""
    sets = [{target for target, _ in found.weights[leaf]} for leaf in leaves]
    return set[int].intersection(*sets) if sets else set()


def _grouped(touched: Sequence[set[int]], targets: int) -> tuple[list[int | None], int] | None:
    """Trees sorted by the one target that each has weights for, and how many each target has (None: nothing).

    None where trees serve several targets, or where the fullest target has more than twice the trees of an average one.
    """
    if any(len(own) > 1 for own in touched):
        return None
    by_target: dict[int, list[int | None]] = {}
    for tree, own in enumerate(touched):
        for target in own:
            by_target.setdefault(target, []).append(tree)
    width = max(map(len, by_target.values()), default=0)
    if not width or width * targets > 2 * len(touched):
        return None
    order: list[int | None] = []
    for target in range(targets):
        trees = by_target.get(target, [])
        order += [*trees, *(None,) * (width - len(trees))]
    return order, width


def _identity(reducer: str) -> float:
    return {"sum": 0.0, "minimum": float("inf"), "maximum": float("-inf")}[reducer]


def _weights(emit: Emitter, found: Forest, places: Value, dtype: DType, reducer: str) -> Value:
    """The one weight of each leaf."""
    none = _identity(reducer)
    table = np.array([pairs[0][1] if pairs else none for pairs in found.weights], dtype.numpy)
    return emit.apply("take", emit.constant(table), places, dimension=0)


def _spread(emit: Emitter, found: Forest, places: Value, targets: int, dtype: DType, reducer: str) -> Value:
    """The weights of leaves [rows, trees, targets]."""
    none = _identity(reducer)
    if max(map(len, found.weights)) > 1:
        table = _table(found, targets, none, dtype)
        for leaf, pairs in enumerate(found.weights):
            for target, weight in pairs:
                table[leaf, target] = weight
        return emit.apply("take", emit.constant(table), places, dimension=0)
    own = np.array([pairs[0][0] if pairs else -1 for pairs in found.weights], np.int32)
    of = emit.expand_dims(emit.apply("take", emit.constant(own), places, dimension=0), [2])
    held = emit.expand_dims(_weights(emit, found, places, dtype, reducer), [2])
    hit = emit.compare("EQ", of, emit.iota((1, 1, targets), 2, dtypes.int32))
    return emit.apply("select", hit, held, emit.fill(none, dtype, hit.tensor.shape))


def _table(found: Forest, targets: int, fill: float, dtype: DType) -> Array:
    """A number for each leaf and target. Raises `NodeFault` 1124 where there are too many."""
    if found.leaves * targets > LARGEST_TABLE:
        raise NodeFault(1124, f"{found.leaves} leaves with weights for {targets} targets make too large a table")
    return np.full((found.leaves, targets), fill, dtype.numpy)


def _present(emit: Emitter, found: Forest, places: Value, targets: int) -> Value:
    """Whether a leaf had a weight for each target."""
    table = _table(found, targets, 0, dtypes.int32)
    for leaf, pairs in enumerate(found.weights):
        for target, _ in pairs:
            table[leaf, target] = 1
    held = emit.apply("take", emit.constant(table), places, dimension=0)
    return emit.compare("GT", emit.reduce(held, (1,), "maximum", keep=False), 0)


# -- regression --------------------------------------------------------------------------------------------------------
def _regression(emit: Emitter, rows: Value, found: Forest, targets: int, aggregate: str, how: str,
                base: Sequence[float]) -> Value:  # fmt: skip
    total = _totals(emit, rows, found, targets, aggregate).scores
    if base:
        if len(base) != targets:
            raise NodeFault(1108, f"there are {len(base)} base values for {targets} targets")
        # also for targets that got no weight, as specified; ONNX Runtime leaves those at 0
        total = emit.apply("add", total, emit.constant(np.array(base, element(total).numpy)))
    return scores.transformed(emit, total, how)


def _computed_in(node: OnnxNode, names: Sequence[str]) -> DType:
    """float64 where the rows or an attribute are, else float32."""
    wide = element(node.value(0)) == dtypes.float64 or any(node.given(name) for name in names)
    return dtypes.float64 if wide else dtypes.float32


_WIDE = ("nodes_values_as_tensor", "base_values_as_tensor")


def _regressor(node: OnnxNode) -> Value:
    rows = scores.rows_of(node, _computed_in(node, (*_WIDE, "target_weights_as_tensor")))
    targets = node.integer("n_targets", 1)
    aggregate = node.choice("aggregate_function", "SUM", AGGREGATES)
    found = branches_and_leaves(node, "target", targets, aggregate)
    base = numbers_of(node, "base_values")
    total = _regression(node.emit, rows, found, targets, aggregate, scores.transform(node), base)
    return node.emit.convert(total, dtypes.float32)


def _ensemble(node: OnnxNode) -> Value:
    kind = element(node.value(0))
    rows = scores.rows_of(node, kind if kind.bits >= 32 else dtypes.float32)
    targets = node.integer("n_targets", 1)
    aggregate = _numbered(node, "aggregate_function", AGGREGATES, 1)
    # 1 and 2 are SOFTMAX and LOGISTIC, as specified; ONNX Runtime takes them for each other
    how = _numbered(node, "post_transform", scores.TRANSFORMS, 0)
    found = from_tables(node, targets)
    return node.emit.convert(_regression(node.emit, rows, found, targets, aggregate, how, ()), kind)


def _numbered(node: OnnxNode, name: str, words: Sequence[str], default: int) -> str:
    found = node.integer(name, default)
    if not 0 <= found < len(words):
        raise NodeFault(1123, f"attribute {name!r} is {found}; supported: 0 to {len(words) - 1} ({', '.join(words)})")
    return words[found]


# -- classification ----------------------------------------------------------------------------------------------------
def _classifier(node: OnnxNode) -> tuple[Result, Value]:
    """The label and the scores of each row.

    A model of two classes whose leaves all vote for one of them has a single score, which decides by its sign, or where
    no vote is negative by 1/2: the rule of ONNX Runtime. All others take the class with the largest score, base values
    included, among those that got a vote. (ONNX Runtime knows labels 0 and 1 alone for two classes with votes for both,
    and the second's sign decides; the specification asks for the top class, as here.)
    """
    rows, emit = scores.rows_of(node, _computed_in(node, (*_WIDE, "class_weights_as_tensor"))), node.emit
    labels = scores.class_labels(node, "classlabels_int64s")
    found = branches_and_leaves(node, "class", len(labels), "SUM")
    how, base = scores.transform(node), numbers_of(node, "base_values")
    if base and len(base) not in (1, len(labels)):
        raise NodeFault(1108, f"there are {len(base)} base values for {len(labels)} classes")
    votes = {target for pairs in found.weights for target, _ in pairs}
    if len(labels) <= 2 and len(votes) == 1 and len(base) < 2:
        label, result = _single(emit, rows, found, labels, how, base)
    else:
        label, result = _several(emit, rows, found, labels, how, base)
    return label, emit.convert(result, dtypes.float32)


def _several(
    emit: Emitter, rows: Value, found: Forest, labels: Sequence[int] | Sequence[str], how: str, base: Sequence[float]
) -> tuple[Result, Value]:
    totals = _totals(emit, rows, found, len(labels), "SUM", presence=True)
    result, present = totals.scores, totals.present
    if base:
        if len(base) != len(labels):
            raise NodeFault(1108, f"there are {len(base)} base values for {len(labels)} classes")
        result, present = emit.apply("add", result, emit.constant(np.array(base, element(result).numpy))), None
    candidates = result
    if present is not None:
        none = emit.fill(float("-inf"), element(result), result.tensor.shape)
        candidates = emit.apply("select", present, result, none)
    return scores.labelled(emit, scores.best(emit, candidates), labels), scores.transformed(emit, result, how)


def _single(
    emit: Emitter, rows: Value, found: Forest, labels: Sequence[int] | Sequence[str], how: str, base: Sequence[float]
) -> tuple[Result, Value]:
    pairs = [pair for leaf in found.weights for pair in leaf]
    (vote,) = {target for target, _ in pairs}
    all_positive = len(labels) == 2 and all(weight >= 0 for _, weight in pairs)
    total = emit.slice_axis(_totals(emit, rows, found, len(labels), "SUM").scores, 1, vote, vote + 1)
    if base and vote == 0:
        total = emit.apply("add", total, float(base[0]))
    decided = scores.positive(emit, total, 0.5 if all_positive else 0.0)
    label = scores.labelled(emit, decided, scores.two_labels(labels))
    if len(labels) == 1:
        return label, scores.transformed(emit, total, how)
    if vote == 0:
        return label, scores.both(emit, total, complement=all_positive, how=how)
    return label, scores.transformed(emit, emit.concatenate([emit.zeros_like(total), total], 1), how)


CONVERTERS: dict[str, Converter] = {
    "ai.onnx.ml::TreeEnsemble": _ensemble, "ai.onnx.ml::TreeEnsembleClassifier": _classifier,
    "ai.onnx.ml::TreeEnsembleRegressor": _regressor,
}  # fmt: skip
