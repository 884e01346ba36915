"""Element by element: arithmetic, comparisons, logic, bits, casts. Since version 7 ONNX broadcasts as numpy does."""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.dtypes import DType
from tilework.frontends.onnx.broadcasting import together
from tilework.frontends.onnx.converters import Converter
from tilework.frontends.onnx.faults import NodeFault
from tilework.frontends.onnx.node import OnnxNode, element
from tilework.frontends.onnx.tensors import ELEMENT_TYPES, ONNX_NAMES, element_type
from tilework.graph.graph import Value


def _unary(operator: str) -> Converter:
    return lambda node: node.emit.apply(operator, node.value(0))


def _pair(node: OnnxNode) -> tuple[Value, Value]:
    """Both operands; before version 7 the second may stand at an axis of the first."""
    left, right = node.value(0), node.value(1)
    if node.opset >= 7 or not node.flag("broadcast") or not node.given("axis"):
        return left, right
    axis = node.axis(node.integer("axis"), left.tensor.rank)
    behind = left.tensor.rank - axis - right.tensor.rank
    if behind < 0:
        raise NodeFault(1108, f"attribute 'axis' is {axis}, {right.type} does not fit into {left.type} there")
    return left, node.emit.reshape(right, (*right.tensor.shape, *[1] * behind))


def _applied(node: OnnxNode, operator: str, *operands: Value) -> Value:
    """An elementwise operator whose operands broadcast, also where their sizes are measured."""
    return node.emit.apply(operator, *together(node.emit, *operands))


def _binary(operator: str) -> Converter:
    return lambda node: _applied(node, operator, *_pair(node))


def _compare(direction: str) -> Converter:
    return lambda node: node.emit.compare(direction, *together(node.emit, *_pair(node)))


def _folded(operator: str) -> Converter:
    """Any number of operands, joined from the left."""

    def convert(node: OnnxNode) -> Value:
        total, *rest = node.values()
        for value in rest:
            total = _applied(node, operator, total, value)
        return total

    return convert


def _mean(node: OnnxNode) -> Value:
    total = _folded("add")(node)
    assert isinstance(total, Value)
    return node.emit.apply("divide", total, len(node.operands))


def _reciprocal(node: OnnxNode) -> Value:
    return node.emit.apply("divide", 1.0, node.value(0))


def _power(node: OnnxNode) -> Value:
    """The result has the base's type; small whole exponents are products."""
    base, power = _pair(node)
    emit = node.emit
    wanted = element(base)
    exponent = node.constant_number(1)
    if exponent in (1, 2, 3) and node.operand(1).rank <= base.tensor.rank:
        found = base
        for _ in range(int(exponent) - 1):
            found = emit.apply("multiply", found, base)
        return found
    if element(power) == wanted:
        return _applied(node, "power", base, power)
    if wanted.is_floating or not element(power).is_floating:
        return _applied(node, "power", base, emit.convert(power, wanted))
    wide = _applied(node, "power", emit.convert(base, dtypes.float64), emit.convert(power, dtypes.float64))
    return emit.convert(wide, wanted)


def _remainder(node: OnnxNode) -> Value:
    operator = "remainder" if node.flag("fmod") else "floor_remainder"
    return _applied(node, operator, node.value(0), node.value(1))


def _shift(node: OnnxNode) -> Value:
    value = node.value(0)
    if node.choice("direction", "", ("LEFT", "RIGHT")) == "LEFT":
        operator = "shift_left"
    else:
        operator = "shift_right_logical" if element(value).kind == "unsigned" else "shift_right_arithmetic"
    return _applied(node, operator, value, node.value(1))


def _where(node: OnnxNode) -> Value:
    return _applied(node, "select", *node.values())


def _clip(node: OnnxNode) -> Value:
    value = node.value(0)
    emit = node.emit
    if node.opset < 11:
        found = value
        for name, operator, endless in (("min", "maximum", -math.inf), ("max", "minimum", math.inf)):
            bound = node.number(name, endless)
            if node.given(name) and bound != endless:
                found = emit.apply(operator, found, bound)
        return found
    found = value
    for position, operator, endless in ((1, "maximum", -math.inf), (2, "minimum", math.inf)):
        if node.has(position) and node.constant_number(position) != endless:
            bound = node.value(position)
            if bound.tensor.rank:
                bound = emit.reshape(bound, ())
            found = emit.apply(operator, found, bound)
    return found


_LARGEST = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0}
"""The largest finite number of each 8-bit float with a sign."""


def cast(node: OnnxNode, value: Value, wanted: DType) -> Value:
    """A value with another element type, as ONNX's Cast: to bool is `!= 0`, to 8-bit floats saturates on demand."""
    emit = node.emit
    if element(value) == wanted:
        return value
    if wanted.kind == "boolean":
        return emit.compare("NE", value, 0)
    if wanted == dtypes.float8_e8m0fnu:
        return _power_of_two(node, value)
    if wanted.name in _LARGEST and node.flag("saturate", True):
        largest = _LARGEST[wanted.name]
        if not (element(value).is_floating and element(value).bits == 8):
            value = emit.apply("minimum", emit.apply("maximum", value, -largest), largest)
    if wanted.is_small_integer and element(value).is_floating:
        value = emit.convert(value, dtypes.int32)  # the low bits are kept, as from any wider integer
    return emit.convert(value, wanted)


