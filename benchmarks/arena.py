"""The arena of each open model against the most bytes that are live at once in its plan's own order.

A model's call is watched: what its arenas take, and at each step which of their bytes hold something that is still
needed, intermediate values and workspaces of kernels. They are equal where no placement could take fewer bytes, at the
sizes of this call; offsets are fixed when a model is compiled, for all sizes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure
from benchmarks.harness.told import told_by
from benchmarks.onnx_open import ESTIMATE, SECONDS, every, prepared

EQUAL = 95.0
"""Percent of the models."""


def one(name: str, place: Path) -> dict[str, Any]:
    """What a process of its own tells of a model."""
    paths = str(place / "onnx" / f"{name}.onnx"), str(place / "onnx_io" / f"{name}.npz")
    return told_by("benchmarks.harness.arena_of", *paths, seconds=SECONDS)


def judged(told: dict[str, Any]) -> tuple[float, str]:
    """How many times the live bytes a model's arenas take, at their worst (0: it cannot be), and the row's cells."""
    if told["status"] != "ran":
        return math.inf, told["why"]
    if not told["calls"]:
        return math.inf, "no compiled code was called"
    ratios = [arena / live if live else 1.0 if not arena else math.inf for arena, live in told["calls"]]
    if min(ratios) < 1:
        return 0.0, "fewer bytes than are live"
    return max(ratios), ""


def run(options: Options) -> Result:
    """Every model once."""
    place = prepared()
    share = options.share(every(), lambda _: ESTIMATE)
    rows: list[list[str]] = []
    ratios: list[float] = []
    for entry in share:
        told = one(entry["name"], place)
        ratio, why = judged(told)
        ratios.append(ratio)
        arena, live = max(told.get("calls") or [(0, 0)])
        rows.append([entry["name"], f"{arena:,}", f"{live:,}", f"{ratio:.4f}", why])
    known = [ratio for ratio in ratios if 0 < ratio < math.inf]
    mean = math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan
    share_equal = 100 * sum(ratio == 1 for ratio in ratios) / len(ratios)
    return Result(
        figures=[
            Figure("equal", share_equal, "%", Bar(">=", EQUAL)),
            Figure("arena over live bytes, geometric mean", mean, "x"),
            check_figure("none takes fewer bytes than are live", 0.0 not in ratios),
        ],
        columns=["model", "arena, bytes", "live, bytes", "ratio", ""],
        rows=rows,
        notes=[f"models: {share}"],
    )
