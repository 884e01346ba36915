"""Linear models, scaling and normalising of features (ai.onnx.ml). They compute in float32, whatever they are given."""

from __future__ import annotations

import numpy as np

from tilework import dtypes
from tilework.dims import dim
from tilework.frontends.onnx import scores
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, Result, element
from tilework.graph.graph import Value


def _products(node: OnnxNode, rows: Value, coefficients: tuple[float, ...], targets: int) -> Value:
    """Rows times the transposed matrix of coefficients [targets, features].

    Coefficients beyond those that the features need are left out, as ONNX Runtime has it.
    """
    features = rows.tensor.shape[1].value
    if features is None:
        features = scores.features_of(len(coefficients), targets, "coefficients")
    used = targets * features
    if targets < 1 or len(coefficients) < used:
        raise NodeFault(1108, f"coefficients has {len(coefficients)} entries, {targets} x {features} are needed")
    matrix = np.array(coefficients[:used], np.float32).reshape(targets, features).T
    return node.emit.dot(rows, node.emit.constant(np.ascontiguousarray(matrix)), (), (), (1,), (0,))


def _classifier(node: OnnxNode) -> tuple[Result, Value]:
    rows, emit = scores.rows_of(node), node.emit
    labels = scores.class_labels(node, "classlabels_ints")
    coefficients, intercepts = node.numbers("coefficients"), node.numbers("intercepts", ())
    targets = len(intercepts) or _implied_targets(len(coefficients), rows, len(labels))
    found = _products(node, rows, coefficients, targets)
    if intercepts:
        found = emit.apply("add", found, emit.constant(np.array(intercepts, np.float32)))
    how = scores.transform(node)
    if targets == 1:
        label = scores.labelled(emit, scores.positive(emit, found), scores.two_labels(labels))
        if len(labels) != 2:
            return label, scores.transformed(emit, found, how)
        return label, scores.both(emit, found, complement=True, how=how)
    if len(labels) < targets:
        raise NodeFault(1108, f"it has {len(labels)} labels and computes {targets} scores")
    return scores.labelled(emit, scores.best(emit, found), labels), scores.transformed(emit, found, how)


def _implied_targets(coefficients: int, rows: Value, labels: int) -> int:
    """The number of scores where no intercepts tell: what the features leave, else one per label."""
    features = rows.tensor.shape[1].value
    return coefficients // features if features else labels


def _regressor(node: OnnxNode) -> Value:
    rows, emit = scores.rows_of(node), node.emit
    targets = node.integer("targets", 1)
    found = _products(node, rows, node.numbers("coefficients", ()), targets)
    intercepts = node.numbers("intercepts", ())
    if intercepts:
        if len(intercepts) != targets:
            raise NodeFault(1108, f"intercepts has {len(intercepts)} entries for {targets} targets")
        found = emit.apply("add", found, emit.constant(np.array(intercepts, np.float32)))
    return scores.transformed(emit, found, scores.transform(node))


def _per_feature(node: OnnxNode, name: str, value: Value) -> Value | None:
    """An attribute of one number, or of one for each feature (the last dimension); None where it is not given."""
    numbers = node.numbers(name, ())
    if not numbers:
        return None
    if len(numbers) == 1:
        return node.emit.scalar(numbers[0], dtypes.float32)
    if not value.tensor.rank:
        raise NodeFault(1108, f"attribute {name!r} has {len(numbers)} entries for a single number")
    extent = value.tensor.shape[-1]
    if extent.is_constant and extent != len(numbers):
        raise NodeFault(1108, f"attribute {name!r} has {len(numbers)} entries for {extent} features")
    return node.emit.constant(np.array(numbers, np.float32))


def _scaler(node: OnnxNode) -> Value:
    """(x - offset) x scale."""
    emit = node.emit
    value = emit.convert(node.value(0), dtypes.float32)
    offset, scale = _per_feature(node, "offset", value), _per_feature(node, "scale", value)
    if offset is not None:
        value = emit.apply("subtract", value, _along(node, offset, value))
    return value if scale is None else emit.apply("multiply", value, _along(node, scale, value))


