"""Symbols: the names whose values are known only when the program runs."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tilework.dims.intervals import Bound
from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class Symbol:
    """A named integer that is known only when the program runs.

    Inclusive bounds (`upper` None: unbounded), a divisor that it is a multiple of, and `measured`: its value is bound
    by the step that produces it (the number of non-zeros), not by an input's shape.
    """

    name: str
    lower: int = 0
    upper: int | None = None
    multiple: int = 1
    measured: bool = False

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        return self.lower, math.inf if self.upper is None else self.upper

    def __str__(self) -> str:
        upper = "" if self.upper is None else self.upper
        text = f"{'measured ' if self.measured else ''}{self.name} in {self.lower}..{upper}"
        return f"{text} step {self.multiple}" if self.multiple != 1 else text


def symbol_bounds(symbols: Iterable[Symbol]) -> dict[str, tuple[Bound, Bound]]:
    """The bounds of each symbol by name, as `Dim.bounds` wants them."""
    return {symbol.name: symbol.bounds for symbol in symbols}
