"""Programs as a user would write them, with a clock in them: from behind the imports to a first result."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_PROGRAM = """
import time
began = time.perf_counter()
import sys
import numpy as np
{imports}
imported = time.perf_counter()
path, case, threads, package = sys.argv[1:]
with np.load(case) as stored:
    inputs = {{str(name): stored[str(index)] for index, name in enumerate(stored["names"])}}
start, spent = time.perf_counter(), time.process_time()
{first}
done, spent = time.perf_counter(), time.process_time() - spent
import hashlib, json
{then}
digest = hashlib.sha256(b"".join(np.ascontiguousarray(output).tobytes() for output in outputs)).hexdigest()
print(json.dumps({{
    "imports": imported - began, "seconds": done - start, "processor": spent, "digest": digest,
    "onnx": "onnx" in sys.modules,
}}))
"""
CALL = "outputs = executable(*(inputs[port.name] for port in executable.inputs))"
ONNX_RUNTIME_CALL = """options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
outputs = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)"""
COMPILE = "from tilework import compile"


def program(imports: str, first: str, then: str = "") -> str:
    """A program that times `first`, which makes `outputs` of `path` and `inputs`. Its arguments are the model, the
    inputs' file, the number of threads and a path for a package; it prints what it found as JSON.
    """
    return _PROGRAM.format(imports=imports, first=first, then=then)


@dataclass(frozen=True)
class Subject:
    """A model on disk and inputs for it, by name."""

    label: str
    path: Path
    inputs: Mapping[str, np.ndarray[Any, Any]]


def said(command: list[str], variables: Mapping[str, str]) -> dict[str, Any]:
    """What a program says of itself. Raises `RuntimeError` where it fails."""
    done = subprocess.run(command, env=dict(variables), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[1]} exited with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)
