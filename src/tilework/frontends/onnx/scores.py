"""What the models of ai.onnx.ml share: rows of features, transforms of scores, labels of classes.

Where the specification leaves a case open, or ONNX Runtime departs from it, the answer is ONNX Runtime's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilework import dtypes
from tilework.dtypes import DType
from tilework.frontends.onnx.emitter import Emitter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, Result
from tilework.frontends.onnx.operand import Operand
from tilework.graph.graph import Value

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""What may be done to scores, in the order in which ai.onnx.ml numbers them."""

ALMOST_ZERO = 1e-7
"""Scores no further from zero count as zero for SOFTMAX_ZERO."""

_WINITZKI = 0.147
"""The constant of Winitzki's approximation of the inverse error function, by which PROBIT is computed."""


def rows_of(node: OnnxNode, dtype: DType | None = None) -> Value:
    """The first input as rows of features in float32 (or `dtype`); a vector is one row."""
    value, emit = node.value(0), node.emit
    if value.tensor.rank == 1:
        value = emit.expand_dims(value, [0])
    if value.tensor.rank != 2:
        raise NodeFault(1119, f"the input {value.type} must have one or two dimensions")
    return emit.convert(value, dtypes.float32 if dtype is None else dtype)


def transform(node: OnnxNode, default: str = "NONE") -> str:
    """What a model does to its scores, one of `TRANSFORMS`."""
    return node.choice("post_transform", default, TRANSFORMS)


# -- transforms --------------------------------------------------------------------------------------------------------
def transformed(emit: Emitter, scores: Value, how: str) -> Value:
    """Scores [rows, classes] after a transform. A single column takes part in PROBIT alone, as in ONNX Runtime."""
    if how == "PROBIT":
        return probit(emit, scores)
    if how == "NONE" or scores.tensor.shape[1] == 1:
        return scores
    if how == "LOGISTIC":
        return emit.apply("logistic", scores)
    if how == "SOFTMAX":
        return emit.apply("softmax", scores, dimension=1)
    return _softmax_zero(emit, scores)


def _softmax_zero(emit: Emitter, scores: Value) -> Value:
    """A softmax in which scores of zero stay (almost) zero and do not count; a row of zeros alone is NaN."""
    top = emit.reduce(scores, (1,), "maximum")
    exponential = emit.apply("exponential", emit.apply("subtract", scores, top))
    zero = emit.compare("LE", emit.apply("abs", scores), ALMOST_ZERO)
    total = emit.reduce(emit.apply("select", zero, emit.zeros_like(scores), exponential), (1,), "sum")
    scaled = emit.apply("multiply", scores, emit.apply("exponential", emit.apply("negate", top)))
    return emit.apply("divide", emit.apply("select", zero, scaled, exponential), total)


def probit(emit: Emitter, scores: Value) -> Value:
    """The quantile of the normal distribution, sqrt(2) erfinv(2 p - 1); NaN outside 0 .. 1.

    Winitzki's approximation, a relative error of 2e-3: what ONNX's reference and ONNX Runtime compute.
    """
    x = emit.apply("subtract", emit.apply("multiply", scores, 2.0), 1.0)
    log = emit.apply("log", emit.apply("multiply", emit.apply("subtract", 1.0, x), emit.apply("add", x, 1.0)))
    half = emit.apply("add", emit.apply("multiply", log, 0.5), 2 / (math.pi * _WINITZKI))
    root = emit.apply("sqrt", emit.apply("subtract", emit.apply("multiply", half, half), _over(emit, log)))
    size = emit.apply("multiply", emit.apply("sqrt", emit.apply("subtract", root, half)), math.sqrt(2))
    return emit.apply("select", emit.compare("LT", x, 0.0), emit.apply("negate", size), size)


def _over(emit: Emitter, log: Value) -> Value:
    return emit.apply("multiply", log, 1 / _WINITZKI)


def both(emit: Emitter, score: Value, complement: bool, how: str) -> Value:
    """The scores of two classes from the second one's [rows, 1]: (1 - s, s) where `complement`, else (-s, s).

    LOGISTIC turns both into probabilities, PROBIT into quantiles; softmaxes have no part in it (so ONNX Runtime).
    """
    if how == "LOGISTIC":
        complement, score = True, emit.apply("logistic", score)
    other = emit.apply("subtract", 1.0, score) if complement else emit.apply("negate", score)
    found = emit.concatenate([other, score], 1)
    return probit(emit, found) if how == "PROBIT" else found


# -- labels ------------------------------------------------------------------------------------------------------------
def class_labels(node: OnnxNode, integers: str) -> tuple[int, ...] | tuple[str, ...]:
    """The labels of a classifier: its attribute of strings or that of integers, exactly one of which is given."""
    strings, numbers = node.texts("classlabels_strings", ()), node.integers(integers, ())
    if bool(strings) == bool(numbers):
        raise NodeFault(1108, f"one of classlabels_strings and {integers} must be given, and hold labels")
    return strings or numbers


def labelled(emit: Emitter, places: Value, labels: Sequence[int] | Sequence[str]) -> Result:
    """The label at each of some int64 positions: integers, or strings."""
    if all(isinstance(label, str) for label in labels):
        return Operand("", dtypes.int64, places.tensor.shape, value=places, words=tuple(map(str, labels)))
    if list(labels) == list(range(len(labels))):
        return places
    return emit.apply("take", emit.constant(np.array(labels, np.int64)), places, dimension=0)


def best(emit: Emitter, scores: Value) -> Value:
    """The position of the largest score of each row."""
    return emit.apply("arg_reduce", scores, dimension=1, direction="maximum", keep_dimensions=False, last=False)


def positive(emit: Emitter, score: Value, least: float = 0.0) -> Value:
    """1 for each row [rows, 1] whose score is larger than `least`, else 0, as [rows]."""
    found = emit.convert(emit.compare("GT", score, least), dtypes.int64)
    return emit.drop_dims(found, [1])


def two_labels(labels: Sequence[int] | Sequence[str]) -> Sequence[int] | Sequence[str]:
    """The labels that a single score decides between; 0 and 1 where the model does not name two."""
    if len(labels) == 2:
        return labels
    return ("0", "1") if isinstance(labels[0], str) else (0, 1)


# -- attributes --------------------------------------------------------------------------------------------------------
def features_of(numbers: int, targets: int, what: str) -> int:
    """The number of features where `numbers` coefficients serve `targets` results; `NodeFault` 1108 if they do not."""
    if targets < 1 or numbers < targets or numbers % targets:
        raise NodeFault(1108, f"{what} has {numbers} entries, which do not serve {targets} results")
    return numbers // targets
