"""What softmax and its logarithm share: the shifted exponentials and their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilework.compute.notation import Axis, Stage
from tilework.dtypes import DType
from tilework.fast_dataclass import dataclass
from tilework.graph.graph import Attribute
from tilework.graph.types import TensorType, ValueType
from tilework.loops.expressions import Expression, Parameter, call, constant
from tilework.loops.program import Buffer, Reducer
from tilework.loops.reducers import reducer
from tilework.ops._stages import accumulator, axes, load
from tilework.ops.operator import Array, Counts
from tilework.ops.rules import FLOATING, Rule


def infer_softmax(
    name: str, operands: Sequence[ValueType], attributes: Mapping[str, Attribute]
) -> tuple[ValueType, ...]:
    """One floating operand; the result has its type."""
    rule = Rule(name, operands, attributes)
    (operand,) = rule.tensors(1)
    rule.kind(operand, FLOATING)
    rule.axis("dimension", operand.rank)
    rule.finish()
    return (operand,)


@dataclass(frozen=True)
class Normalisation:
    """The stages that find, for every row, the maximum and the sum of exponentials; and a point of the last stage."""

    stages: tuple[Stage, ...]
    points: tuple[Axis, ...]
    row: tuple[Axis, ...]
    """The point's row."""
    shifted: Expression
    """The element at the point less the row's maximum, in the wide type."""
    exponential: Expression
    """e to that: read from where the sum's terms are, with `keep`."""
    total: Buffer
    """Each row's sum of exponentials, in the wide type."""


def _larger(dtype: DType) -> Reducer:
    """The larger of two, in one instruction where `maximum` takes three: which of them is NaN is not looked for.

    A NaN in a row is found all the same: its own exponential is NaN, and so is the sum.
    """
    left, right = Parameter("left", dtype), Parameter("right", dtype)
    larger = call("select", call("greater", left, right), left, right)
    return Reducer("larger", (left,), (right,), (larger,), (constant(-math.inf, dtype),))


def normalisation(operand: Buffer, result: Buffer, dimension: int, *, keep: bool) -> Normalisation:
    """Rows along a dimension, kept in float32 where the type is narrower.

    `keep`: the exponentials are a stage of their own, for a result that needs each of them once more.
    """
    wide = accumulator(operand.dtype)
    rows_shape = operand.shape[:dimension] + operand.shape[dimension + 1 :]
    largest = Buffer(f"{result.name}.maximum", rows_shape, wide)
    total = Buffer(f"{result.name}.total", rows_shape, wide)
    extent = [operand.shape[dimension]]

    rows = axes(f"{result.name}.maximum", rows_shape)
    (inner,) = axes(f"{result.name}.maximum", extent, "k", "reduction")
    pick = _larger(wide)
    element = load(operand, (*rows[:dimension], inner, *rows[dimension:]), wide)
    find = Stage(f"{result.name}.find_maximum", (largest,), (*rows, inner), (element,), None, pick, pick.identity)

    points = axes(result.name, result.shape)
    row = (*points[:dimension], *points[dimension + 1 :])
    shifted = load(operand, points, wide) - load(largest, row)
    stages = [find]

    rows = axes(f"{result.name}.total", rows_shape)
    (inner,) = axes(f"{result.name}.total", extent, "k", "reduction")
    sums = reducer("sum", wide)
    place = (*rows[:dimension], inner, *rows[dimension:])
    if keep:
        powers = Buffer(f"{result.name}.powers", operand.shape, wide)
        there = axes(powers.name, operand.shape)
        below = load(operand, there, wide) - load(largest, (*there[:dimension], *there[dimension + 1 :]))
        value = call("exp", call("minimum", below, 0.0))
        stages.append(Stage(f"{result.name}.raise", (powers,), there, (value,)))
        term, exponential = load(powers, place), load(powers, points)
    else:
        term = call("exp", call("minimum", load(operand, place, wide) - load(largest, rows), 0.0))
        exponential = call("exp", shifted)
    stages.append(Stage(f"{result.name}.add", (total,), (*rows, inner), (term,), None, sums, sums.identity))
    return Normalisation(tuple(stages), points, row, shifted, exponential, total)


def numpy_normalisation(operand: Array, attributes: Mapping[str, Any]) -> tuple[Array, Array]:
    """In float64: the shifted elements, and the sums of their exponentials with the dimension kept."""
    dimension = int(attributes["dimension"])
    wide = operand.astype(np.float64)
    with np.errstate(all="ignore"):
        shifted = wide - wide.max(axis=dimension, keepdims=True, initial=-np.inf)
        return shifted, np.exp(shifted).sum(axis=dimension, keepdims=True)


def softmax_counts(operands: Sequence[ValueType], traffic: Counts) -> Counts:
    """Five operations an element: compare, subtract, exponential, add, and the last one."""
    (operand,) = operands
    assert isinstance(operand, TensorType)
    return Counts(operand.size * 5, traffic.bytes)
