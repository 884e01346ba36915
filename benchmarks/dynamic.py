"""The open models with free dimensions at six other shapes each: equal to ONNX Runtime, compiled once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.harness.result import Figure, Options, Result, check_figure
from benchmarks.harness.told import told_by
from benchmarks.onnx_open import every, prepared

SECONDS = 400
"""What one model may take."""
ESTIMATE = 15.0
"""Seconds that a model takes, about."""


def one(entry: dict[str, Any], place: Path, seed: int) -> dict[str, Any]:
    """What `dynamic_model` tells of a model, in a process of its own."""
    name = entry["name"]
    arguments = [
        str(place / "onnx" / f"{name}.onnx"),
        str(place / "onnx_io" / f"{name}.npz"),
        str(entry.get("noise") or 0.0),
    ]
    return told_by("benchmarks.harness.dynamic_model", *arguments, str(seed), seconds=SECONDS)


def run(options: Options) -> Result:
    """Every model with a free dimension."""
    place = prepared()
    share = options.share(every(), lambda _: ESTIMATE)
    rows: list[list[str]] = []
    free = equal = shapes = anew = 0
    first = 0.0
    for entry in share:
        told = one(entry, place, options.seed)
        if told["status"] == "fixed":
            continue
        free += 1
        equal += told["status"] == "equal"
        shapes += told.get("shapes", 0)
        anew += told.get("anew", 0)
        first = max(first, told.get("first call", 0.0))
        how = "each shape" if told.get("per shape") else str(told.get("anew", ""))
        times = [f"{1e3 * told[key]:.1f}" if key in told else "" for key in ("first call", "median call")]
        rows.append([entry["name"], told["status"], str(told.get("shapes", "")), how, *times, told["why"][:120]])
    return Result(
        figures=[
            check_figure(f"{equal} of {free} models equal at {shapes} other shapes", equal == free),
            Figure("shapes compiled anew", anew, ""),
            Figure("slowest first call of a shape", first, "s"),
        ],
        columns=["model", "outcome", "shapes", "anew", "slowest ms", "median ms", "why"],
        rows=rows,
        notes=[f"models: {share}"],
    )
