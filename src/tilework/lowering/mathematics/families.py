"""Which family expands a function."""

from __future__ import annotations

from collections.abc import Callable

from tilework.errors import CodegenError
from tilework.loops.expressions import Expression
from tilework.lowering.mathematics import exponential
from tilework.numerics import Numerics

_EXPANSIONS: dict[str, Callable[..., Expression]] = {
    "exp": exponential.exp,
}


def expansion(function: str, arguments: tuple[Expression, ...], numerics: Numerics) -> Expression:
    """The expression that computes a transcendental function; raises `CodegenError` 1603 where there is none."""
    found = _EXPANSIONS.get(function)
    if found is None:
        raise CodegenError(1603, f"no code can be generated for {function} of {arguments[0].dtype}")
    return found(*arguments, numerics=numerics)
