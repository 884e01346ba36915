"""What the rows of a benchmark find: figures and a table, and rows that fail are told without ending the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.engine import Engine, EngineError
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, Samples, measure
from benchmarks.harness.result import Figure, Options, Result, check_figure


@dataclass
class Findings:
    """Rows as they are measured."""

    options: Options
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list[list[str]])
    figures: list[Figure] = field(default_factory=list[Figure])
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    samples: dict[str, Any] = field(default_factory=dict[str, Any])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def rounds(self) -> int:
        return QUICK_ROUNDS if self.options.quick else ROUNDS

    def measure(self, label: str, engines: Sequence[Engine], block_seconds: float = 0.02) -> Samples | None:
        """Let the engines of a row alternate; None, and a failed condition, where one cannot run or computes wrongly.

        Raises `MissingPeerError` where one is not installed.
        """
        try:
            taken = measure(engines, rounds=self.rounds, block_seconds=block_seconds)
        except EngineError as failed:
            self.fail(label, str(failed))
            return None
        self.keep(label, taken)
        return taken

    def keep(self, label: str, taken: Samples) -> None:
        """Remember a row's samples and facts for the record."""
        self.samples[label] = taken.seconds
        self.facts[label] = dict(taken.facts)

    def fail(self, label: str, reason: str) -> None:
        """Tell that a row could not be measured, and why."""
        lines = [line.strip() for line in reason.strip().splitlines() if line.strip()]
        self.problems.append(
            f"{label}: {lines[0] if lines else 'failed'} {lines[-1] if len(lines) > 1 else ''}".strip()
        )
        self.facts[label] = {"failed": reason}
        self.rows.append([label, "failed", *[""] * (len(self.columns) - 2)])
        self.figures.append(check_figure(f"{label} runs", passed=False))

    def result(self, *leading: Figure) -> Result:
        """Everything found, some figures first."""
        return Result(
            [*leading, *self.figures], self.columns, self.rows, [*self.problems, *self.notes], self.samples, self.facts
        )
