"""Shapes with symbols, made into functions of a frame's slots: a call computes them without walking expressions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tilework.dims import Dim, Extreme, FloorDiv, Loaded, Mod
from tilework.errors import UsageError

Words: TypeAlias = "Sequence[int] | ctypes.Array[ctypes.c_int64]"
"""The slots of a frame."""


def dim_function(value: Dim, slots: Mapping[str, int]) -> Callable[[Words], int]:
    """The function that computes `value` from a frame whose slot `slots[name]` holds each symbol.

    Raises:
        UsageError: 1005 for a symbol without a slot, or an element of a buffer.
    """
    return _compile(f"lambda words: {_source(value, slots)}")


def shape_function(shape: Sequence[Dim], slots: Mapping[str, int]) -> Callable[[Words], tuple[int, ...]]:
    """The same for a whole shape; raises as `dim_function`."""
    inside = "".join(f"{_source(extent, slots)}, " for extent in shape)
    return _compile(f"lambda words: ({inside})")


def _compile(source: str) -> Callable[[Words], Any]:
    # The text is made of integers, operators and slot numbers alone, whatever the symbols are called.
    return eval(source, {"__builtins__": {"min": min, "max": max}})


def _source(value: Dim, slots: Mapping[str, int]) -> str:
    terms = [str(value.constant)] if value.constant or not value.terms else []
    for monomial, coefficient in value.terms:
        factors = [] if coefficient == 1 else [f"({coefficient})"]
        for atom in monomial:
            match atom:
                case str():
                    if atom not in slots:
                        raise UsageError(1005, f"{atom} has no value when a call starts")
                    factors.append(f"words[{slots[atom]}]")
                case FloorDiv(numerator, denominator):
                    factors.append(f"(({_source(numerator, slots)}) // ({_source(denominator, slots)}))")
                case Mod(dividend, modulus):
                    factors.append(f"(({_source(dividend, slots)}) % ({_source(modulus, slots)}))")
                case Extreme(name, arguments):
                    factors.append(f"{name}({', '.join(_source(argument, slots) for argument in arguments)})")
                case Loaded():
                    raise UsageError(1005, f"{atom} depends on data and has no value when a call starts")
        terms.append(" * ".join(factors))
    return " + ".join(terms)
