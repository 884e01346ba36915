"""How much memory opening a model and one call take, in a process of its own: a JSON object, in bytes.

Counted from when the engine's libraries are loaded and the inputs are there: the most that was resident at once, mapped
files too, above what was then. `lazily` is what loading a library takes that importing the engine leaves for later.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.open_model import Arrays, load

PAGE = 1024
"""Bytes of the unit in which the system tells."""
Open = Callable[[str, Arrays], Sequence[Any]]


def resident(what: str = "VmRSS") -> int:
    """Bytes that are resident, or with `VmHWM` were since `forget`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == what:
            return int(rest.split()[0]) * PAGE
    raise OSError(f"the system does not tell {what}")


def forget() -> None:
    """From now on `VmHWM` is counted anew. Raises `OSError` where the system has no such thing."""
    Path("/proc/self/clear_refs").write_text("5")


def tilework() -> tuple[Open, int]:
    """Import Tilework, and load LLVM, which it loads when a model is opened."""
    from tilework import compile as open_model

    before = resident()
    import llvmlite.binding  # noqa: F401  # pyright: ignore[reportUnusedImport]

    def opened(path: str, given: Arrays) -> Sequence[Any]:
        executable = open_model(path)
        return executable(**{port.name: given[port.name] for port in executable.inputs})

    return opened, resident() - before


def onnx_runtime() -> tuple[Open, int]:
    """Import ONNX Runtime, which loads all of it."""
    import onnxruntime

    def opened(path: str, given: Arrays) -> Sequence[Any]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return session.run(None, given)

    return opened, 0


THREADS = 2
ENGINES: dict[str, Callable[[], tuple[Open, int]]] = {"tilework": tilework, "onnxruntime": onnx_runtime}


def measured(engine: str, path: Path, recorded: Path) -> dict[str, Any]:
    """What an engine takes for a model; its results stay alive, as those of a user would."""
    opened, lazily = ENGINES[engine]()
    given, _ = load(recorded)
    start = resident()
    forget()
    results = opened(str(path), given)
    peak = resident("VmHWM")
    state = hashlib.sha256()
    for result in results:
        if isinstance(result, np.ndarray):
            state.update(np.ascontiguousarray(result).tobytes())
    return {"peak": peak - start, "lazily": lazily, "process": peak, "results": len(results),
            "onnx": "onnx" in sys.modules}  # fmt: skip


def main() -> None:
    """Arguments: the engine, the model, its recorded arrays."""
    engine, path, recorded = sys.argv[1:]
    print(json.dumps({"status": "ran", **measured(engine, Path(path), Path(recorded))}))


if __name__ == "__main__":
    main()
