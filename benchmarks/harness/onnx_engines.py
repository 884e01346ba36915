"""Engines that run an ONNX file: Tilework, and ONNX Runtime beside it; and when their outputs count as equal.

Inputs come from .npz files (see `save_cases`): one file a case, e.g. a batch size. A file's arrays are named `0`, `1`,
..., in the order of the names in its entry `names`, since a tensor's name need not be fit for a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.engine import Engine, Prepared
from benchmarks.harness.result import MissingPeerError

Arrays = Mapping[str, "np.ndarray[Any, Any]"]

TILEWORK, ONNX_RUNTIME = "tilework", "onnxruntime"
HERE = "benchmarks.harness.onnx_engines"


def save_cases(folder: Path, cases: Mapping[str, Arrays]) -> dict[str, str]:
    """Write the inputs of each case to a file of its own and return the paths."""
    paths: dict[str, str] = {}
    for number, (case, arrays) in enumerate(cases.items()):
        path = folder / f"case{number}.npz"
        numbered: dict[str, Any] = {str(index): array for index, array in enumerate(arrays.values())}
        np.savez(path, names=np.array(list(arrays)), **numbered)
        paths[case] = str(path)
    return paths


def load_case(path: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return the inputs that `save_cases` wrote, by name."""
    with np.load(path) as stored:
        return {str(name): stored[str(index)] for index, name in enumerate(stored["names"])}


def engines(model: Path, cases: Mapping[str, str], threads: int) -> tuple[Engine, Engine]:
    """Return Tilework and ONNX Runtime on a model, with the same number of threads; cases as `save_cases` returns them.

    The engines start with the first case; `select` turns to another.
    """
    arguments = {"model": str(model), "cases": dict(cases), "threads": threads}
    return (
        Engine(TILEWORK, f"{HERE}:tilework_engine", arguments),
        Engine(ONNX_RUNTIME, f"{HERE}:onnxruntime_engine", arguments),
    )


def tilework_engine(model: str, cases: dict[str, str], threads: int) -> Prepared:
    """Tilework on an ONNX file, compiled once for all cases."""
    import tilework
    from tilework.runtime.context import ContextOptions

    context = tilework.Context(ContextOptions(threads=threads))
    executable = tilework.compile(model, context=context)
    ordered = {
        case: tuple(arrays[port.name] for port in executable.inputs)
        for case, arrays in ((case, load_case(path)) for case, path in cases.items())
    }
    executable(*next(iter(ordered.values())))  # some models are compiled when they are first called
    names = [port.name for port in executable.outputs]
    explanation = executable.explain()
    facts = {
        "threads": threads,
        "regions": len(explanation.regions),
        "code bytes": explanation.code_bytes,
        "compile ms": round(explanation.total_milliseconds, 1),
        "stages": explanation.compile_milliseconds,
    }
    return _prepared(ordered, lambda given: executable(*given), names, facts)


def session(model: str | bytes, threads: int, plain: bool = False, exact: bool = False) -> Any:
    """Return ONNX Runtime's session of a file, or of a model's bytes, with its default optimisations or none.

    `exact`: sums of products of bytes never saturate, which takes longer.

    Raises `MissingPeerError` where onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as missing:
        raise MissingPeerError("onnxruntime", "run `make peers`") from missing
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if exact:  # where a processor has no VNNI, sums of products of bytes saturate without it
        options.add_session_config_entry("session.x64quantprecision", "1")
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def onnxruntime_engine(model: str, cases: dict[str, str], threads: int) -> Prepared:
    """ONNX Runtime's `run` on an ONNX file."""
    import onnxruntime

    running = session(model, threads)
    feeds = {case: load_case(path) for case, path in cases.items()}
    names = [output.name for output in running.get_outputs()]
    facts = {"threads": threads, "version": onnxruntime.__version__}
    return _prepared(feeds, lambda given: running.run(None, given), names, facts)


def _prepared(
    cases: Mapping[str, Any], run: Callable[[Any], Sequence[Any]], names: list[str], facts: Mapping[str, Any]
) -> Prepared:
    given: Any = next(iter(cases.values()))

    def select(case: str) -> None:
        nonlocal given
        given = cases[case]

    def outputs() -> Mapping[str, np.ndarray[Any, Any]]:
        return dict(zip(names, run(given), strict=True))

    return Prepared(lambda: run(given), facts, outputs, select)


def tolerance(reference: np.ndarray[Any, Any], noise: float) -> float:
    """Return how far an output may be from ONNX Runtime's: its own noise twentyfold, or 2e-5 of the largest value."""
    finite = np.abs(reference[np.isfinite(reference)].astype(np.float64))
    return max(20 * noise, 2e-5 * float(finite.max(initial=0.0)), 1e-6)


def difference(ours: np.ndarray[Any, Any], reference: np.ndarray[Any, Any]) -> float:
    """Return the largest absolute difference; infinity where type, shape, NaN or infinities differ."""
    if ours.dtype != reference.dtype or ours.shape != reference.shape:
        return float("inf")
    if ours.dtype.kind not in "fc":
        wide = np.abs(ours.astype(np.float64) - reference.astype(np.float64))
        return float(wide.max(initial=0.0))
    finite = np.isfinite(reference)
    if not np.array_equal(ours[~finite], reference[~finite], equal_nan=True) or not np.isfinite(ours[finite]).all():
        return float("inf")
    wide = np.abs(ours[finite].astype(np.float64) - reference[finite].astype(np.float64))
    return float(wide.max(initial=0.0))


def excess(ours: Arrays, reference: Arrays, noise: float) -> float:
    """Return the largest difference over all outputs as a share of what it may be: at most 1 counts as equal."""
    if list(ours) != list(reference):
        return float("inf")
    found = 0.0
    for name, expected in reference.items():
        allowed = tolerance(expected, noise) if expected.dtype.kind == "f" else 0.5
        found = max(found, difference(ours[name], expected) / allowed)
    return found
