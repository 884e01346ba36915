"""The child's side of an engine: `python -m benchmarks.harness.worker DESCRIPTOR` (see `engine.py`)."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from time import perf_counter_ns
from typing import Any

from benchmarks.harness.engine import Prepared
from benchmarks.harness.result import MissingPeerError


def build(message: dict[str, Any]) -> tuple[Prepared, dict[str, Any]]:
    """Make the engine; the answer tells its facts and how long it took."""
    if message["processors"]:
        os.sched_setaffinity(0, message["processors"])
    start = perf_counter_ns()
    module, _, function = message["factory"].partition(":")
    prepared: Prepared = getattr(importlib.import_module(module), function)(**message["arguments"])
    return prepared, {"facts": dict(prepared.facts), "seconds": (perf_counter_ns() - start) * 1e-9}


def block(prepared: Prepared, repeats: int) -> dict[str, Any]:
    """Call as often as asked and tell how long that took; a call before the clock starts wakes what is asleep."""
    call = prepared.call
    call()
    gc.disable()
    try:
        start = perf_counter_ns()
        for _ in range(repeats):
            call()
        end = perf_counter_ns()
    finally:
        gc.enable()
    return {"seconds": (end - start) * 1e-9}


def select(prepared: Prepared, case: str) -> dict[str, Any]:
    """Turn to another case."""
    if prepared.select is None:
        raise RuntimeError("this engine has one case only")
    prepared.select(case)
    return {}


def outputs(prepared: Prepared, path: str) -> dict[str, Any]:
    """Write the values of one call to a file and tell their names."""
    import numpy as np

    if prepared.outputs is None:
        raise RuntimeError("this engine gives no outputs")
    values = prepared.outputs()
    arrays: dict[str, Any] = {f"output{index}": value for index, value in enumerate(values.values())}
    np.savez(path, **arrays)
    return {"names": list(values)}


def answer(message: dict[str, Any], prepared: Prepared | None) -> tuple[Prepared | None, dict[str, Any]]:
    """Do what a message asks; a failure is an answer too."""
    try:
        if message["command"] == "build":
            return build(message)
        if prepared is None:
            raise RuntimeError("nothing was built yet")
        if message["command"] == "block":
            return prepared, block(prepared, message["repeats"])
        if message["command"] == "select":
            return prepared, select(prepared, message["case"])
        return prepared, outputs(prepared, message["path"])
    except MissingPeerError as missing:
        return prepared, {"missing": missing.name, "remedy": missing.remedy}
    except ModuleNotFoundError as missing:
        top = (missing.name or "a module").split(".")[0]
        if top in {"tilework", "benchmarks", "tests"}:
            return prepared, {"error": traceback.format_exc()}
        return prepared, {"missing": top, "remedy": "run `make peers`"}
    except Exception:  # noqa: BLE001 - the parent is told, whatever it is
        return prepared, {"error": traceback.format_exc()}


def main() -> None:
    """Answer messages until the parent closes the pipe."""
    answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    prepared: Prepared | None = None
    for line in sys.stdin:
        prepared, reply = answer(json.loads(line), prepared)
        answers.write(json.dumps(reply, default=str) + "\n")
    if prepared is not None and prepared.close is not None:
        prepared.close()


if __name__ == "__main__":
    main()
