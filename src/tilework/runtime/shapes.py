"""Shapes with symbols, made into functions of a frame's slots: a call computes them without walking expressions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tilework.dims import Atom, Dim, Extreme, FloorDiv, Loaded, Mod
from tilework.errors import UsageError

Words: TypeAlias = "Sequence[int] | ctypes.Array[ctypes.c_int64]"
"""The slots of a frame."""


def dim_function(value: Dim, slots: Mapping[str, int]) -> Callable[[Words], int]:
    """The function that computes `value` from a frame whose slot `slots[name]` holds each symbol.

    Raises:
        UsageError: 1005 for a symbol without a slot, or an element of a buffer.
    """
    return _compile(f"lambda words: {_source(value, slots, {})}")


def shape_function(shape: Sequence[Dim], slots: Mapping[str, int]) -> Callable[[Words], tuple[int, ...]]:
    """The same for a whole shape; raises as `dim_function`."""
    known: dict[Atom, str] = {}
    inside = "".join(f"{_source(extent, slots, known)}, " for extent in shape)
    return _compile(f"lambda words: ({inside})")


def _compile(source: str) -> Callable[[Words], Any]:
    # The text is made of integers, operators and slot numbers alone, whatever the symbols are called.
    return eval(source, {"__builtins__": {"min": min, "max": max}})


def _source(value: Dim, slots: Mapping[str, int], known: dict[Atom, str]) -> str:
    """An expression for `value`. `known` names the parts that expressions before this one computed: long sizes repeat
    what they are made of.
    """
    terms = [str(value.constant)] if value.constant or not value.terms else []
    for monomial, coefficient in value.terms:
        factors = [] if coefficient == 1 else [f"({coefficient})"]
        for atom in monomial:
            if atom in known:
                factors.append(known[atom])
                continue
            match atom:
                case str():
                    if atom not in slots:
                        raise UsageError(1005, f"{atom} has no value when a call starts")
                    factors.append(f"words[{slots[atom]}]")
                case FloorDiv(numerator, denominator):
                    over, under = _source(numerator, slots, known), _source(denominator, slots, known)
                    factors.append(_named(atom, f"({over}) // ({under})", known))
                case Mod(dividend, modulus):
                    over, under = _source(dividend, slots, known), _source(modulus, slots, known)
                    factors.append(_named(atom, f"({over}) % ({under})", known))
                case Extreme(name, arguments):
                    inside = ", ".join([_source(argument, slots, known) for argument in arguments])
                    factors.append(_named(atom, f"{name}({inside})", known))
                case Loaded():
                    raise UsageError(1005, f"{atom} depends on data and has no value when a call starts")
        terms.append(" * ".join(factors))
    return " + ".join(terms)


def _named(part: Atom, source: str, known: dict[Atom, str]) -> str:
    """The source of a part, which gets a name where it is computed: Python evaluates what stands first first."""
    name = known[part] = f"v{len(known)}"
    return f"({name} := {source})"
