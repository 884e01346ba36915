"""Peak memory of a warm start: the open models opened and called once, against ONNX Runtime's the same way.

A process of its own for each engine and model loads the engine's library (ONNX Runtime's import does that; Tilework
loads LLVM's linker when a model is opened, so it is loaded first) and the inputs. Then the most that is resident at
once is counted, above what is resident then: weights that are mapped, arenas, outputs, and whatever opening takes.
Tilework's process is a second one, with the model in the cache. What its library takes, and the ratio with that, is
printed too.
"""

from __future__ import annotations

import importlib.util
import math
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness.resident import ENGINES, THREADS
from benchmarks.harness.result import Bar, Figure, MissingPeerError, Options, Result, check_figure
from benchmarks.harness.told import told_by
from benchmarks.key_pairs.pairs import environment
from benchmarks.onnx_open import SECONDS, every, prepared

LIMIT = 1.0
ESTIMATE = 14.0
"""Seconds that a model takes, about."""
TIMES = 3
MEGA = 1e6


def told(engine: str, name: str, place: Path) -> dict[str, Any]:
    """What a process of its own tells."""
    paths = str(place / "onnx" / f"{name}.onnx"), str(place / "onnx_io" / f"{name}.npz")
    return told_by("benchmarks.harness.resident", engine, *paths, seconds=SECONDS)


def one(name: str, place: Path, times: int = TIMES) -> dict[str, list[dict[str, Any]]]:
    """What each engine tells, so many times; a process of Tilework before those fills the cache."""
    told("tilework", name, place)
    found: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
    for _ in range(times):
        for engine in ENGINES:
            found[engine].append(told(engine, name, place))
    return found


def middle(answers: list[dict[str, Any]], what: str = "peak") -> float:
    """The median of what was told, in bytes; NaN where one process failed."""
    if any(answer["status"] != "ran" for answer in answers):
        return math.nan
    return statistics.median(answer[what] for answer in answers)


def geometric_mean(ratios: list[float]) -> float:
    """NaN where one is, and for none."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def check_what_is_needed() -> None:
    """Raises `MissingPeerError` where the peer or the system's count is not there."""
    if importlib.util.find_spec("onnxruntime") is None:
        raise MissingPeerError("onnxruntime", "run `make peers`")
    if not os.access("/proc/self/clear_refs", os.W_OK):
        raise MissingPeerError("/proc/self/clear_refs", "the system does not tell the peak of a while")


def run(options: Options) -> Result:
    """Every model, three times for each engine."""
    check_what_is_needed()
    place = prepared()
    share = options.share(every(), lambda _: ESTIMATE)
    rows: list[list[str]] = []
    ratios: list[float] = []
    with_library: list[float] = []
    samples: dict[str, Any] = {}
    lazily = 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        environment(TILEWORK_CACHE="on", TILEWORK_CACHE_DIR=folder, TILEWORK_NUM_THREADS=str(THREADS)),
    ):
        for entry in share:
            samples[entry["name"]] = found = one(entry["name"], place)
            ours, theirs = (middle(found[engine]) for engine in ENGINES)
            if math.isnan(theirs):
                raise MissingPeerError("onnxruntime", str(found["onnxruntime"][0].get("why")))
            ratios.append(ours / theirs)
            with_library.append((ours + middle(found["tilework"], "lazily")) / theirs)
            lazily = max(lazily, middle(found["tilework"], "lazily") if not math.isnan(ours) else 0.0)
            why = next((str(answer.get("why")) for answer in found["tilework"] if answer["status"] != "ran"), "")
            kept = "" if why or not any(answer["onnx"] for answer in found["tilework"]) else "not kept whole"
            rows.append([entry["name"], f"{ours / MEGA:.1f}", f"{theirs / MEGA:.1f}", f"{ratios[-1]:.2f}", why or kept])
    return Result(
        figures=[
            Figure("geometric mean", geometric_mean(ratios), "x", Bar("<=", LIMIT)),
            Figure("with the library that opening loads", geometric_mean(with_library), "x"),
            check_figure("every model ran", not any(map(math.isnan, ratios))),
        ],
        columns=["model", "Tilework, MB", "ONNX Runtime, MB", "ratio", ""],
        rows=rows,
        notes=[f"models: {share}", f"LLVM, loaded when a model is opened, takes {lazily / MEGA:.0f} MB more"],
        samples=samples,
    )
