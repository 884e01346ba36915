"""Support vector machines (ai.onnx.ml), computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from tilework import dtypes
from tilework.fast_dataclass import dataclass
from tilework.frontends.onnx import scores
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, Result, element
from tilework.graph.graph import Array, Value

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")

SWEEPS = 100
"""Most sweeps of the iteration that couples pairwise probabilities."""
CLEAR_OF_CERTAINTY = 1e-7
"""How near to 0 and 1 a pairwise probability may come."""


# -- kernels -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters."""

    kind: str
    gamma: float
    coefficient: float
    degree: float


def _kernel(node: OnnxNode) -> Kernel:
    parameters = node.numbers("kernel_params", ())
    if len(parameters) not in (0, 3):
        raise NodeFault(1108, f"kernel_params has {len(parameters)} entries; gamma, coef0 and degree are wanted")
    gamma, coefficient, degree = parameters or (0.0, 0.0, 0.0)
    return Kernel(node.choice("kernel_type", "LINEAR", KERNELS), gamma, coefficient, degree)


def _matrix(numbers: Sequence[float], count: int, what: str) -> Array:
    """Numbers as `count` rows."""
    if count < 1 or not numbers or len(numbers) % count:
        raise NodeFault(1108, f"{what} has {len(numbers)} entries, which make no {count} rows")
    return np.array(numbers, np.float32).reshape(count, -1)


def _products(emit: Emitter, rows: Value, vectors: Array) -> Value:
    """Rows times vectors [count, features]: [rows, count]."""
    return emit.dot(rows, emit.constant(np.ascontiguousarray(vectors.T)), (), (), (1,), (0,))


def _kernels(emit: Emitter, rows: Value, vectors: Array, kernel: Kernel) -> Value:
    """The kernel of every row with every support vector: [rows, vectors]."""
    if kernel.kind == "LINEAR":
        return _products(emit, rows, vectors)
    if kernel.kind == "RBF":
        emit.equal_shapes(rows.tensor.shape[1:], emit.constant(vectors).tensor.shape[1:])
        gap = emit.apply("subtract", emit.expand_dims(rows, [1]), emit.constant(vectors[None]))
        distance = emit.reduce(emit.apply("multiply", gap, gap), (2,), "sum", keep=False)
        return emit.apply("exponential", emit.apply("multiply", distance, -kernel.gamma))
    found = emit.apply("multiply", _products(emit, rows, vectors), kernel.gamma)
    found = emit.apply("add", found, kernel.coefficient)
    if kernel.kind == "SIGMOID":
        return emit.apply("tanh", found)
    return _power(emit, found, kernel.degree)


def _power(emit: Emitter, base: Value, degree: float) -> Value:
    if degree not in (1, 2, 3, 4):
        return emit.apply("power", base, degree)
    found = base
    for _ in range(int(degree) - 1):
        found = emit.apply("multiply", found, base)
    return found


# -- regression --------------------------------------------------------------------------------------------------------
def _offsets(node: OnnxNode, least: int) -> tuple[float, ...]:
    rho = node.numbers("rho", ())
    if len(rho) < least:
        raise NodeFault(1108, f"rho has {len(rho)} entries, {least} are needed")
    return rho


def _regressor(node: OnnxNode) -> Value:
    """The sum over support vectors (none: a linear model). As in ONNX Runtime, nothing is done to it afterwards."""
    rows, emit = scores.rows_of(node), node.emit
    count = node.integer("n_supports", 0)
    coefficients, rho = node.numbers("coefficients", ()), _offsets(node, 1)
    scores.transform(node)
    if count > 0:
        vectors = _matrix(node.numbers("support_vectors", ()), count, "support_vectors")
        rows = _kernels(emit, rows, vectors, _kernel(node))
        if len(coefficients) != count:
            raise NodeFault(1108, f"coefficients has {len(coefficients)} entries for {count} support vectors")
    found = emit.apply("add", _products(emit, rows, _matrix(coefficients, 1, "coefficients")), rho[0])
    if not node.flag("one_class"):
        return found
    sides = (emit.fill(side, element(found), found.tensor.shape) for side in (1.0, -1.0))
    return emit.apply("select", emit.compare("GT", found, 0.0), *sides)


# -- classification ----------------------------------------------------------------------------------------------------
def _classifier(node: OnnxNode) -> tuple[Result, Value]:
    labels = scores.class_labels(node, "classlabels_ints")
    per_class = node.integers("vectors_per_class", ())
    if any(count < 0 for count in per_class):
        raise NodeFault(1108, f"vectors_per_class holds {min(per_class)}")
    if not sum(per_class):
        return _linear(node, labels)
    if len(per_class) != len(labels):
        raise NodeFault(1108, f"vectors_per_class has {len(per_class)} entries for {len(labels)} classes")
    if len(labels) < 2:
        raise NodeFault(1108, "support vectors decide between two classes or more, there is one")
    return _of_pairs(node, labels, per_class)


