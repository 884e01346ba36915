"""How far a compiled result may be from the reference: forward error analysis, operator by operator, on actual data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from tilework.dims import Dim, dim
from tilework.dtypes import float64
from tilework.graph.graph import Array, Graph, Node
from tilework.graph.types import TensorType
from tilework.ops.interpret import interpret
from tilework.ops.registry import operator

EPSILON = {
    "float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3, "float8_e5m2": 2.0**-2, "float8_e5m2fnuz": 2.0**-2,
}  # fmt: skip
SMALLEST = {
    "float64": 5e-324, "float32": 1.5e-45, "float16": 6e-8, "bfloat16": 1e-40, "float8_e4m3fn": 2.0**-9,
    "float8_e4m3fnuz": 2.0**-10, "float8_e5m2": 2.0**-16, "float8_e5m2fnuz": 2.0**-17,
}  # fmt: skip
ROUGH = frozenset((
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "sine", "cosine", "tan", "sinh",
    "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "sqrt", "rsqrt", "divide", "power", "atan2",
    "softmax", "log_softmax",
))  # fmt: skip
UNITS = 8
"""Units in the last place that a function may be off."""

MOVES = frozenset((
    "transpose", "reshape", "assume", "broadcast_in_dim", "slice", "reverse", "concatenate", "pad_reflect",
    "resample",
))  # fmt: skip


def with_bounds(
    graph: Graph, inputs: Mapping[str, Array], symbols: Mapping[str, int]
) -> list[tuple[Array, Array | None]]:
    """Each output of a graph, and the largest error allowed at each element (None: it is exact)."""
    made = [value.name for node in graph.nodes for value in node.outputs]
    every = graph.replace(outputs=(*made, *graph.outputs), signature=None)
    found = interpret(every, inputs, symbols)
    values = {**inputs, **graph.constant_arrays, **dict(zip(made, found, strict=False))}
    errors: dict[str, Array] = {}
    for node in graph.nodes:
        error = _error(node, values, errors, symbols)
        if error is not None:
            errors[node.output.name] = error
    outputs = found[len(made) :]
    return [(array, errors.get(name)) for array, name in zip(outputs, graph.outputs, strict=True)]


def _error(
    node: Node, values: Mapping[str, Array], errors: Mapping[str, Array], symbols: Mapping[str, int]
) -> Array | None:
    dtype = node.output.tensor.dtype
    rough_inputs = any(name in errors for name in node.inputs)
    if not dtype.is_floating or not (rough_inputs or node.operator in ROUGH):
        return None
    result = _finite(values[node.output.name])
    rounding = EPSILON[dtype.name] * np.abs(result) + SMALLEST[dtype.name]
    if node.operator in ROUGH:
        assert not rough_inputs
        wide = max(EPSILON["float32" if dtype.bits < 32 else dtype.name], 2.0**-52)
        slack = UNITS * wide * np.abs(result)
        if "softmax" in node.operator:
            operand = _finite(values[node.inputs[0]])
            many = operand.size + 4 * float(np.max(np.abs(operand), initial=0))
            slack = slack + wide * (many + UNITS) * (np.abs(result) if node.operator == "softmax" else 1.0)
        return slack + 2 * rounding
    held = [_finite(values[name]) for name in node.inputs]
    error = [errors.get(name, np.zeros(values[name].shape)) for name in node.inputs]
    match node.operator:
        case "negate" | "abs" | "convert":
            return error[0] + 2 * rounding
        case "add" | "subtract":
            return error[0] + error[1] + 2 * rounding
        case "multiply":
            return np.abs(held[0]) * error[1] + np.abs(held[1]) * error[0] + error[0] * error[1] + 2 * rounding
        case "maximum" | "minimum":
            return np.maximum(error[0], error[1]) + 0 * rounding
        case "clamp":
            return error[1] + 0 * rounding
        case "select":
            return np.maximum(error[1], error[2]) + 0 * rounding
        case "take" | "take_along_axis" | "gather_nd":
            return _run(node, [error[0], values[node.inputs[1]]], symbols)
        case "pad":
            return _run(node, [error[0], np.zeros(())], symbols)
        case "reduce" | "reduce_window":
            return (
                _run(node, [error[0]], symbols, reducer="sum") + _sum_rounding(node, held[:1], symbols) + 2 * rounding
            )
        case "dot_general" | "convolution":
            a, b = np.abs(held[0]), np.abs(held[1])
            parts = _run(node, [a + error[0], b + error[1]], symbols) - _run(node, [a, b], symbols)
            return parts * (1 + 1e-9) + _sum_rounding(node, [a, b], symbols) + 2 * rounding
        case name if name in MOVES:
            return _run(node, error, symbols)
        case name:
            raise AssertionError(f"no error bound for {name}")


def _sum_rounding(node: Node, operands: list[Array], symbols: Mapping[str, int]) -> Array:
    """What sums in the accumulation type can lose: every element is rounded at most once a term."""
    dtype = node.output.tensor.dtype
    wide = EPSILON["float32" if dtype.bits < 32 else dtype.name]
    changes = {"reducer": "sum"} if node.operator in ("reduce", "reduce_window") else {}
    total = _run(node, [np.abs(operand) for operand in operands], symbols, **changes)
    return wide * (max(operand.size for operand in operands) + 2) * total


def _run(node: Node, operands: list[Array], symbols: Mapping[str, int], **changes: object) -> Array:
    """The node's reference on float64 numbers."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(plain, cast("tuple[Any, ...]", value)))
        return int(value.evaluate(symbols)) if isinstance(value, Dim) else value

    attributes = {name: plain(value) for name, value in {**node.attributes, **changes}.items()}
    shape = tuple(dim(int(extent.evaluate(symbols))) for extent in node.output.tensor.shape)
    (found,) = operator(node.operator).reference(operands, attributes, [TensorType(shape, float64)])
    return np.abs(found)


def _finite(array: Array) -> Array:
    return np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
