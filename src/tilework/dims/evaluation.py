"""Values of atoms once every name has one: numbers, or integer arrays that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilework.dims.atoms import Atom, Extreme, FloorDiv, Mod
from tilework.errors import UsageError


def evaluate_atom(atom: Atom, values: Mapping[str, Any], load: Callable[[str, tuple[Any, ...]], Any] | None) -> Any:
    """The value of an atom; raises `UsageError` 1005 for a name or an element without one, 1004 for a bad divisor."""
    if isinstance(atom, str):
        try:
            return values[atom]
        except KeyError:
            raise UsageError(1005, f"{atom} has no value here") from None
    if isinstance(atom, FloorDiv):
        return atom.numerator.evaluate(values, load) // _positive(atom.denominator.evaluate(values, load), atom)
    if isinstance(atom, Mod):
        return atom.value.evaluate(values, load) % _positive(atom.modulus.evaluate(values, load), atom)
    if isinstance(atom, Extreme):
        arguments = [a.evaluate(values, load) for a in atom.arguments]
        if all(isinstance(a, int) for a in arguments):
            return max(arguments) if atom.name == "max" else min(arguments)
        import numpy as np

        pick = np.maximum if atom.name == "max" else np.minimum
        total = arguments[0]
        for argument in arguments[1:]:
            total = pick(total, argument)
        return total
    if load is None:
        raise UsageError(1005, f"{atom} depends on data and has no value here")
    return load(atom.buffer, tuple(i.evaluate(values, load) for i in atom.index))


def _positive(value: Any, atom: FloorDiv | Mod) -> Any:
    if isinstance(value, int) and value <= 0:
        raise UsageError(1004, f"{atom}: the divisor is {value}, it must be positive")
    return value
