"""What a benchmark is asked and what it answers: options, figures with their bars, rows, and a missing peer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from tilework.tuning.measure.statistics import Interval

T = TypeVar("T")

QUICK_SECONDS = 180.0
"""What the quick form of a benchmark may take."""

RATIO_TOLERANCE = 0.03
"""A bar on a ratio holds when the worst end of its interval is within this share of the bar."""


class MissingPeerError(Exception):
    """A peer or a tool that a benchmark compares with or needs is not there: the benchmark exits 2."""

    def __init__(self, name: str, remedy: str) -> None:
        super().__init__(name, remedy)
        self.name = name
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.name} is missing: {self.remedy}"


@dataclass(frozen=True)
class Options:
    """How a benchmark is to run."""

    quick: bool = False
    seed: int = 0
    threads: int | None = None
    """Threads of every engine; None leaves the benchmark its own choice."""

    def share(self, items: Sequence[T], seconds: Callable[[T], float], budget: float = QUICK_SECONDS) -> Share[T]:
        """Return all items, or in quick form as many, drawn by the seed, as fit the budget (at least one).

        `seconds` says how long an item takes. Drawn items keep the order they came in.
        """
        if not self.quick:
            return Share(tuple(items), len(items), self.seed)
        order = list(range(len(items)))
        random.Random(self.seed).shuffle(order)
        drawn: list[int] = []
        left = budget
        for index in order:
            cost = seconds(items[index])
            if cost <= left or not drawn:
                drawn.append(index)
                left -= cost
        return Share(tuple(items[index] for index in sorted(drawn)), len(items), self.seed)


@dataclass(frozen=True)
class Share(Sequence[T]):
    """The items a run takes, out of how many."""

    items: tuple[T, ...]
    total: int
    seed: int

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        if len(self.items) == self.total:
            return f"all {self.total}"
        return f"{len(self.items)} of {self.total}, drawn by seed {self.seed}"


@dataclass(frozen=True)
class Bar:
    """What a figure has to reach. `tolerance` is a share of the limit, taken off on the lenient side."""

    direction: Literal["<=", ">="]
    limit: float
    tolerance: float = 0.0

    def holds(self, value: float) -> bool:
        """Whether a value clears the bar less its tolerance; NaN never does."""
        if self.direction == "<=":
            return value <= self.limit * (1 + self.tolerance)
        return value >= self.limit * (1 - self.tolerance)


@dataclass(frozen=True)
class Figure:
    """One number a benchmark stands for: the number, its interval, its unit and its bar (None: printed only)."""

    label: str
    value: float
    unit: str
    bar: Bar | None = None
    interval: Interval | None = None
    judged_by_interval: bool = False
    """A ratio is judged by the worst end of its interval, a plain quantity by its median."""
    condition: bool = False
    """A yes-or-no condition such as equal values: no time, so it holds or not wherever it is run."""

    @property
    def judged(self) -> float:
        """The number that is held against the bar."""
        if self.bar is None or not self.judged_by_interval:
            return self.value
        if self.interval is None:
            return float("nan")
        return self.interval.high if self.bar.direction == "<=" else self.interval.low

    @property
    def holds(self) -> bool:
        """Whether the figure clears its bar; one without a bar does."""
        return self.bar is None or self.bar.holds(self.judged)

    def __str__(self) -> str:
        text = " ".join(part for part in (self.label, number(self.value, self.unit)) if part)
        if self.interval is not None:
            text += f" [{number(self.interval.low)}, {number(self.interval.high)}]"
        if self.condition:
            return f"{self.label}: {'yes' if self.holds else 'NO'}"
        if self.bar is None:
            return text
        verdict = "holds" if self.holds else "MISSED"
        return f"{text} ({self.bar.direction} {number(self.bar.limit, self.unit)}: {verdict})"


def ratio_figure(label: str, interval: Interval, bar: Bar | None) -> Figure:
    """Return a ratio as a figure: its bar holds when the worst end of the interval is within 3 % of it."""
    if bar is not None:
        bar = Bar(bar.direction, bar.limit, RATIO_TOLERANCE)
    return Figure(label, interval.middle, "x", bar, interval, judged_by_interval=True)


def check_figure(label: str, passed: bool) -> Figure:
    """Return a yes-or-no condition as a figure: 1 holds, 0 does not."""
    return Figure(label, float(passed), "", Bar(">=", 1.0), condition=True)


def number(value: float, unit: str = "") -> str:
    """Return a number in four digits, with its unit."""
    text = f"{value:.4g}" if abs(value) < 10000 else f"{value:,.0f}"
    return f"{text}{unit}" if unit in {"x", "%"} else f"{text} {unit}".strip()


@dataclass
class Result:
    """What a benchmark found."""

    figures: list[Figure]
    columns: list[str] = field(default_factory=list[str])
    rows: list[list[str]] = field(default_factory=list[list[str]])
    notes: list[str] = field(default_factory=list[str])
    samples: dict[str, Any] = field(default_factory=dict[str, Any])
    """Every raw sample, by row and engine; written by `--json`."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """Versions, threads and options of the engines, as they told them."""

    @property
    def holds(self) -> bool:
        """Whether every bar holds."""
        return all(figure.holds for figure in self.figures)

    @property
    def conditions_hold(self) -> bool:
        """Whether every yes-or-no condition holds, whatever the times are."""
        return all(figure.holds for figure in self.figures if figure.condition)
