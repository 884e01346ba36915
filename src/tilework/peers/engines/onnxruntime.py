"""ONNX Runtime on its CPU provider, with its default optimisations."""

from __future__ import annotations

from typing import Any

from tilework.peers.engine import Engine, Opened, Task


def _load(task: Task) -> str:  # noqa: ARG001
    import onnxruntime  # pyright: ignore[reportMissingImports]

    module: Any = onnxruntime
    return str(module.__version__)


def _open(task: Task) -> Opened:
    import onnxruntime  # pyright: ignore[reportMissingImports]

    module: Any = onnxruntime
    options = module.SessionOptions()
    options.intra_op_num_threads = task.threads
    options.log_severity_level = 3
    session = module.InferenceSession(task.model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return Opened(lambda: session.run(None, task.inputs), lambda: names)


ENGINE = Engine("onnxruntime", _load, _open)
