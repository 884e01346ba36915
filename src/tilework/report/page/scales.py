"""Axes: from values to pixels, and the values that are written beside them."""

from __future__ import annotations

import math
from typing import Protocol

from tilework.fast_dataclass import dataclass


class Scale(Protocol):
    """Values on one axis of a chart."""

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        ...

    def ticks(self) -> tuple[float, ...]:
        """Round values to write beside the axis."""
        ...


@dataclass(frozen=True)
class Linear:
    """Values from 0 to `high`, on the pixels from `start` to `end`."""

    high: float
    start: float
    end: float
    wanted: int = 5
    """About how many ticks."""
    base: int = 10
    """Ticks are round in this base: 10, or 2 for bytes."""

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * value / self.high if self.high else self.start

    def ticks(self) -> tuple[float, ...]:
        step = self._step()
        return tuple(step * number for number in range(int(self.high / step + 1e-9) + 1)) if step else (0.0,)

    def _step(self) -> float:
        rough = self.high / max(self.wanted, 1)
        if rough <= 0:
            return 0.0
        if self.base == 2:
            return 2.0 ** round(math.log2(rough))
        power = 10.0 ** math.floor(math.log10(rough))
        return power * next(nice for nice in (1, 2, 5, 10) if rough <= nice * power * 1.0001)


@dataclass(frozen=True)
class Logarithmic:
    """Values from `low` to `high` (both above 0), on the pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * part

    def ticks(self) -> tuple[float, ...]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first <= 3 else (1,)
        found = (step * 10.0**power for power in range(first, last + 1) for step in steps)
        return tuple(value for value in found if self.low * 0.999 <= value <= self.high * 1.001)


def around(values: list[float], room: float) -> tuple[float, float]:
    """The least and the largest value, with `room` times as much on both sides (`room` above 1, values above 0)."""
    return min(values) / room, max(values) * room
