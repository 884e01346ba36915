"""One model with free dimensions at other shapes than its recorded one, in a process of its own: a JSON object.

Extents are drawn; shapes that ONNX Runtime refuses (a width that is no multiple of 32, say) are drawn anew. Dimensions
of one name, and unnamed ones of one extent, change together. Inputs are the recorded ones, cut or repeated.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.onnx_engines import difference, session
from benchmarks.harness.open_model import Arrays, decides_alike, excess, load

if TYPE_CHECKING:
    from onnx import ModelProto

OTHER_SHAPES = 6
TRIES = 60
LARGEST, ALWAYS = 9, 1 << 16
"""How many times the recorded elements an input may have, and how many elements in any case."""

Places = dict[str, list[tuple[str, int]]]


def free_dimensions(model: ModelProto, given: Arrays) -> Places:
    """Inputs and axes of each free dimension, by its name or, without one, by its recorded extent."""
    found: Places = {}
    for value in model.graph.input:
        if value.name not in given:
            continue
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            if not extent.HasField("dim_value") or extent.dim_value < 0:
                key = extent.dim_param or f"of {given[value.name].shape[axis]}"
                found.setdefault(key, []).append((value.name, axis))
    return found


def drawn(extent: int, random: np.random.Generator) -> int:
    """Another extent of the same order: anything where it is small, in steps of 32 or less where it is large."""
    if extent < 24:
        return int(random.integers(1, 2 * extent + 8))
    step = int(random.choice((1, 8, 32)))
    low, high = max(1, extent // (2 * step)), max(2, 2 * extent // step)
    return step * int(random.integers(low, high))


def changed(given: Arrays, places: Mapping[str, list[tuple[str, int]]], random: np.random.Generator) -> Arrays:
    """The inputs at other extents of some of the free dimensions."""
    found = dict(given)
    some = [key for key in places if random.random() < 0.7] or [str(random.choice(list(places)))]
    for key in some:
        name, axis = places[key][0]
        extent = drawn(given[name].shape[axis], random)
        for input_name, place in places[key]:
            found[input_name] = np.take(found[input_name], np.arange(extent), place, mode="wrap")
    return {name: np.array(array, order="C") for name, array in found.items()}


def other_shapes(path: Path, recorded: Path, noise: float, seed: int) -> dict[str, Any]:
    """Compile once, call at other shapes, compare each with ONNX Runtime."""
    import onnx

    import tilework
    from tilework.runtime.per_shape import PerShape

    given, _ = load(recorded)
    places = free_dimensions(onnx.load(path, load_external_data=False), given)
    if not places:
        return {"status": "fixed", "why": "no free dimension"}
    random = np.random.default_rng(seed)
    running, plain = (session(str(path), 1, plain=bare, exact=True) for bare in (False, True))
    names = [output.name for output in running.get_outputs()]
    executable = tilework.compile(path)
    ports = [port.name for port in executable.inputs]
    executable(*(given[name] for name in ports))
    seen = {_shapes(given)}
    faults: list[str] = []
    calls: list[float] = []
    anew = 0
    for _ in range(TRIES):
        if len(seen) > OTHER_SHAPES:
            break
        case = changed(given, places, random)
        large = any(array.size > max(LARGEST * given[name].size, ALWAYS) for name, array in case.items())
        if large or _shapes(case) in seen:
            continue
        try:
            wanted = dict(zip(names, running.run(None, case), strict=True))
            others = [plain.run(None, case), running.run(None, _disturbed(case, random))]
        except Exception:  # noqa: BLE001 - a shape that the model does not allow
            continue
        seen.add(_shapes(case))
        before = _variants(executable)
        start = time.perf_counter()
        try:
            results = executable(*(case[name] for name in ports))
        except tilework.TileworkError as error:
            faults.append(f"{_shapes(case)}: {error.message[:120]}")
            continue
        calls.append(time.perf_counter() - start)
        anew += _variants(executable) - before
        for port, found in zip(executable.outputs, results, strict=True):
            reference = wanted[port.name]
            place = names.index(port.name)
            allowed = max(noise, *(_noise(reference, other[place]) for other in others))
            over = excess(found, reference, allowed)
            if not (over <= 1 and decides_alike(found, reference, allowed)):
                faults.append(f"{_shapes(case)}: {port.name} differs by {over:.3g} times what may be")
    return {
        "status": "wrong" if faults else "equal",
        "why": faults[0] if faults else "",
        "shapes": len(seen) - 1,
        "anew": anew,
        "per shape": isinstance(executable, PerShape),
        "first call": max(calls, default=0.0),
        "median call": float(np.median(calls)) if calls else 0.0,
    }


def _disturbed(case: Arrays, random: np.random.Generator) -> Arrays:
    """Floats off by a unit in the last place or so: what that changes, no comparison can blame on an engine."""
    return {
        name: (array * (1 + np.finfo(array.dtype).eps * random.standard_normal(array.shape))).astype(array.dtype)
        if array.dtype.kind == "f"
        else array
        for name, array in case.items()
    }


def _noise(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """How far ONNX Runtime's outputs are from its own unoptimised, or for inputs disturbed in the last bit."""
    if one.shape != other.shape or one.dtype.kind != "f":
        return 0.0
    far = difference(one, other)
    return far if np.isfinite(far) else 0.0


def _shapes(arrays: Arrays) -> str:
    return " ".join(f"{name}{list(array.shape)}" for name, array in sorted(arrays.items()))


def _variants(executable: Any) -> int:
    return 0 if executable.variants is None else len(executable.variants.shapes)


def main() -> None:
    """Arguments: the model, its recorded arrays, ONNX Runtime's noise on it, a seed."""
    path, recorded, noise, seed = sys.argv[1:]
    try:
        answer = other_shapes(Path(path), Path(recorded), float(noise), int(seed))
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is the answer
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        answer = {"status": "refused", "why": (lines[-1] if lines else type(error).__name__)[:160]}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
