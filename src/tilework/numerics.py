"""What values a compiled program promises: the numerics contract (strict, default, fast) as flags that code reads."""

from __future__ import annotations

from typing import Literal

from tilework.errors import UsageError
from tilework.fast_dataclass import dataclass

Level = Literal["strict", "default", "fast"]


@dataclass(frozen=True)
class Numerics:
    """What may be done to values.

    NaN, infinities and denormals follow IEEE 754 at every level unless `relaxed_special_values`; but where reductions
    may run in another order, a machine's dot products of bfloat16 may take denormals for zero, and convolutions with
    fewer products give NaN where an image's infinite element makes a sum infinite.
    """

    level: Level
    reassociate: bool
    """Reductions may run in another order, with several accumulators; a factor of a whole sum may go into its terms."""
    contract: bool
    """A product feeding a sum may be one fused multiply-add."""
    signed_zeros: bool
    """-0.0 and +0.0 are told apart by max and min."""
    approximate: bool
    """Approximate reciprocals and algorithms with a larger error class may be used."""
    relaxed_special_values: bool = False


_LEVELS: dict[str, Numerics] = {
    "strict": Numerics("strict", False, False, True, False),
    "default": Numerics("default", True, True, False, False),
    "fast": Numerics("fast", True, True, False, True),
}


def numerics(level: str) -> Numerics:
    """The flags of a level; raises `UsageError` 1002 for a name that is none of strict, default, fast."""
    found = _LEVELS.get(level) if isinstance(level, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if found is None:
        raise UsageError(1002, f"numerics={level!r} is not a level", hint="use 'strict', 'default' or 'fast'")
    return found
