"""ONNX's own checker, run in a child process: it is native code that a damaged model may crash."""

from __future__ import annotations

import subprocess
import sys

from tilework.frontends.onnx.source import LoadedModel

TIME_LIMIT_S = 120.0

_CHILD = """
import sys
sys.path[:0] = sys.argv[1:]
import onnx
model = onnx.ModelProto.FromString(sys.stdin.buffer.read())
try:
    onnx.checker.check_model(model, full_check=True)
except Exception as error:
    print(error)
    sys.exit(3)
"""


def checker_words(model: LoadedModel) -> str | None:
    """What `onnx.checker` (with shape inference) says against a model, or None where it says nothing.

    A crash of the checker or a run past `TIME_LIMIT_S` seconds is an answer too.
    """
    from google.protobuf.message import EncodeError

    try:
        content = model.proto.SerializeToString()
    except (EncodeError, ValueError) as error:
        return f"the model cannot be written: {error}"
    command = [sys.executable, "-c", _CHILD, *(entry for entry in sys.path if entry)]
    folder = None if model.folder is None else str(model.folder.named)
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, check=False, timeout=TIME_LIMIT_S, cwd=folder
        )
    except subprocess.TimeoutExpired:
        return f"the checker did not end within {TIME_LIMIT_S:.0f} s"
    except OSError as error:
        return f"the checker could not be run: {error}"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"the checker crashed (signal {-done.returncode})"
    if done.returncode == 3:
        return " ".join(done.stdout.decode(errors="replace").split())[:1000]
    return (done.stderr.decode(errors="replace").strip().splitlines() or ["the checker failed"])[-1][:1000]
