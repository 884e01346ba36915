"""What each step of one call took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilework.fast_dataclass import dataclass
from tilework.runtime.ports import StepTime


@dataclass(frozen=True)
class Profile:
    """One call, run step by step: its outputs, and its steps in the order in which they ran.

    Steps that run again (in a loop) are there once for each time. The steps of a call that is run as a whole follow
    each other without a return to Python, so that small ones take less there. `str` is a table, the longest first.
    """

    outputs: tuple[Any, ...]
    steps: tuple[StepTime, ...]

    @property
    def seconds(self) -> float:
        """All steps together."""
        return sum(step.seconds for step in self.steps)

    @property
    def by_step(self) -> Mapping[str, float]:
        """Seconds by the name of the step, which is that of its region in `explain()`, all times together; the longest
        first.
        """
        found: dict[str, float] = {}
        for step in self.steps:
            found[step.name] = found.get(step.name, 0.0) + step.seconds
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def __str__(self) -> str:
        origins = {step.name: step.origin for step in self.steps}
        times: dict[str, int] = {}
        for step in self.steps:
            times[step.name] = times.get(step.name, 0) + 1
        total = self.seconds or 1.0
        lines = [f"{len(self.steps)} steps, {self.seconds * 1e3:.3f} ms"]
        for name, seconds in self.by_step.items():
            often = f" x{times[name]}" if times[name] > 1 else ""
            what = f"  {origins[name]}" if origins[name] != name else ""
            lines.append(f"  {seconds * 1e3:9.3f} ms {seconds / total:6.1%}  {name}{often}{what}")
        return "\n".join(lines)
