"""The open models of `suites/models_open.json`, compiled and run, against what ONNX Runtime gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import models
from benchmarks.harness.result import Bar, Figure, MissingPeerError, Options, Result, check_figure
from benchmarks.harness.told import told_by

SECONDS = 300
"""What one model may take."""
ESTIMATE = 9.0
"""Seconds that a model takes, about."""
ML = frozenset(("onnxruntime__logreg_iris", "surfaces_onnx_files__gradient_boosting_regressor",
                "surfaces_onnx_files__k_neighbors_classifier.validity"))  # fmt: skip
"""Models with operators of ai.onnx.ml, where strings and maps may be black boxes."""
STRINGS_AND_MAPS = frozenset(("CastMap", "DictVectorizer", "StringsAtPlaces", "ZipMap"))
"""What such a black box may be."""
NODES = 95.0
"""Percent of all nodes that have to be generated code."""
OPERATIONS = 99.0
"""Percent of all floating-point operations that have to be generated code. Strings and maps have none; a model with any
other black box counts as if none of its operations were generated."""


def every() -> list[dict[str, Any]]:
    """The entries of all models."""
    found: list[dict[str, Any]] = json.loads((models.ROOT / "suites" / "models_open.json").read_text())
    return found


def prepared() -> Path:
    """The folder with all models and what ONNX Runtime gave on them, made if it is not there yet (some minutes)."""
    place = models.folder()
    wanted = [place / "onnx_io" / f"{entry['name']}.npz" for entry in every()]
    if not all(path.is_file() for path in wanted):
        script = models.ROOT / "suites" / "get_models.sh"
        done = subprocess.run(
            ["bash", str(script), str(place), sys.executable], capture_output=True, text=True, check=False
        )
        lacking = [path.stem for path in wanted if not path.is_file()]
        if done.returncode or lacking:
            raise MissingPeerError(f"models ({', '.join(lacking[:3]) or 'script'})", "run `make peers` with a network")
    return place


def one(entry: dict[str, Any], place: Path) -> dict[str, Any]:
    """What `open_model` tells of a model, in a process of its own."""
    name = entry["name"]
    arguments = [
        str(place / "onnx" / f"{name}.onnx"),
        str(place / "onnx_io" / f"{name}.npz"),
        str(entry.get("noise") or 0.0),
    ]
    return told_by("benchmarks.harness.open_model", *arguments, seconds=SECONDS)


def run(options: Options) -> Result:
    """Every model once."""
    place = prepared()
    share = options.share(every(), lambda _: ESTIMATE)
    rows: list[list[str]] = []
    equal = nodes = boxes = 0
    operations = generated = 0
    wrong: set[str] = set()
    for entry in share:
        told = one(entry, place)
        equal += told["status"] == "equal"
        boxed = told.get("black boxes", [])
        unlike = {box for box in boxed if entry["name"] not in ML or box not in STRINGS_AND_MAPS}
        wrong |= unlike
        operations += told.get("operations", 0)
        generated += 0 if unlike else told.get("operations", 0)
        nodes, boxes = nodes + told.get("nodes", 0), boxes + len(boxed)
        seconds = f"{told['compile seconds']:.2f}" if "compile seconds" in told else ""
        work = f"{told['operations'] / 1e6:.1f}" if "operations" in told else ""
        rows.append([entry["name"], told["status"], str(told.get("nodes", "")), work, seconds, told["why"]])
    return Result(
        figures=[
            check_figure(f"{equal} of {len(share)} equal", equal == len(share)),
            Figure("of the nodes are generated code", 100 * nodes / max(1, nodes + boxes), "%", Bar(">=", NODES)),
            Figure("of the flops are", 100 * generated / max(1, operations), "%", Bar(">=", OPERATIONS)),
            check_figure(f"no black box but strings and maps ({', '.join(sorted(wrong)) or 'none'})", not wrong),
        ],
        columns=["model", "outcome", "operators", "Mflop", "compile s", "why"],
        rows=rows,
        notes=[f"models: {share}"],
    )
