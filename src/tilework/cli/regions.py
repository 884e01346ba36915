"""What is known of each region at given sizes: its work in numbers, the time that it should take, and that it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from tilework.cli.subject import Compiled
    from tilework.dims import Dim
    from tilework.machine.cpu import CpuMachine
    from tilework.plan.explanation import RegionExplanation

CALLS = 7
"""Calls of which each region's median is taken, after one that warms up."""


@dataclass(frozen=True)
class Sized:
    """A region at given sizes: operations, bytes across its boundary, what bounds it and the seconds that this takes on
    a machine as it is assumed to be (good for orders of magnitude), and the seconds that it took; None for what is not
    known.
    """

    flops: int | None
    bytes: int | None
    bound: str | None = None
    predicted_seconds: float | None = None
    seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The same for JSON, times in milliseconds."""
        return {
            "flops_here": self.flops, "bytes_here": self.bytes, "bound": self.bound,
            "predicted_ms": None if self.predicted_seconds is None else self.predicted_seconds * 1e3,
            "measured_ms": None if self.seconds is None else self.seconds * 1e3,
        }  # fmt: skip

    def __str__(self) -> str:
        parts: list[str] = []
        if self.predicted_seconds is not None:
            parts.append(f"predicted {_time(self.predicted_seconds)}, bound by {self.bound}")
        if self.seconds is not None:
            rates = [f"{count / self.seconds / 1e9:.3g} {unit}" for count, unit in self._counts()]
            parts.append(", ".join([f"measured {_time(self.seconds)}", *rates]))
        return "; ".join(parts)

    def _counts(self) -> list[tuple[int, str]]:
        found = ((self.flops, "GFLOP/s"), (self.bytes, "GB/s"))
        return [(count, unit) for count, unit in found if count and self.seconds]


def sized(
    region: RegionExplanation, sizes: Mapping[str, int], machine: CpuMachine, threads: int, seconds: float | None = None
) -> Sized:
    """A region at these sizes of the model's symbols. Counts of which a symbol is not among them stay unknown."""
    from tilework.cost.roofline import assumed

    flops, moved = _at(region.flops, sizes), _at(region.bytes, sizes)
    if flops is None or moved is None:
        return Sized(flops, moved, seconds=seconds)
    roofline = assumed(machine, threads)
    source = next((f"L{c.level}" for c in machine.caches if moved <= c.bytes), "memory")  # where its data can be
    needed = {"compute": flops / roofline.peak(32), source: moved / roofline.bandwidth(source)}
    bound = max(needed, key=lambda name: needed[name])
    return Sized(flops, moved, bound, needed[bound], seconds)


def region_seconds(executable: Compiled, arguments: Sequence[Any]) -> dict[str, float]:
    """The median of what each step takes by the name of its region, over some calls, all trips of a loop together."""
    from tilework.tuning.measure.statistics import median

    executable.step_times(*arguments)
    samples: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(CALLS):
        _, times = executable.step_times(*arguments)
        together: defaultdict[str, float] = defaultdict(float)
        for step in times:
            together[step.name] += step.seconds
        for name, seconds in together.items():
            samples[name].append(seconds)
    return {name: median(taken) for name, taken in samples.items()}


def _at(count: Dim | None, sizes: Mapping[str, int]) -> int | None:
    if count is None or any(name not in sizes for name in count.names()) or count.loads():
        return None
    return int(count.evaluate(sizes))


def _time(seconds: float) -> str:
    unit, scale = next((pair for pair in (("s", 1.0), ("ms", 1e-3)) if seconds >= pair[1]), ("us", 1e-6))
    return f"{seconds / scale:.3g} {unit}"