def _along(node: OnnxNode, numbers: Value, value: Value) -> Value:
    """Numbers for each feature, of which there must be as many."""
    if numbers.tensor.rank:
        node.emit.equal_shapes(numbers.tensor.shape, value.tensor.shape[-1:])
    return numbers


def _normalizer(node: OnnxNode) -> Value:
    """Each row over its largest element (not the largest magnitude), its sum of magnitudes, or its length.

    A row whose divisor is zero stays as it is.
    """
    emit = node.emit
    how = node.choice("norm", "MAX", ("MAX", "L1", "L2"))
    value = emit.convert(node.value(0), dtypes.float32)
    if value.tensor.rank not in (1, 2):
        raise NodeFault(1119, f"the input {value.type} must have one or two dimensions")
    axis = (value.tensor.rank - 1,)
    if how == "MAX":
        least = emit.scalar(float(np.finfo(np.float32).min), dtypes.float32)
        # NaN does not take part, and nothing is smaller than the least number: so ONNX Runtime
        by = emit.reduce(emit.apply("select", emit.compare("GT", value, least), value, least), axis, "maximum")
    elif how == "L1":
        by = emit.reduce(emit.apply("abs", value), axis, "sum")
    else:
        by = emit.apply("sqrt", emit.reduce(emit.apply("multiply", value, value), axis, "sum"))
    by = emit.apply("select", emit.compare("EQ", by, 0.0), emit.fill(1.0, element(by), by.tensor.shape), by)
    return emit.apply("divide", value, by)


def _binarizer(node: OnnxNode) -> Value:
    """1 where an element is larger than the threshold, else 0 (NaN too), in the input's type."""
    value, emit = node.value(0), node.emit
    threshold = node.number("threshold", 0.0)
    wide = value if element(value).is_floating else emit.convert(value, dtypes.float64)
    return emit.convert(emit.compare("GT", wide, threshold), element(value))


def _feature_vectorizer(node: OnnxNode) -> Value:
    """Inputs side by side as rows of float32, each cut or filled with zeros to its entry of `inputdimensions`."""
    emit = node.emit
    values = [emit.convert(value, dtypes.float32) for value in node.values()]
    widths = node.integers("inputdimensions", ())
    if widths and len(widths) != len(values):
        raise NodeFault(1108, f"inputdimensions has {len(widths)} entries for {len(values)} inputs")
    parts: list[Value] = []
    for place, value in enumerate(values):
        if not value.tensor.rank:
            raise NodeFault(1119, f"input {place} is {value.type}, it must have a dimension")
        if value.tensor.rank == 1:
            value = emit.expand_dims(value, [0])
        elif value.tensor.rank > 2:
            value = emit.reshape(value, (value.tensor.shape[0], emit.count(value, range(1, value.tensor.rank))))
        parts.append(_of_width(node, value, widths[place]) if widths else value)
        emit.equal_shapes(parts[0].tensor.shape[:1], value.tensor.shape[:1])
    return emit.concatenate(parts, 1)


def _of_width(node: OnnxNode, value: Value, width: int) -> Value:
    extent, emit = value.tensor.shape[1], node.emit
    if not 0 <= width < 2**31:
        raise NodeFault(1108, f"inputdimensions holds {width}")
    if extent == width:
        return value
    if not extent.is_constant:
        emit.equal_shapes((extent,), (dim(width),))
        return value
    if extent.constant > width:
        return emit.slice_axis(value, 1, 0, width)
    return emit.pad(value, 0.0, (0, 0), (0, width - extent))


CONVERTERS: dict[str, Converter] = {
    "ai.onnx.ml::Binarizer": _binarizer, "ai.onnx.ml::FeatureVectorizer": _feature_vectorizer,
    "ai.onnx.ml::LinearClassifier": _classifier, "ai.onnx.ml::LinearRegressor": _regressor,
    "ai.onnx.ml::Normalizer": _normalizer, "ai.onnx.ml::Scaler": _scaler,
}  # fmt: skip
