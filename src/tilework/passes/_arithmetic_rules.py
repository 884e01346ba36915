"""Rules for arithmetic: what a node with a neutral constant, or with its own inverse below it, is equal to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from tilework.dtypes import DType, integer_range
from tilework.graph.graph import Node
from tilework.passes._rewriting import Alias, Outcome, Scope

RewriteRule: TypeAlias = Callable[[Node, Scope], Outcome]
_REAL = ("signed", "unsigned", "floating")

# Searching a constant for its one value stops paying where the constant is large: it is no scalar somebody wrote.
_UNIFORM_LIMIT = 1 << 16


def result_is(node: Node, scope: Scope, name: str) -> Alias | None:
    """The node's only result is that value, provided the types agree (it may have been broadcast)."""
    return Alias((name,)) if scope.value(name).type == node.output.type else None


def _is_uniform(scope: Scope, name: str, value: float | bool) -> bool:
    """Whether a value is a constant, not empty, of which every element is `value` (zeros of the same sign)."""
    array = scope.array(name)
    if array is None or not 0 < array.size <= _UNIFORM_LIMIT:
        return False
    if not bool(np.all(array == array.dtype.type(value))):
        return False
    signs = np.signbit(array.astype(np.float64)) if value == 0 and isinstance(value, float) else None
    return signs is None or bool(np.all(signs == (math.copysign(1, value) < 0)))


def _neutral(operator: str, dtype: DType) -> float | int | bool | None:
    """The right operand that changes nothing, not even the sign of a zero; None where there is none."""
    if operator in ("multiply", "divide"):
        return (1.0 if dtype.is_floating else 1) if dtype.kind in _REAL else None
    if operator in ("add", "subtract"):
        if dtype.is_floating:
            return -0.0 if operator == "add" else 0.0
        return 0 if dtype.is_integer else None
    if operator in ("maximum", "minimum"):
        if dtype.is_floating:
            return -math.inf if operator == "maximum" else math.inf
        if dtype.is_integer:
            return integer_range(dtype)[0 if operator == "maximum" else 1]
        return (operator == "minimum") if dtype.kind == "boolean" else None
    if operator == "and":
        return True if dtype.kind == "boolean" else integer_range(dtype)[1] if dtype.kind == "unsigned" else -1
    return False if dtype.kind == "boolean" else 0


def _binary(node: Node, scope: Scope) -> Outcome:
    left, right = node.inputs
    kind = scope.tensor(left)
    value = None if kind is None else _neutral(node.operator, kind.dtype)
    if value is None:
        return None
    if _is_uniform(scope, right, value):
        return result_is(node, scope, left)
    if node.operator in _COMMUTATIVE and _is_uniform(scope, left, value):
        return result_is(node, scope, right)
    return None


_COMMUTATIVE = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def _own_inverse(node: Node, scope: Scope) -> Outcome:
    """-(-x) and not(not x)."""
    inner = scope.producer(node.inputs[0])
    if inner is None or inner.operator != node.operator or inner.black_box:
        return None
    return result_is(node, scope, inner.inputs[0])


def _select(node: Node, scope: Scope) -> Outcome:
    predicate, on_true, on_false = node.inputs
    if on_true == on_false or _is_uniform(scope, predicate, True):
        return result_is(node, scope, on_true)
    return result_is(node, scope, on_false) if _is_uniform(scope, predicate, False) else None


def _convert(node: Node, scope: Scope) -> Outcome:
    (name,) = node.inputs
    same = result_is(node, scope, name)
    inner = scope.producer(name)
    if same is not None or inner is None or inner.operator != "convert" or inner.black_box:
        return same
    source, middle = scope.tensor(inner.inputs[0]), scope.tensor(name)
    if source is None or middle is None or not holds_all(middle.dtype, source.dtype):
        return None
    back = result_is(node, scope, inner.inputs[0])
    target = node.attributes["dtype"]
    if back is not None or not isinstance(target, DType):
        return back
    # The middle type may be left out where both steps are of one nature (an integer made a float saturates later).
    of_one_nature = all(t.is_floating for t in (source.dtype, middle.dtype, target)) or all(
        t.is_integer for t in (source.dtype, middle.dtype, target)
    )
    return replace(node, inputs=inner.inputs) if of_one_nature else None


def holds_all(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is one of `wide`, and comes back from it."""
    if narrow == wide:
        return True
    if narrow.kind == "boolean":
        return wide.kind in _REAL
    if wide.is_integer:
        if not narrow.is_integer:
            return False
        low, high = integer_range(narrow)
        return integer_range(wide)[0] <= low and high <= integer_range(wide)[1]
    digits = _SIGNIFICANT_BITS.get(wide.name)
    if digits is None:
        return False
    if narrow.is_integer:
        return narrow.bits - (narrow.kind == "signed") <= digits
    if not narrow.is_floating or narrow.bits == wide.bits:
        return False
    return narrow.bits < wide.bits


_SIGNIFICANT_BITS: Mapping[str, int] = MappingProxyType({"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8})

ARITHMETIC: Mapping[str, RewriteRule] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "add", "subtract", "multiply", "divide", "maximum", "minimum", "and", "or", "xor", "shift_left",
                "shift_right_logical", "shift_right_arithmetic",
            ),
            _binary,
        ),
        "negate": _own_inverse,
        "not": _own_inverse,
        "select": _select,
        "convert": _convert,
    }
)  # fmt: skip
"""The rule of each operator."""
