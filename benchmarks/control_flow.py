"""Models whose course is decided while they run, against ONNX Runtime: `If` in silero, a greedy `Loop` of a decoder."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness.engine import EngineError, Worker
from benchmarks.harness.findings import Findings
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, engines, excess, save_cases
from benchmarks.harness.open_model import Arrays, load
from benchmarks.harness.paired import measure_workers
from benchmarks.harness.result import Bar, Options, Result, check_figure, ratio_figure
from benchmarks.onnx_open import every, prepared

MODELS = {"silero_vad__silero_vad": "silero (If)", "derived__romanizer_greedy_loop": "romanizer (Loop)"}
LIMIT = 1.2
"""Tilework's latency over ONNX Runtime's."""


def cases(name: str, given: Arrays, random: np.random.Generator) -> dict[str, Arrays]:
    """The recorded inputs, and others: for silero those of the other branch, for the decoder other words."""
    found = {"recorded": given}
    if name.startswith("silero"):
        rate = {"sr": np.array(8000, given["sr"].dtype), "input": given["input"][:, ::2][:, :288]}
        found["8 kHz"] = {**given, **rate}
    else:
        mask = given["e_src_mask"]
        found["other words"] = {
            **given,
            "e_src": np.where(mask, random.permuted(given["e_src"], axis=1), given["e_src"]),
        }
    return {case: {key: np.array(array, order="C") for key, array in held.items()} for case, held in found.items()}


def run(options: Options) -> Result:
    """Both models, each case compared and timed; one thread unless told otherwise."""
    place = prepared()
    found = Findings(options, ["model, case", "tilework us", "onnxruntime us", "ratio", "of tolerance"])
    noise = {entry["name"]: float(entry.get("noise") or 0.0) for entry in every()}
    random = np.random.default_rng(options.seed)
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, label in MODELS.items():
            path = place / "onnx" / f"{name}.onnx"
            given, _ = load(place / "onnx_io" / f"{name}.npz")
            held = cases(name, given, random)
            ours, theirs = engines(path, save_cases(Path(scratch), held), options.threads or 1)
            try:
                with Worker(theirs) as reference, Worker(ours) as tilework:
                    workers = {TILEWORK: tilework, ONNX_RUNTIME: reference}
                    for case in held:
                        for worker in workers.values():
                            worker.select(case)
                        folder = Path(scratch)
                        share = excess(tilework.outputs(folder), reference.outputs(folder), noise[name])
                        different += not share <= 1
                        taken = measure_workers(workers, rounds=found.rounds)
                        found.keep(f"{label} {case}", taken)
                        ratio = taken.ratio(TILEWORK, ONNX_RUNTIME)
                        found.rows.append([
                            f"{label}, {case}",
                            f"{taken.median(TILEWORK) * 1e6:.1f}",
                            f"{taken.median(ONNX_RUNTIME) * 1e6:.1f}",
                            f"{ratio.middle:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
                            f"{share:.2g}",
                        ])  # fmt: skip
                        found.figures.append(ratio_figure(f"{label} {case}:", ratio, Bar("<=", LIMIT)))
            except EngineError as failed:
                found.fail(label, str(failed))
    return found.result(check_figure("equal to ONNX Runtime", different == 0))
