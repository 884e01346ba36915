"""What an executable can tell of how it came to be: frozen data that `explain()` returns and reports draw."""

from __future__ import annotations

from typing import Literal

from tilework.dims import Dim
from tilework.fast_dataclass import dataclass


@dataclass(frozen=True)
class RegionExplanation:
    """One region of the graph: its operators, and what was chosen for it.

    `trace` is the schedule trace in text, empty for a library call; `choice` says why this candidate. Counts are
    expressions in the plan's symbols: floating-point operations, and bytes that cross the region's boundary.
    """

    name: str
    operators: tuple[str, ...]
    algorithm: str
    kernels: tuple[str, ...]
    trace: str = ""
    choice: str = ""
    flops: Dim | None = None
    bytes: Dim | None = None
    source: Literal["generated", "library"] = "generated"
    seconds: float | None = None
    """Predicted or measured time of one run, where known."""


@dataclass(frozen=True)
class BlackBoxExplanation:
    """An operation that is not compiled, who runs it, and why."""

    step: str
    operator: str
    provider: str
    reason: str


@dataclass(frozen=True)
class CopyExplanation:
    """A copy that the plan makes: how many bytes, and why."""

    step: str
    bytes: Dim
    reason: str


@dataclass(frozen=True)
class Notice:
    """Something that did not go as it might have: a skipped fusion, a cache miss, a padded bucket. `warning` where the
    user should know at once. `identifier` is stable and can be searched for.
    """

    identifier: str
    message: str
    where: str = ""
    warning: bool = False


@dataclass(frozen=True)
class Explanation:
    """All that is known of one executable: bytes of machine code and of arenas, times in milliseconds."""

    name: str
    machine: str = ""
    numerics: str = ""
    regions: tuple[RegionExplanation, ...] = ()
    black_boxes: tuple[BlackBoxExplanation, ...] = ()
    copies: tuple[CopyExplanation, ...] = ()
    notices: tuple[Notice, ...] = ()
    code_bytes: int = 0
    constant_bytes: int = 0
    arena_bytes: Dim | None = None
    arena_lower_bound: Dim | None = None
    compile_milliseconds: tuple[tuple[str, float], ...] = ()
    """Time of each stage, by name, in order."""
    plan_text: str = ""

    @property
    def warnings(self) -> tuple[Notice, ...]:
        return tuple(notice for notice in self.notices if notice.warning)

    @property
    def total_milliseconds(self) -> float:
        return sum(milliseconds for _, milliseconds in self.compile_milliseconds)

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.regions)} regions, {self.code_bytes} bytes of code"]
        for region in self.regions:
            kernels = f"{'library' if region.source == 'library' else 'kernel'} {', '.join(region.kernels)}"
            lines.append(f"  {region.name}: {', '.join(region.operators)} -> {region.algorithm} ({kernels})")
        lines.extend(f"  black box {box.operator} ({box.provider}): {box.reason}" for box in self.black_boxes)
        lines.extend(f"  copy of {copy.bytes} bytes at {copy.step}: {copy.reason}" for copy in self.copies)
        lines.extend(f"  {'warning' if n.warning else 'note'} {n.identifier}: {n.message}" for n in self.notices)
        lines.extend(f"  {stage}: {milliseconds:.1f} ms" for stage, milliseconds in self.compile_milliseconds)
        return "\n".join(lines)
