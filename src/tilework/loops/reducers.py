"""The built-in reducers."""

from __future__ import annotations

import math

from tilework import dtypes
from tilework.dtypes import DType
from tilework.errors import LoopProgramError
from tilework.loops.expressions import Constant, Parameter, call, constant
from tilework.loops.program import Reducer

_FUNCTIONS = {
    "sum": "add", "product": "multiply", "maximum": "maximum", "minimum": "minimum",
    "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
BUILT_IN = (*_FUNCTIONS, "replace")
"""Names of the built-in reducers; `replace` keeps the last value written."""


def reducer(name: str, dtype: DType) -> Reducer:
    """A built-in reducer over one component of this type; raises `LoopProgramError` 1302 for any other name."""
    left, right = Parameter("left", dtype), Parameter("right", dtype)
    if name == "replace":
        return Reducer(name, (left,), (right,), (right,), (constant(0, dtype),), relaxable=False)
    if name not in _FUNCTIONS:
        raise LoopProgramError(
            1302, f"no built-in reducer is called {name!r}", hint=f"use one of {', '.join(BUILT_IN)}"
        )
    return Reducer(name, (left,), (right,), (call(_FUNCTIONS[name], left, right),), (_identity(name, dtype),))


def _identity(name: str, dtype: DType) -> Constant:
    if name == "product":
        return constant(1, dtype)
    if name in ("maximum", "minimum"):
        if dtype.is_floating:
            return constant(-math.inf if name == "maximum" else math.inf, dtype)
        low, high = dtypes.integer_range(dtype)
        return constant(low if name == "maximum" else high, dtype)
    if name == "and":
        low, high = dtypes.integer_range(dtype)
        return constant(True if dtype.kind == "boolean" else (high if dtype.kind == "unsigned" else -1), dtype)
    return constant(0, dtype)


def is_built_in(found: Reducer) -> bool:
    """Whether a reducer is a built-in one (by name; user-defined reducers may not take these names)."""
    return found.name in BUILT_IN