def _linear(node: OnnxNode, labels: Sequence[int] | Sequence[str]) -> tuple[Result, Value]:
    """A score for each class.

    Of two classes without a negative coefficient the second is taken as soon as a score reaches 1/2, as in ONNX
    Runtime; otherwise the class with the larger score, as specified (ONNX Runtime takes the second where a score is
    positive).
    """
    rows, emit = scores.rows_of(node), node.emit
    coefficients = node.numbers("coefficients", ())
    matrix = _matrix(coefficients, len(labels), "coefficients")
    found = emit.apply("add", _products(emit, rows, matrix), _offsets(node, 1)[0])
    place = scores.best(emit, found)
    if len(labels) == 2 and min(coefficients) >= 0 and not node.numbers("prob_a", ()):
        top = emit.reduce(found, (1,), "maximum", keep=False)
        second = emit.fill(1, dtypes.int64, place.tensor.shape)
        place = emit.apply("select", emit.compare("GE", top, 0.5), second, place)
    return scores.labelled(emit, place, labels), scores.transformed(emit, found, scores.transform(node))


def _of_pairs(node: OnnxNode, labels: Sequence[int] | Sequence[str], per_class: Sequence[int]) -> tuple[Result, Value]:
    """A decision for each pair of classes; the class that wins most pairs (of equal ones the first) is the label."""
    rows, emit = scores.rows_of(node), node.emit
    count, classes = sum(per_class), len(labels)
    rho, how = _offsets(node, classes * (classes - 1) // 2), scores.transform(node)
    pairs = list(combinations(range(classes), 2))
    vectors = _matrix(node.numbers("support_vectors", ()), count, "support_vectors")
    kernels = _kernels(emit, rows, vectors, _kernel(node))
    coefficients = _matrix(node.numbers("coefficients", ()), classes - 1, "coefficients")
    if coefficients.shape[1] != count:
        raise NodeFault(1108, f"coefficients has {coefficients.size} entries for {classes} classes, {count} vectors")
    decisions = _products(emit, kernels, _pair_matrix(coefficients, per_class, pairs))
    decisions = emit.apply("add", decisions, emit.constant(np.array(rho[: len(pairs)], np.float32)))
    label = scores.labelled(emit, scores.best(emit, _votes(emit, decisions, pairs, classes)), labels)
    slopes, shifts = node.numbers("prob_a", ()), node.numbers("prob_b", ())
    if slopes or shifts:
        if min(len(slopes), len(shifts)) < len(pairs):
            raise NodeFault(
                1108, f"prob_a and prob_b have {len(slopes)} and {len(shifts)} entries for {len(pairs)} pairs"
            )
        found = _probabilities(emit, decisions, slopes, shifts, pairs, classes)
        return label, scores.transformed(emit, found, how)
    if classes == 2:
        return label, scores.both(emit, decisions, complement=how != "NONE", how=how)
    return label, scores.transformed(emit, decisions, how)


def _pair_matrix(coefficients: Array, per_class: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Array:
    """What each support vector counts for each pair [pairs, vectors]: those of the first class in row (second - 1) of
    the coefficients, those of the second class in row (first).
    """
    starts = np.concatenate([[0], np.cumsum(per_class)])
    matrix = np.zeros((len(pairs), coefficients.shape[1]), np.float32)
    for place, (one, other) in enumerate(pairs):
        first, second = (slice(starts[side], starts[side + 1]) for side in (one, other))
        matrix[place, first] = coefficients[other - 1, first]
        matrix[place, second] = coefficients[one, second]
    return matrix


def _votes(emit: Emitter, decisions: Value, pairs: Sequence[tuple[int, int]], classes: int) -> Value:
    """How many pairs each class wins [rows, classes]: the first of a pair where the decision is positive."""
    gain, start = np.zeros((len(pairs), classes), np.float32), np.zeros(classes, np.float32)
    for place, (one, other) in enumerate(pairs):
        gain[place, one], gain[place, other] = 1, -1
        start[other] += 1
    wins = emit.convert(emit.compare("GT", decisions, 0.0), dtypes.float32)
    return emit.apply("add", _products(emit, wins, gain.T), emit.constant(start))


# -- probabilities -----------------------------------------------------------------------------------------------------
def _probabilities(
    emit: Emitter, decisions: Value, slopes: Sequence[float], shifts: Sequence[float],
    pairs: Sequence[tuple[int, int]], classes: int,
) -> Value:  # fmt: skip
    """Probabilities of classes from those of pairs: the second method of Wu, Lin and Weng (2004), as in libsvm."""
    slope, shift = (emit.constant(np.array(n[: len(pairs)], np.float32)) for n in (slopes, shifts))
    sigmoid = emit.apply("add", emit.apply("multiply", decisions, slope), shift)
    first = emit.apply("logistic", emit.apply("negate", sigmoid))
    low, high = (
        emit.scalar(float(np.float32(n)), dtypes.float32) for n in (CLEAR_OF_CERTAINTY, 1 - CLEAR_OF_CERTAINTY)
    )
    first = emit.apply("minimum", emit.apply("maximum", first, low), high)
    # r [rows, i, j], the probability of class i against class j, and 0 on the diagonal
    spread = np.zeros((2 * len(pairs), classes, classes), np.float32)
    for place, (one, other) in enumerate(pairs):
        spread[place, one, other] = spread[len(pairs) + place, other, one] = 1
    both = emit.concatenate([first, emit.apply("subtract", 1.0, first)], 1)
    count = decisions.tensor.shape[0]
    flat = emit.dot(both, emit.constant(spread.reshape(2 * len(pairs), -1)), (), (), (1,), (0,))
    against = emit.reshape(flat, (count, classes, classes))
    turned = emit.transpose(against, (0, 2, 1))
    squares = emit.reduce(emit.apply("multiply", turned, turned), (2,), "sum")
    diagonal = emit.constant(np.eye(classes, dtype=np.float32))
    crossed = emit.apply("negate", emit.apply("multiply", turned, against))
    system = emit.apply("add", crossed, emit.apply("multiply", diagonal, squares))
    return _coupled(emit, system, classes)


def _coupled(emit: Emitter, system: Value, classes: int) -> Value:
    """Minimise p Q p over probabilities: sweeps over the classes until the residual of a row is small."""
    count = system.tensor.shape[0]
    start = emit.fill(1 / classes, dtypes.float32, (count, classes))
    state = [emit.scalar(0, dtypes.int64), emit.fill(False, dtypes.boolean, (count, 1)), start]
    asked = emit.inside("condition")
    trip, done, _ = (asked.builder.input(asked.builder.fresh("state"), v.tensor.dtype, *v.tensor.shape) for v in state)
    left = asked.reduce(asked.apply("not", done), (0, 1), "or", keep=False)
    go_on = asked.apply("and", asked.compare("LT", trip, SWEEPS), left)
    condition = asked.builder.build([go_on])
    inner = emit.inside("sweep")
    trip, done, p = (inner.builder.input(inner.builder.fresh("state"), v.tensor.dtype, *v.tensor.shape) for v in state)
    product = inner.reduce(inner.apply("multiply", system, inner.expand_dims(p, [1])), (2,), "sum", keep=False)
    value = inner.reduce(inner.apply("multiply", p, product), (1,), "sum")
    worst = inner.reduce(inner.apply("abs", inner.apply("subtract", product, value)), (1,), "maximum")
    settled = inner.apply("or", done, inner.compare("LT", worst, 0.005 / classes))
    moved = _swept(inner, system, p, product, value, classes)
    following = inner.apply("select", inner.broadcast(settled, p.tensor.shape), p, moved)
    body = inner.builder.build([inner.apply("add", trip, 1), settled, following])
    found = emit.builder.apply_all("while", state, {}, location=emit.location, subgraphs=[condition, body])
    return found[2]


def _swept(emit: Emitter, system: Value, p: Value, product: Value, value: Value, classes: int) -> Value:
    """One sweep: each class in turn gets its best probability, given the others, and all are scaled to a sum of 1."""
    for place in range(classes):
        row = emit.drop_dims(emit.slice_axis(system, 1, place, place + 1), [1])
        own = emit.slice_axis(row, 1, place, place + 1)
        residual = emit.slice_axis(product, 1, place, place + 1)
        step = emit.apply("divide", emit.apply("subtract", value, residual), own)
        scale = emit.apply("add", step, 1.0)
        grown = emit.apply("add", emit.apply("multiply", step, own), emit.apply("multiply", residual, 2.0))
        value = emit.apply("add", value, emit.apply("multiply", step, grown))
        value = emit.apply("divide", emit.apply("divide", value, scale), scale)
        product = emit.apply("divide", emit.apply("add", product, emit.apply("multiply", step, row)), scale)
        here = emit.constant(np.eye(classes, dtype=np.float32)[place : place + 1])
        p = emit.apply("divide", emit.apply("add", p, emit.apply("multiply", step, here)), scale)
    return p


CONVERTERS: dict[str, Converter] = {
    "ai.onnx.ml::SVMClassifier": _classifier, "ai.onnx.ml::SVMRegressor": _regressor,
}  # fmt: skip
