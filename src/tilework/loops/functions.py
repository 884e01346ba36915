"""The scalar functions that expressions may call: names, operand counts and result types.

Values are those of IEEE 754 for floating types. Integers wrap. Integer division truncates; dividing by zero gives 0 (so
does its remainder) and the smallest value by -1 gives itself; shifts by the width or more give 0 (arithmetic right: the
sign); so nothing traps.
"""

from __future__ import annotations

import difflib
from typing import Literal

from tilework import dtypes
from tilework.dtypes import DType
from tilework.errors import LoopProgramError, UsageError
from tilework.fast_dataclass import dataclass

Rule = Literal["same", "compare", "predicate", "logical", "select", "shift"]
"""How the result's type follows: the operands' common type; bool from two equal types; bool from one; of booleans or
integers; the branches' type; the first operand's type."""


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function. `kinds` are the element kinds it takes."""

    name: str
    arity: int
    rule: Rule
    kinds: tuple[str, ...]
    transcendental: bool = False
    """Computed by a polynomial with a stated error, not correctly rounded."""


_NUMBER = ("signed", "unsigned", "floating", "complex")
_REAL = ("signed", "unsigned", "floating")
_FLOAT = ("floating",)
_INTEGER = ("signed", "unsigned")
_LOGICAL = ("boolean", "signed", "unsigned")
_ANY = ("boolean", *_NUMBER)


def _table() -> dict[str, ScalarFunction]:
    rows: list[ScalarFunction] = []
    for name in ("add", "subtract", "multiply", "divide"):
        rows.append(ScalarFunction(name, 2, "same", _NUMBER))
    # remainder: sign of the dividend (C's fmod and %); floor_remainder: sign of the divisor (Python's %)
    for name in ("remainder", "floor_remainder", "maximum", "minimum"):
        rows.append(ScalarFunction(name, 2, "same", (*_REAL, "boolean") if name in ("maximum", "minimum") else _REAL))
    rows.append(ScalarFunction("power", 2, "same", _REAL, True))
    for name in ("negate", "absolute", "sign"):
        rows.append(ScalarFunction(name, 1, "same", _REAL))
    for name in ("floor", "ceil", "round_even", "truncate", "square_root"):
        rows.append(ScalarFunction(name, 1, "same", _FLOAT))
    rows.append(ScalarFunction("copy_sign", 2, "same", _FLOAT))
    rows.append(ScalarFunction("fused_multiply_add", 3, "same", _FLOAT))
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "logistic", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "reciprocal_square_root",
    ):  # fmt: skip
        rows.append(ScalarFunction(name, 1, "same", _FLOAT, True))
    rows.append(ScalarFunction("atan2", 2, "same", _FLOAT, True))
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        rows.append(ScalarFunction(name, 2, "compare", _ANY))
    for name in ("is_nan", "is_infinite"):
        rows.append(ScalarFunction(name, 1, "predicate", _FLOAT))
    for name in ("and", "or", "xor"):
        rows.append(ScalarFunction(name, 2, "same", _LOGICAL))
    rows.append(ScalarFunction("not", 1, "same", _LOGICAL))
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        rows.append(ScalarFunction(name, 2, "shift", _INTEGER))
    rows.append(ScalarFunction("population_count", 1, "same", _INTEGER))
    rows.append(ScalarFunction("select", 3, "select", _ANY))
    return {row.name: row for row in rows}


FUNCTIONS = _table()
"""Every scalar function by name; `cast` and `bitcast` stand beside them as they name their own result type."""


def scalar_function(name: str) -> ScalarFunction:
    """The function called `name`; raises `UsageError` 1001 with the nearest names."""
    found = FUNCTIONS.get(name)
    if found is None:
        near = difflib.get_close_matches(name, FUNCTIONS, 3)
        raise UsageError(1001, f"no scalar function is called {name!r}", hint=f"nearest: {', '.join(near) or 'none'}")
    return found


def result_type(name: str, operands: tuple[DType, ...]) -> DType:
    """The type of `name` applied to operands of these types; raises `LoopProgramError` 1301 where they do not fit."""
    function = scalar_function(name)
    if len(operands) != function.arity:
        raise LoopProgramError(1301, f"{name} takes {function.arity} operands, not {len(operands)}")
    if function.rule == "select":
        condition, first, second = operands
        if condition != dtypes.boolean or first != second:
            raise LoopProgramError(1301, f"select needs bool, T, T; it got {condition}, {first}, {second}")
        return first
    first = operands[0]
    if any(operand != first for operand in operands[1:]):
        raise LoopProgramError(1301, f"{name} needs operands of one type; it got {', '.join(map(str, operands))}")
    if first.kind not in function.kinds:
        raise LoopProgramError(1301, f"{name} does not take {first}")
    return dtypes.boolean if function.rule in ("compare", "predicate") else first
