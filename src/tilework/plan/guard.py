"""Conditions on symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class Guard:
    """A condition on the symbols without which the plan does not hold: `value >= 0`, or `value == 0`. `message` says
    what the caller did wrong.
    """

    value: Dim
    relation: Literal["nonnegative", "zero"]
    message: str

    def holds(self, symbols: Mapping[str, int]) -> bool:
        """Whether it holds at these values of the symbols."""
        value = self.value.evaluate(symbols)
        return value >= 0 if self.relation == "nonnegative" else value == 0
