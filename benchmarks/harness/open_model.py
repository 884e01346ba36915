"""Run one of the open models in a process of its own and compare it with what ONNX Runtime gave: a JSON object."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.onnx_engines import difference, tolerance

Arrays = dict[str, "np.ndarray[Any, Any]"]


def load(path: Path) -> tuple[Arrays, Arrays]:
    """The inputs and outputs that `suites/io_onnx.py` recorded."""
    with np.load(path, allow_pickle=True) as stored:
        given = {key[3:]: stored[key] for key in stored if key.startswith("in:")}
        wanted = {key[4:]: stored[key] for key in stored if key.startswith("out:")}
    return given, wanted


def keys(value: Any) -> list[set[Any]]:
    """The keys of each map of a list; nothing for an array."""
    return [set(one) for one in value if isinstance(one, dict)] if not _is_numeric(value) else []


def numbers(value: Any) -> np.ndarray[Any, Any]:
    """An array as it is; the values of a list of maps, in the order of their keys."""
    if _is_numeric(value):
        return np.asarray(value)
    return np.array([one[key] for one in value for key in sorted(one, key=str)], np.float32)


def _is_numeric(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind != "O"


def excess(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], noise: float) -> float:
    """The largest difference as a share of what it may be; infinite where shapes or types differ."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    if wanted.dtype.kind not in "fc":
        return 0.0 if np.array_equal(found, wanted) else float("inf")
    return difference(found, wanted) / tolerance(wanted, noise)


def decides_alike(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], noise: float) -> bool:
    """Whether the largest of each last row is the same one, wherever the two largest differ by more than may be."""
    if wanted.dtype.kind != "f" or wanted.ndim == 0 or wanted.shape[-1] < 2 or not wanted.size:
        return True
    rows, ours = wanted.reshape(-1, wanted.shape[-1]), found.reshape(-1, wanted.shape[-1])
    ordered = np.sort(rows, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > tolerance(wanted, noise)
    return bool(np.array_equal(rows.argmax(1)[clear], ours.argmax(1)[clear]))


def operations(executable: Any, given: Arrays) -> int:
    """Floating-point operations of all generated regions for these inputs; a size that a call measures counts as 1."""
    plan = executable.plan
    values = {symbol.name: max(1, symbol.bounds[0]) for symbol in plan.symbols}
    for binding in plan.bindings:
        extent = given[plan.inputs[binding.position].name].shape[binding.dimension]
        values[binding.symbol] = (extent - binding.addend) // binding.factor
    regions = [region for region in executable.explain().regions if region.source == "generated"]
    return sum(int(region.flops.evaluate(values)) for region in regions if region.flops is not None)


def compared(path: Path, recorded: Path, noise: float) -> dict[str, Any]:
    """Compile, run and compare; how much of it is generated code."""
    import tilework

    start = time.perf_counter()
    executable = tilework.compile(path)
    seconds = time.perf_counter() - start
    given, wanted = load(recorded)
    results = executable(**{port.name: given[port.name] for port in executable.inputs})
    names = [port.name for port in executable.outputs]
    if set(names) != set(wanted):
        text = f"its outputs are {', '.join(names)}, {', '.join(wanted)} are recorded (by an older script?)"
        return {"status": "wrong", "why": text}
    found = {name: numbers(result) for name, result in zip(names, results, strict=True)}
    unlike = [name for name, result in zip(names, results, strict=True) if keys(result) != keys(wanted[name])]
    if unlike:
        return {"status": "wrong", "why": f"the maps of {unlike[0]} have other keys"}
    wanted = {name: numbers(result) for name, result in wanted.items()}
    worst = max((excess(found[name], wanted[name], noise) for name in names), default=0.0)
    alike = all(
        decides_alike(found[name], wanted[name], noise) for name in names if found[name].shape == wanted[name].shape
    )
    explanation = executable.explain()
    return {
        "status": "equal" if worst <= 1 and alike else "wrong",
        "why": "" if worst <= 1 and alike else f"{worst:.3g} times what may be" if alike else "another largest value",
        "excess": worst,
        "compile seconds": seconds,
        "regions": len(explanation.regions),
        "black boxes": [box.operator for box in explanation.black_boxes],
        "operations": operations(executable, given),
        "nodes": sum(len(region.operators) for region in explanation.regions),
    }


def main() -> None:
    """Arguments: the model, its recorded arrays, ONNX Runtime's noise on it."""
    path, recorded, noise = sys.argv[1:]
    try:
        answer = compared(Path(path), Path(recorded), float(noise))
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is the answer
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next((line for line in lines if line.startswith("- ")), lines[0] if lines else type(error).__name__)
        answer = {"status": "refused", "why": told.removeprefix("- ")[:160]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
