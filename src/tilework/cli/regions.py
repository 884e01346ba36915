"""What is known of each region at given sizes: its work in numbers, the time that it should take, and that it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilework.fast_dataclass import dataclass

if TYPE_CHECKING:
    from tilework.machine.cpu import CpuMachine
    from tilework.plan.explanation import RegionExplanation


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
    from tilework.cost.roofline import assumed, predict_boundary
    from tilework.runtime.profile import evaluated

    flops, moved = evaluated(region.flops, sizes), evaluated(region.bytes, sizes)
    if flops is None or moved is None:
        return Sized(flops, moved, seconds=seconds)
    found = predict_boundary(flops, moved, machine, assumed(machine, threads))
    return Sized(flops, moved, found.bound, found.seconds, seconds)


def _time(seconds: float) -> str:
    unit, scale = next((pair for pair in (("s", 1.0), ("ms", 1e-3)) if seconds >= pair[1]), ("us", 1e-6))
    return f"{seconds / scale:.3g} {unit}"
