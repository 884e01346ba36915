"""Elementwise operators and activations in every element type that their newest schema allows, against onnx.reference.

Refused are strings and complex numbers, and what a version's schema does not list (Celu had only float32 before 28).
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator

import tilework
from tests.frontends.onnx.models import model
from tilework.errors import FrontendError

TYPES: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "bool": np.bool_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
    "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip
TOLERANCE = {"float": 3e-6, "double": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}
ONE = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Cos", "Cosh",
    "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN",
    "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
    "ThresholdedRelu", "Swish", "Clip",
]  # fmt: skip
TWO = [
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub",
    "Sum", "Xor",
]  # fmt: skip
RANGE = {"Acos": (-0.9, 0.9), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 3.0), "Log": (0.1, 3.0)}
POSITIVE = {"Sqrt": (0.0, 3.0), "Pow": (0.2, 2.0), "Div": (0.5, 3.0), "Reciprocal": (0.5, 3.0), "Mod": (0.5, 3.0)}
IN_FLOAT32 = {"Erf", "Gelu"}
"""Operators that onnx.reference computes in float32 whatever their type is."""


def draw(g: np.random.Generator, operator: str, name: str, count: int) -> Any:
    dtype = np.dtype(TYPES[name])
    if name == "bool":
        return g.integers(0, 2, (3, count)) == 1
    if dtype.kind in "iu":
        low = 1 if dtype.kind == "u" or operator in {"Div", "Mod", "Pow", "BitShift"} else -4
        return g.integers(low, 5, (3, count)).astype(dtype)
    low, high = {**RANGE, **POSITIVE}.get(operator, (-3.0, 3.0))
    return g.uniform(low, high, (3, count)).astype(dtype)


@pytest.mark.parametrize("operator", [*ONE, *TWO])
def test_every_type(operator: str) -> None:
    schema = defs.get_schema(operator)
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    names = [t[7:-1] for t in allowed.get(schema.inputs[0].type_str, [schema.inputs[0].type_str]) if t[7:-1] in TYPES]
    if operator == "Pow":
        names.remove("bfloat16") if "bfloat16" in names else None  # no type of the exponent
    assert names
    places = range(2 if operator in TWO else 1)
    inputs = {f"{name}_{n}": (TYPES[name], [3, "n"]) for name in names for n in places}
    shift: dict[str, Any] = {"direction": "LEFT"} if operator == "BitShift" else {}
    fraction: dict[str, Any] = {"fmod": 1} if operator == "Mod" else {}
    nodes = [
        helper.make_node(
            operator, [f"{name}_{n}" for n in places], [f"{name}_y"],
            **(fraction if name in TOLERANCE else shift),
        )
        for name in names
    ]  # fmt: skip
    proto = model(nodes, inputs, [f"{name}_y" for name in names], {}, defs.onnx_opset_version())
    executable = tilework.compile(proto)
    g = np.random.default_rng(len(operator))
    for count in (5, 0):
        feed = {f"{name}_{n}": draw(g, operator, name, count) for name in names for n in places}
        expected: Any = ReferenceEvaluator(proto).run(None, feed)  # pyright: ignore[reportUnknownMemberType]
        for name, got, wanted in zip(names, executable(**feed), expected, strict=True):
            assert got.dtype == wanted.dtype, name
            assert got.shape == wanted.shape
            near = 1e-6 if operator in IN_FLOAT32 and name == "double" else TOLERANCE.get(name, 0)
            one, other = got.astype(np.float64), wanted.astype(np.float64)
            np.testing.assert_allclose(one, other, near, near if near > 1e-3 else near / 10, err_msg=name)


def test_error_function_of_integers_and_in_float64() -> None:
    names = ["int8", "int32", "int64", "uint8", "uint64", "double"]
    nodes = [helper.make_node("Erf", [name], [f"{name}_y"]) for name in names]
    proto = model(nodes, {name: (TYPES[name], ["n"]) for name in names}, [f"{name}_y" for name in names], {}, 9)
    executable = tilework.compile(proto)
    feed = {name: np.arange(0 if name[0] == "u" else -6, 7).astype(TYPES[name]) for name in names[:-1]}
    for name in names[:-1]:
        feed[name] = np.resize(feed[name], 13)
    feed["double"] = np.linspace(-3, 3, 13)
    *whole, exact = executable(**feed)
    for name, got in zip(names, whole, strict=False):
        expected = np.array([math.erf(x) for x in feed[name]], np.float32).astype(TYPES[name])
        np.testing.assert_array_equal(got, expected, err_msg=name)
    np.testing.assert_allclose(exact, [math.erf(x) for x in feed["double"]], rtol=2e-15)


def test_a_type_that_the_version_does_not_list() -> None:
    proto = model([helper.make_node("Celu", ["x"], ["y"])], {"x": (TensorProto.DOUBLE, [3])}, ["y"], {}, 20)
    with pytest.raises(FrontendError, match="a type it does not take"):
        tilework.compile(proto)
