"""Which family expands a function."""

from __future__ import annotations

from collections.abc import Callable

from tilework import dtypes
from tilework.errors import CodegenError
from tilework.loops.expressions import Expression
from tilework.lowering.mathematics import error_function, exponential, inverse, logarithm, power, trigonometric
from tilework.numerics import Numerics

_EXPANSIONS: dict[str, Callable[..., Expression]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "logistic": exponential.logistic,
    "tanh": exponential.tanh,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log1p": logarithm.log1p,
    "asinh": logarithm.asinh,
    "acosh": logarithm.acosh,
    "atanh": logarithm.atanh,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "atan2": inverse.atan2,
    "erf": error_function.erf,
    "power": power.power,
    "reciprocal_square_root": power.reciprocal_square_root,
}

_BY_LOOKUP: dict[str, Callable[..., Expression]] = {
    "exp": exponential.exp_by_lookup,
    "logistic": exponential.logistic_by_lookup,
}
"""Shorter expansions in float32, for machines that look up elements of a small table in a register."""


def expansion(function: str, arguments: tuple[Expression, ...], numerics: Numerics, *, lookup: bool) -> Expression:
    """The expression that computes a transcendental function; raises `CodegenError` 1603 where there is none.

    `lookup`: the machine looks up elements of a small table in a register.
    """
    found = _EXPANSIONS.get(function)
    if lookup and arguments[0].dtype == dtypes.float32:
        found = _BY_LOOKUP.get(function, found)
    if found is None:
        raise CodegenError(1603, f"no code can be generated for {function} of {arguments[0].dtype}")
    return found(*arguments, numerics=numerics)