def _power_of_two(node: OnnxNode, value: Value) -> Value:
    """To the float that has an exponent only, rounded as `round_mode` says; a sign is lost, 0 becomes the smallest."""
    emit = node.emit
    bits = emit.apply("bitcast_convert", emit.convert(value, dtypes.float32), dtype=dtypes.int32)
    bits = emit.apply("and", bits, 0x7FFFFFFF)
    exponent = emit.apply("shift_right_logical", bits, 23)
    fraction = emit.apply("and", bits, 0x7FFFFF)
    mode = node.choice("round_mode", "up", ("up", "down", "nearest"))
    if mode != "down":
        # subnormal numbers have their middle where the smallest power of two is
        below = emit.compare("LT", bits, 0x800000)
        least = emit.apply("select", below, emit.scalar(0x400001, dtypes.int32), emit.scalar(
            1 if mode == "up" else 0x400000, dtypes.int32))  # fmt: skip
        exponent = emit.apply("add", exponent, emit.convert(emit.compare("GE", fraction, least), dtypes.int32))
    if node.flag("saturate", True):
        exponent = emit.apply("minimum", exponent, 254)
    is_nan = emit.compare("GT", bits, 0x7F800000)
    code = emit.convert(emit.apply("select", is_nan, emit.scalar(255, dtypes.int32), exponent), dtypes.uint8)
    return emit.apply("bitcast_convert", code, dtype=dtypes.float8_e8m0fnu)


def _cast(node: OnnxNode) -> Value:
    if node.opset < 6:
        named = node.text("to", "")
        number = next((n for n, found in ELEMENT_TYPES.items() if _called(found) == named.upper()), None)
        if number is None:
            raise NodeFault(1108, f"attribute 'to' is {named!r}, which names no element type")
        return cast(node, node.value(0), ELEMENT_TYPES[number])
    return cast(node, node.value(0), element_type(node.integer("to")))


def _called(dtype: DType) -> str:
    """How ONNX's enumeration calls an element type."""
    return ONNX_NAMES.get(dtype, dtype.name).upper()


def _cast_like(node: OnnxNode) -> Value:
    return cast(node, node.value(0), node.operand(1).dtype)


def _bit_cast(node: OnnxNode) -> Value:
    """A boolean is a byte that is 0 or 1."""
    value, wanted, emit = node.value(0), element_type(node.integer("to")), node.emit
    if element(value).kind == "boolean":
        value = emit.convert(value, dtypes.uint8)
    if wanted.kind == "boolean":
        return emit.compare("NE", emit.apply("bitcast_convert", value, dtype=dtypes.uint8), 0)
    return value if element(value) == wanted else emit.apply("bitcast_convert", value, dtype=wanted)


def _is_infinite(node: OnnxNode) -> Value:
    value = node.value(0)
    emit = node.emit
    negative, positive = node.flag("detect_negative", True), node.flag("detect_positive", True)
    if not negative and not positive:
        return emit.fill(False, dtypes.boolean, value.tensor.shape)
    found = emit.apply("is_inf", value)
    if negative and positive:
        return found
    return emit.apply("and", found, emit.compare("GT" if positive else "LT", value, 0.0))


def _error_function(node: OnnxNode) -> Value:
    """Of integers (version 9) in float32, as onnx.reference computes it, without the fraction."""
    value, emit = node.value(0), node.emit
    if element(value).is_floating:
        return emit.apply("erf", value)
    return emit.convert(emit.apply("erf", emit.convert(value, dtypes.float32)), element(value))


def _not(node: OnnxNode) -> Value:
    return node.emit.apply("not", node.value(0))


_UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "not", "Ceil": "ceil", "Cos": "cosine", "Cosh": "cosh", "Exp": "exponential",
    "Floor": "floor", "IsNaN": "is_nan", "Log": "log", "Neg": "negate", "Round": "round_nearest_even",
    "Sigmoid": "logistic", "Sign": "sign", "Sin": "sine", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
_BINARY = {
    "Add": "add", "And": "and", "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor", "Div": "divide",
    "Mul": "multiply", "Or": "or", "Sub": "subtract", "Xor": "xor",
}  # fmt: skip
_COMPARISONS = {"Equal": "EQ", "Greater": "GT", "GreaterOrEqual": "GE", "Less": "LT", "LessOrEqual": "LE"}

CONVERTERS: dict[str, Converter] = {
    **{name: _unary(operator) for name, operator in _UNARY.items()},
    **{name: _binary(operator) for name, operator in _BINARY.items()},
    **{name: _compare(direction) for name, direction in _COMPARISONS.items()},
    "BitCast": _bit_cast, "BitShift": _shift, "Cast": _cast, "CastLike": _cast_like, "Clip": _clip,
    "Erf": _error_function, "IsInf": _is_infinite,
    "Max": _folded("maximum"), "Mean": _mean, "Min": _folded("minimum"), "Mod": _remainder, "Not": _not,
    "Pow": _power, "Reciprocal": _reciprocal, "Sum": _folded("add"), "Where": _where,
}  # fmt: skip
