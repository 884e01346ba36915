"""Replaces transcendental functions in an expression by their expansions."""

from __future__ import annotations

from tilework import dtypes
from tilework.loops.expressions import Call, Expression, cast, walk
from tilework.loops.functions import FUNCTIONS
from tilework.lowering.mathematics.families import expansion
from tilework.numerics import Numerics


def expanded(expression: Expression, numerics: Numerics, *, lookup: bool) -> Expression:
    """The expression over basic functions only; what is shared stays shared. Smaller floats are computed in float32.

    `lookup`: the machine looks up elements of a small table in a register.
    """
    done: dict[int, Expression] = {}
    changed = False
    for node in walk(expression):
        result = node
        if isinstance(node, Call):
            arguments = tuple(done[id(a)] for a in node.arguments)
            function = FUNCTIONS.get(node.function)
            if function is not None and function.transcendental:
                changed = True
                if node.dtype.is_small_float:
                    wide = tuple(cast(a, dtypes.float32) for a in arguments)
                    result = cast(expansion(node.function, wide, numerics, lookup=lookup), node.dtype)
                else:
                    result = expansion(node.function, arguments, numerics, lookup=lookup)
            elif any(a is not b for a, b in zip(arguments, node.arguments, strict=True)):
                result = Call(node.function, arguments, node.dtype)
        done[id(node)] = result
    return done[id(expression)] if changed else expression
